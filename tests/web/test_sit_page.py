"""A person plays a whole game in a browser, sees only what the seat may see, and loses nothing with the connection."""

from __future__ import annotations

import random
import re
import shutil
import threading

import pytest
from games_to_show import HOSTILE
from playwright.sync_api import expect, sync_playwright
from replay_page import STATIC
from sights import keep_screenshot, violations
from sit_server import ScriptedGame, SitServer

from referee.reports.formats import counts_name, visible
from referee.rules.actions import DecisionKind
from referee.web.board import phrases_script
from referee.web.sitting import Storage

pytestmark = [
    pytest.mark.extended("opens pages in a browser"),
    pytest.mark.toolchain("chromium"),
    pytest.mark.unmeasured,
]

PATIENCE_MS = 30_000
FAST = "8"


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield opened
        opened.close()


@pytest.fixture
def sit_down(browser):
    """Return a function that starts a game and opens its page. With `stands_still`, time passes only by `page.clock`.

    At the end of the test, no page may have had an error, except that the server did not reply or refused an action.
    """
    errors, closing = [], []

    def start(
        ruleset="basic",
        seats=3,
        *,
        seat=1,
        seed=1,
        names=None,
        started=True,
        stands_still=False,
        **options,
    ):
        names = names or [f"bot{at}" for at in range(seats)]
        game = ScriptedGame(ruleset, seats, seat=seat, seed=seed, names=names, started=started)
        server = SitServer(game)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        closing.append((context, server, thread))
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        if stands_still:
            page.clock.install(time=0)
            page.clock.pause_at(1_000)
        page.goto(server.url)
        return page, server

    yield start
    for context, server, thread in closing:
        context.close()
        server.change(is_reachable=False)
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE_MS / 1000)
    refused = re.compile(r"^Failed to load resource: .*(ERR_EMPTY_RESPONSE|409|404|400)")
    assert [error for error in errors if not refused.match(error)] == []


def choices(page):
    return page.locator("#sit .choice")


def wait_for_turn(page):
    """Show all moves. Return False if the game is over."""
    page.wait_for_function(
        """() => {
            document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "End", bubbles: true}));
            return document.querySelector("#sit .choice:enabled") || !document.querySelector("#sit-end").hidden;
        }"""
    )
    return page.locator("#sit-end").is_hidden()


def choose(page, server, index):
    """Click an action, and wait until the server has it."""
    number = server.running.number
    choices(page).nth(index).click()
    server.wait_for_action(number)


def choose_until_bots_move(page, server):
    """Choose actions until bots move, and return the number of the person's last move."""
    while True:
        number = server.running.moves + 1
        expect(page.locator("#replay-slider")).to_have_value(str(number - 1))
        expect(choices(page).first).to_be_enabled()
        choose(page, server, 0)
        if server.running.moves > number:
            return number


def count_moves(page):
    return int(re.match(r"move \d+ of (\d+)", page.locator("#replay-count").inner_text())[1])


def expect_table(page, running):
    """Check that the page shows what the seat may see: its own hand, and of the others only the sizes."""
    view = running.game.view(running.seat)
    for seat, size in enumerate(view.hand_sizes):
        hand = page.locator(f".seat[data-seat='{seat}'] .hand")
        label = counts_name(view.hand) if seat == running.seat else f"{size} hidden"
        expect(hand).to_have_attribute("aria-label", f"hand: {label}")
        if seat != running.seat:
            assert hand.locator(".back").count() == size
            assert hand.locator(".playing-card:not(.back)").count() == 0


@pytest.mark.parametrize(
    ("ruleset", "seats", "seat", "scheme"),
    [("basic", 3, 1, "light"), ("duel", 2, 0, "dark")],
    ids=["basic", "duel"],
)
def test_whole_game_is_played_by_clicking_legal_actions(sit_down, ruleset, seats, seat, scheme):
    page, server = sit_down(ruleset, seats, seat=seat, seed=seats, color_scheme=scheme)
    running, chance, kinds = server.running, random.Random(1), set()
    while wait_for_turn(page):
        kinds.add(running.decision.kind)
        picks = running.choices
        texts = [each["text"] for each in picks]
        found = page.evaluate(
            "() => [...document.querySelectorAll('#sit .choice')].map(each =>"
            " each.querySelector(':scope > span:not([aria-hidden])').textContent)"
        )
        assert found == texts
        assert page.locator("#replay-board .pick").count() == sum(
            "slot" in each or "deck" in each for each in picks
        )
        if len(running.posted) % 8 == 0:
            expect_table(page, running)
        choose(page, server, chance.randrange(len(texts)))
    outcome = running.game.outcome
    assert count_moves(page) == running.moves
    assert len(kinds) >= 5
    places = ["first", "second", "third"]
    expect(page.locator("#sit-state")).to_contain_text(
        f"You are {places[outcome.ranks[seat] - 1]} of {seats}"
    )
    expect(page.locator("#sit-state")).to_contain_text(f"with {outcome.scores[seat]} point")
    for other, rank in enumerate(outcome.ranks):
        expect(page.locator(f".seat[data-seat='{other}'] .marks")).to_contain_text(f"rank {rank}")
    expect(page.get_by_role("link", name="Replay with all cards")).to_have_attribute(
        "href", "/sit/token/ab12cd/replay"
    )
    expect(page.get_by_role("link", name="Play another game")).to_have_attribute("href", "/lobby")
    expect(page.get_by_role("button", name="Leave the game")).to_be_hidden()
    assert page.locator(".choice, .pick").count() == 0
    assert violations(page) == []


def test_every_kind_of_decision_has_its_prompt():
    script = (STATIC / "sit.js").read_text(encoding="utf-8")
    prompts = re.search(r"PROMPTS = \{(.*?)\};", script, re.DOTALL)[1]
    decisions = re.search(r'"decisions":\[(.*?)\]', phrases_script())[1]
    assert re.findall(r'"([^"]+)":', prompts) == re.findall(r'"([^"]+)"', decisions)


def test_own_seat_is_at_the_bottom_and_the_others_follow_clockwise(sit_down):
    page, _ = sit_down("basic", 4, seat=2)
    wait_for_turn(page)
    seats = page.locator(".seat").evaluate_all("all => all.map(each => each.dataset.seat)")
    assert seats == ["3", "0", "1", "2"]
    assert page.get_by_label("View").count() == 0
    assert page.get_by_role("button", name="Next fault").count() == 0


def test_own_move_is_shown_at_once_and_then_one_move_of_a_bot_after_the_other(sit_down):
    page, server = sit_down("basic", 5, seat=0, seed=3, stands_still=True)
    expect(page.get_by_label("Speed")).to_have_value("2")
    count = page.locator("#replay-count")
    for speed, interval_ms in (("2", 500), ("4", 250)):
        page.get_by_label("Speed").select_option(speed)
        number = choose_until_bots_move(page, server)
        last = server.running.moves
        expect(count).to_contain_text(f"move {number} of {number}")
        while number < last:
            expect(page.locator("#sit-state")).to_have_text("The bots decide.")
            assert page.locator(".choice").count() == 0
            page.clock.run_for(interval_ms - 50)
            expect(count).to_contain_text(f"move {number} of {number}")
            page.clock.run_for(50)
            number += 1
            expect(count).to_contain_text(f"move {number} of {number}")


def test_end_key_shows_all_moves_at_once(sit_down):
    page, server = sit_down("basic", 5, seat=0, seed=3, stands_still=True)
    number = choose_until_bots_move(page, server)
    expect(page.locator("#replay-count")).to_contain_text(f"move {number} of {number}")
    page.keyboard.press("End")
    last = server.running.moves
    expect(page.locator("#replay-count")).to_contain_text(f"move {last} of {last}")
    expect(choices(page).first).to_be_enabled()


def test_each_move_is_said(sit_down):
    page, _ = sit_down()
    said = page.locator("#replay-said")
    expect(said).to_have_attribute("aria-live", "polite")
    wait_for_turn(page)
    page.keyboard.press("Home")
    expect(said).to_have_text("The cards are dealt.")
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("bot0 (seat 0) plays")


def test_person_who_steps_back_stays_there_until_back_to_now(sit_down):
    page, server = sit_down("basic", 3, seat=1, seed=2)
    page.get_by_label("Speed").select_option(FAST)
    wait_for_turn(page)
    expect(page.get_by_role("button", name="Newest move")).to_be_hidden()
    choose(page, server, 0)
    page.get_by_role("button", name="One move back").click()
    page.get_by_role("button", name="One move back").click()
    position = page.get_by_role("slider", name="Move").input_value()
    expect(page.locator("#replay-slider")).to_have_attribute("max", str(server.running.moves))
    expect(page.locator("#replay-slider")).to_have_value(position)
    expect(page.locator("#sit-state")).to_have_text("You must decide.")
    assert page.locator(".choice").count() == 0
    page.get_by_role("button", name="Newest move").click()
    expect(page.locator("#replay-slider")).to_have_value(str(server.running.moves))
    expect(choices(page).first).to_be_enabled()
    expect(page.get_by_role("button", name="Newest move")).to_be_hidden()


def test_skip_link_stays_at_the_newest_move(sit_down):
    page, server = sit_down()
    wait_for_turn(page)
    expect(page).to_have_url(f"{server.url}#move={server.running.moves}")  # written a moment later
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{server.url}#main")
    expect(page.locator("main")).to_be_focused()
    assert page.locator("#replay-slider").input_value() == str(server.running.moves)
    expect(choices(page).first).to_be_enabled()


def test_game_is_played_with_the_keyboard_alone(sit_down):
    page, server = sit_down("basic", 3, seat=0, seed=4)
    for _ in range(6):
        assert wait_for_turn(page)
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.matches('#sit .choice')"):
                break
        number = server.running.number
        page.keyboard.press("Enter")
        server.wait_for_action(number)
        expect(page.get_by_role("region", name="Your decision")).to_be_focused()
    assert len(server.running.posted) == 6


def test_slot_on_the_board_is_drawn_with_a_click(sit_down):
    page, server = sit_down("basic", 3, seat=0, seed=4)
    while wait_for_turn(page) and not page.locator("#replay-board .pick").count():
        choose(page, server, 0)
    number, choices = server.running.number, server.running.choices
    name = choices[-1]["text"]
    page.locator("#replay-board").get_by_role("button", name=name).click()
    server.wait_for_action(number)
    assert server.running.posted[-1] == (number, len(choices) - 1)


def test_buttons_are_disabled_until_the_server_replies(sit_down):
    page, server = sit_down()
    wait_for_turn(page)
    with server.changed:  # the server cannot reply
        choices(page).first.click()
        expect(choices(page).first).to_be_disabled()
        assert page.locator(".choice:enabled").count() == 0
    assert wait_for_turn(page)
    assert server.posts == 1


def test_double_click_is_one_decision(sit_down):
    page, server = sit_down()
    wait_for_turn(page)
    box = choices(page).first.bounding_box()
    number = server.running.number
    page.mouse.dblclick(box["x"] + 10, box["y"] + 10, delay=100)
    server.wait_for_action(number)
    assert wait_for_turn(page)
    assert server.posts == 1


def test_bots_are_not_said_to_start_after_the_first_decision(sit_down):
    page, server = sit_down("basic", 3, seat=0)
    wait_for_turn(page)
    assert server.running.moves == 0
    page.evaluate("""() => {
        const said = [];
        const state = document.getElementById("sit-state");
        new MutationObserver(() => said.push(state.textContent)).observe(state, { childList: true });
        window.said = said;
    }""")
    choose(page, server, 0)
    assert wait_for_turn(page)
    said = page.evaluate("window.said")
    assert said
    assert "The bots are being started." not in said


def test_lost_connection_is_said_and_the_game_goes_on(sit_down):
    page, server = sit_down(seed=5)
    wait_for_turn(page)
    server.change(is_reachable=False)
    expect(page.get_by_role("alert")).to_contain_text("The server does not reply")
    choices(page).first.click()
    expect(choices(page).first).to_be_disabled()
    assert server.running.posted == []
    server.change(is_reachable=True)
    expect(page.locator("#sit-lost")).to_be_hidden()
    wait_for_turn(page)
    assert len(server.running.posted) == 1
    assert count_moves(page) == server.running.moves
    expect_table(page, server.running)


def test_action_whose_reply_is_lost_is_done_once(sit_down):
    page, server = sit_down(seed=5)
    wait_for_turn(page)
    server.change(loses_reply=True)
    choose(page, server, 0)
    wait_for_turn(page)
    expect_table(page, server.running)
    assert len(server.running.posted) == 1
    assert count_moves(page) == server.running.moves


def test_game_that_is_opened_again_shows_its_newest_move(sit_down):
    page, server = sit_down(seed=6)
    for _ in range(4):
        wait_for_turn(page)
        choose(page, server, 0)
    page.reload()
    expect(choices(page).first).to_be_enabled()
    assert count_moves(page) == server.running.moves
    expect_table(page, server.running)


def test_page_waits_until_the_bots_are_started(sit_down):
    page, server = sit_down(started=False)
    expect(page.locator("#sit-state")).to_have_text("The game is being prepared.")
    expect(page.locator("#replay-board")).to_be_hidden()
    with server.changed:
        server.running.deal()
        server.changed.notify_all()
    expect(page.locator("#replay-board")).to_be_visible()
    assert wait_for_turn(page)


@pytest.mark.parametrize("started", [True, False])
def test_game_that_fails_says_why_in_plain_text(sit_down, started):
    text = visible(HOSTILE)
    page, server = sit_down(started=started, names=[text, "you", text])
    if started:
        wait_for_turn(page)
        expect(page.locator(".seat").first).to_contain_text("<script>")
    with server.changed:
        server.running.fail(text)
        server.changed.notify_all()
    expect(page.get_by_role("alert")).to_contain_text("</script>")
    expect(page.locator("#sit-state")).to_have_text("The game has ended without a result.")
    expect(page.get_by_role("link", name="Play another game")).to_be_visible()
    assert page.get_by_role("link", name="Replay with all cards").count() == 0
    assert page.locator("main script").count() == 0
    assert page.locator(".choice").count() == 0


@pytest.mark.parametrize(
    ("problem", "text"),
    [(None, "The game is stored."), ("The game is not stored: full", "points.")],
)
def test_result_is_shown_while_the_game_is_being_stored(sit_down, problem, text):
    page, server = sit_down("duel", 2, seat=0)
    server.running.shown.storage = Storage.PENDING  # shown only with the result
    while wait_for_turn(page):
        choose(page, server, 0)
    state = page.locator("#sit-state")
    expect(state).to_contain_text("You are")
    expect(state).to_contain_text("The game is being stored.")
    expect(page.get_by_role("link", name="Replay with all cards")).to_be_visible()
    expect(page.get_by_role("button", name="Leave the game")).to_be_hidden()
    server.running.shown.problem = problem
    server.running.shown.storage = None if problem else Storage.DONE
    expect(state).to_contain_text(re.compile(f"{re.escape(text)}$"))
    expect(page.locator("#sit-problem")).to_have_text(problem or "")


@pytest.mark.parametrize("finds_out_by", ["waiting", "choosing"])
def test_game_that_the_server_does_not_have_any_more_is_over(sit_down, finds_out_by):
    page, server = sit_down(seed=5)
    wait_for_turn(page)
    if finds_out_by == "waiting":
        server.change(has_game=False)
    else:
        server.has_game = False  # the request for news goes on waiting
        choices(page).first.click()
    expect(page.get_by_role("alert")).to_have_text("The server does not have this game any more.")
    expect(page.locator("#sit-state")).to_have_text("The game has ended without a result.")
    expect(page.get_by_role("link", name="Play another game")).to_be_visible()
    expect(page.get_by_role("button", name="Leave the game")).to_be_hidden()
    assert page.locator(".choice, .pick").count() == 0


def test_game_that_is_gone_before_it_has_begun_is_over(sit_down):
    page, server = sit_down(started=False)
    server.change(has_game=False)
    expect(page.locator("#sit-problem")).to_be_visible()
    expect(page.locator("#sit-state")).to_have_text("The game has ended without a result.")


def test_game_is_left_with_a_form(sit_down):
    page, server = sit_down()
    page.get_by_role("button", name="Leave the game").click()
    page.wait_for_url("**/lobby")
    assert server.running.left


def test_page_without_javascript_says_what_is_missing(sit_down):
    page, _ = sit_down(java_script_enabled=False)
    expect(page.get_by_text("Playing needs JavaScript.")).to_be_visible()
    expect(page.get_by_role("button", name="Leave the game")).to_be_visible()


def test_styles_share_no_class_with_the_styles_of_the_other_pages():
    found = [
        set(re.findall(r"\.([a-zA-Z][\w-]*)", (STATIC / name).read_text(encoding="utf-8")))
        for name in ("style.css", "sit.css")
    ]
    assert set.intersection(*found) == set()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_no_decision_violates_wcag_or_scrolls_sideways(sit_down, width, scheme):
    page, server = sit_down(
        "duel",
        2,
        seed=2,
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        reduced_motion="reduce",
    )
    chance, kinds, found = random.Random(2), set(), {}
    while len(kinds) < len(DecisionKind):
        assert wait_for_turn(page)
        decision = server.running.decision
        if decision.kind not in kinds:
            kinds.add(decision.kind)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            keep_screenshot(page, f"seat-{decision.kind.value}-{width}-{scheme}")
            found[decision.kind] = violations(page)
        choose(page, server, chance.randrange(len(decision.legal)))
    assert found == {kind: [] for kind in DecisionKind}
