"""Each control of the replay does what it says, in a browser that opened the page from a folder."""

from __future__ import annotations

import re
import shutil

import pytest
from games_to_show import HOSTILE, hostile
from played import record
from playwright.sync_api import expect, sync_playwright
from replay_page import STATIC, write_replay

from referee.match.replay import replay_moves
from referee.reports.formats import counts_name, visible
from referee.reports.playthrough import Narrator
from referee.rules.actions import Choice
from referee.rules.events import GhostSnatched, Snatched

pytestmark = [
    pytest.mark.extended("opens pages in a browser"),
    pytest.mark.toolchain("chromium"),
    pytest.mark.unmeasured,
]

GAME = record("basic", 4, seed=4, strike_at=6, forfeit_at=40)
STEPS = list(replay_moves(GAME))
LAST = len(STEPS)
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:"
SITE = "http://replay.test"


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser):
    """Return a function that opens an address in a new page whose time stands still.

    At the end of the test, no page may have had an error.
    """
    errors, contexts = [], []

    def open_address(address, *, width=1280, serve=None, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        if serve is not None:
            context.route(f"{SITE}/**", serve)
        page = context.new_page()
        page.on("console", lambda message: errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: errors.append(dialog.message) or dialog.dismiss())
        page.clock.install(time=0)
        page.clock.pause_at(1_000)
        page.goto(address)
        return page

    yield open_address
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    return write_replay(tmp_path_factory.mktemp("replay"), GAME).as_uri()


@pytest.fixture
def page(open_page, address):
    return open_page(address)


def expect_move(page, number, last=LAST):
    expect(page.locator("#replay-count")).to_contain_text(
        re.compile(rf"^move {number} of {last}\b")
    )
    expect(page.locator("#replay-slider")).to_have_value(str(number))


def press_button(page, name):
    page.get_by_role("button", name=name).click()


def snatches():
    """Return the positions after the moves in which something is snatched."""
    return [
        at
        for at, step in enumerate(STEPS, start=1)
        if any(isinstance(event, Snatched | GhostSnatched) for event in step.events)
    ]


def test_replay_starts_before_the_first_move(page):
    expect_move(page, 0)
    expect(page.get_by_role("region", name="Replay")).to_be_visible()
    expect(page.locator(".seat")).to_have_count(4)
    expect(page.locator(".slot")).to_have_count(6)


def test_step_buttons_move_by_one_or_to_an_end(page):
    for name, position in (
        ("One move forward", 1),
        ("One move forward", 2),
        ("One move back", 1),
        ("End (End)", LAST),
        ("One move forward", LAST),
        ("Start (Home)", 0),
        ("One move back", 0),
    ):
        press_button(page, name)
        expect_move(page, position)


def test_play_shows_a_move_each_second_until_pause(page):
    press_button(page, "Play")
    page.clock.run_for(3_000)
    expect_move(page, 3)
    press_button(page, "Pause")
    page.clock.run_for(3_000)
    expect_move(page, 3)
    expect(page.get_by_role("button", name="Play")).to_be_visible()


@pytest.mark.parametrize(("speed", "moves"), [("½×", 2), ("2×", 8), ("4×", 16), ("8×", 32)])
def test_speed_changes_the_moves_in_four_seconds(page, speed, moves):
    page.get_by_label("Speed").select_option(label=speed)
    press_button(page, "Play")
    page.clock.run_for(4_000)
    expect_move(page, moves)


def test_speed_can_change_while_playing(page):
    press_button(page, "Play")
    page.clock.run_for(2_000)
    expect_move(page, 2)
    page.get_by_label("Speed").select_option(label="4×")
    page.clock.run_for(1_000)
    expect_move(page, 6)


def test_play_stops_at_the_end_and_starts_again_from_there(open_page, address):
    page = open_page(f"{address}#move={LAST - 2}")
    press_button(page, "Play")
    page.clock.run_for(5_000)
    expect_move(page, LAST)
    press_button(page, "Play")
    expect_move(page, 0)
    page.clock.run_for(1_000)
    expect_move(page, 1)


def test_step_pauses(page):
    press_button(page, "Play")
    press_button(page, "One move forward")
    page.clock.run_for(5_000)
    expect_move(page, 1)


def test_next_snatch_visits_every_snatch(page):
    button = page.get_by_role("button", name="Next snatch")
    for position in snatches():
        button.click()
        expect_move(page, position)
    expect(button).to_have_attribute("aria-disabled", "true")


def test_snatched_layer_lies_in_the_middle_until_it_is_decided_on(open_page, address):
    taken = next(at for at, move in enumerate(GAME.moves) if move.action is Choice.TAKE)
    page = open_page(f"{address}#move={taken}")
    expect(page.locator(".pile.snatched .layer")).to_have_count(1)
    decides = page.locator(".seat.deciding")
    expect(decides).to_have_attribute("data-seat", str(GAME.moves[taken].seat))
    press_button(page, "One move forward")
    expect(page.locator(".pile.snatched .layer")).to_have_count(0)


def test_next_fault_visits_every_fault(page):
    button = page.get_by_role("button", name="Next fault")
    for fault in GAME.faults:
        button.click()
        expect_move(page, fault.move + 1)
        expect(page.locator("#replay-said .charge")).to_contain_text(
            f"{fault.cause.value}: no reply"
        )
    expect(button).to_have_attribute("aria-disabled", "true")
    expect(page.locator("#replay-times .charge")).to_have_count(len(GAME.faults))


@pytest.mark.parametrize(
    ("key", "position"), [("ArrowRight", 6), ("ArrowLeft", 4), ("Home", 0), ("End", LAST)]
)
def test_key_moves(open_page, address, key, position):
    page = open_page(f"{address}#move=5")
    page.keyboard.press(key)
    expect_move(page, position)


def test_space_plays_and_pauses(page):
    page.keyboard.press("Space")
    page.clock.run_for(2_000)
    page.keyboard.press("Space")
    page.clock.run_for(2_000)
    expect_move(page, 2)


def test_space_on_a_button_presses_only_this_button(page):
    page.get_by_role("button", name="One move forward").focus()
    page.keyboard.press("Space")
    page.clock.run_for(2_000)
    expect_move(page, 1)


def test_keys_in_a_choice_do_not_move(page):
    page.get_by_label("Speed").focus()
    page.keyboard.press("End")
    expect_move(page, 0)


def test_keys_in_a_wide_table_scroll_it_and_do_not_move(page):
    page.get_by_role("region", name="Seats").focus()
    page.keyboard.press("ArrowRight")
    expect_move(page, 0)


def test_link_of_a_fault_leads_back_to_the_board(open_page, address):
    page = open_page(address, width=390)
    fault = GAME.faults[1]
    page.get_by_role("link", name=f"after move {fault.move}", exact=True).click()
    expect_move(page, fault.move + 1)
    expect(page.get_by_role("button", name="Play")).to_be_in_viewport()


def test_slider_moves(page):
    page.get_by_role("slider", name="Move").fill("12")
    expect_move(page, 12)
    page.get_by_role("slider", name="Move").press("ArrowRight")
    expect_move(page, 13)


def test_address_has_the_move_and_the_seat(page, address):
    press_button(page, "One move forward")
    page.clock.run_for(200)
    expect(page).to_have_url(f"{address}#move=1")
    page.get_by_label("View").select_option("2")
    page.clock.run_for(200)
    expect(page).to_have_url(f"{address}#move=1&seat=2")


@pytest.mark.parametrize(
    ("hash_text", "position", "seat"),
    [
        ("#move=7", 7, ""),
        ("#move=7&seat=1", 7, "1"),
        ("#seat=3", 0, "3"),
        ("#move=99999", LAST, ""),
        ("#move=-4&seat=4", 0, ""),
        ("#move=x&seat=y", 0, ""),
    ],
)
def test_page_opens_at_the_move_of_its_address(open_page, address, hash_text, position, seat):
    page = open_page(address + hash_text)
    expect_move(page, position)
    expect(page.get_by_label("View")).to_have_value(seat)


def test_skip_link_keeps_the_move_and_the_seat(open_page, address):
    page = open_page(f"{address}#move=20&seat=2")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{address}#main")
    expect(page.locator("main")).to_be_focused()
    expect_move(page, 20)
    expect(page.get_by_label("View")).to_have_value("2")


def test_entry_of_the_log_leads_to_its_move(page, address):
    page.locator("#replay-log li").nth(4).get_by_role("link").click()
    expect_move(page, 5)
    expect(page).to_have_url(f"{address}#move=5")
    expect(page.locator("#replay-log [aria-current=step]")).to_have_count(1)


def test_seat_sees_its_own_hand_and_only_backs_of_the_others(open_page, address):
    page = open_page(f"{address}#move=20&seat=1")
    for seat in range(4):
        hand = page.locator(f".seat[data-seat='{seat}'] .hand")
        if seat == 1:
            expect(hand.locator(".back")).to_have_count(0)
        else:
            expect(hand).to_have_attribute("aria-label", re.compile(r"^hand: \d+ hidden$"))
            expect(hand.locator("[class*=' v']")).to_have_count(0)
    expect(page.locator("#replay-log")).to_contain_text("draws ? from the deck")


def test_seat_does_not_see_times_and_faults_of_others(open_page, address):
    others = next(seat for seat in range(4) if all(fault.seat != seat for fault in GAME.faults))
    page = open_page(f"{address}#seat={others}")
    expect(page.locator("#replay-times .charge")).to_have_count(0)
    expect(page.locator("#replay-log")).not_to_contain_text("no reply")
    first = next(at for at, move in enumerate(GAME.moves) if move.seat != others)
    expect(page.locator("#replay-log .time").nth(first)).to_have_text("")


def test_current_move_is_marked_in_forced_colours(open_page, address):
    page = open_page(f"{address}#move=3", forced_colors="active")
    colour = "element => getComputedStyle(element).borderLeftColor"
    current = page.locator("#replay-log a[aria-current]").evaluate(colour)
    other = page.locator("#replay-log a:not([aria-current])").first.evaluate(colour)
    background = page.locator("#replay-log").evaluate(
        "element => getComputedStyle(element).backgroundColor"
    )
    assert other == background
    assert current != background
    keys = page.locator(".keys i").evaluate_all(
        "all => all.map((each) => getComputedStyle(each).backgroundColor)"
    )
    assert len(set(keys)) == len(keys)
    assert background not in keys


def test_each_move_is_said(page):
    said = page.locator("#replay-said")
    expect(said).to_have_attribute("aria-live", "polite")
    narrator = Narrator([bot.name for bot in GAME.seating])
    for step in STEPS[:5]:
        page.keyboard.press("ArrowRight")
        for event in step.events:
            expect(said).to_contain_text(narrator.line(event).text.plain[10:])


def test_hands_points_and_turn_are_those_of_the_game(page):
    for step, _ in zip(replay_moves(GAME), range(30), strict=False):
        page.keyboard.press("ArrowRight")
        for seat in range(4):
            panel = page.locator(f".seat[data-seat='{seat}']")
            view = step.game.view(seat)
            points = sum(layer.size for layer in view.tables[seat]) - view.hand_sizes[seat]
            expect(panel.locator(".hand")).to_have_attribute(
                "aria-label", f"hand: {counts_name(view.hand)}"
            )
            expect(panel.locator(".points")).to_contain_text(re.compile(rf"^{points} point"))
        expect(page.locator(".seat.active")).to_have_attribute("data-seat", str(view.active_seat))


def test_end_shows_ranks_and_forfeits(open_page, address):
    page = open_page(f"{address}#move={LAST}")
    for seat, rank in enumerate(GAME.ranks):
        expect(page.locator(f".seat[data-seat='{seat}'] .marks")).to_contain_text(f"rank {rank}")
    expect(page.locator(".seat .forfeited")).to_have_count(1)
    expect(page.locator("#replay-log .end")).to_contain_text("forfeited: ")


def test_duel_has_a_ghost(open_page, tmp_path):
    page = open_page(write_replay(tmp_path, record("duel", 2)).as_uri())
    expect(page.locator(".pile.ghost")).to_contain_text("ghost 13")


def test_hostile_names_and_details_are_only_text(open_page, tmp_path):
    game = hostile(record("basic", 3, seed=2, strike_at=3))
    page = open_page(write_replay(tmp_path, game).as_uri())
    press_button(page, "Next fault")
    name = visible(f"{game.faults[0].seat}{HOSTILE}").strip()
    expect(page.locator("#replay-said .charge")).to_contain_text(name)
    expect(page.locator("main script")).to_have_count(0)
    page.get_by_text("End of the standard error").click()
    expect(page.locator("details pre")).to_contain_text("second line")


@pytest.mark.parametrize("width", [390, 1280, 2560])
def test_page_never_scrolls_sideways(open_page, tmp_path, width):
    for game in (record("expert", 5, seed=5, strike_at=6), hostile(record("duel", 2))):
        page = open_page(f"{write_replay(tmp_path, game).as_uri()}#move=60", width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_page_without_javascript_shows_result_faults_and_log(open_page, tmp_path):
    address = write_replay(tmp_path, GAME, log=["turn 1    bot0 (seat 0) plays 7"]).as_uri()
    page = open_page(address, java_script_enabled=False)
    expect(page.get_by_text("The replay on a board needs JavaScript.")).to_be_visible()
    expect(page.get_by_role("heading", name="Result")).to_be_visible()
    expect(page.get_by_text("no reply")).to_have_count(2)
    expect(page.get_by_text("turn 1 bot0 (seat 0) plays 7")).to_be_visible()
    expect(page.locator("#replay")).to_be_hidden()
    faults = page.get_by_role("region", name="Faults")
    expect(faults).to_contain_text(f"after move {GAME.faults[0].move}")
    assert faults.get_by_role("link").count() == 0


def test_page_with_javascript_hides_the_log_of_the_server(open_page, tmp_path):
    page = open_page(write_replay(tmp_path, GAME, log=["turn 1    a line"]).as_uri())
    expect(page.locator("#plain-log")).to_be_hidden()


def test_page_of_a_wrong_record_says_what_is_wrong(open_page, tmp_path):
    page = open_page(write_replay(tmp_path, GAME, problem="move 3: seat 1 moves").as_uri())
    expect(page.get_by_role("alert")).to_have_text("move 3: seat 1 moves")
    expect(page.get_by_role("heading", name="Result")).to_be_visible()


def test_replay_and_other_pages_share_no_class_of_their_styles():
    """The page of a game uses both files, so a rule of one would change the other."""
    found = [
        set(re.findall(r"\.([a-zA-Z][\w-]*)", (STATIC / name).read_text(encoding="utf-8")))
        for name in ("style.css", "replay.css")
    ]
    assert set.intersection(*found) == set()


def test_replay_works_under_a_strict_policy(open_page, tmp_path):
    write_replay(tmp_path, GAME)

    def serve(route):
        path = tmp_path / route.request.url.removeprefix(f"{SITE}/").partition("#")[0]
        route.fulfill(path=path, headers={"content-security-policy": POLICY})

    page = open_page(f"{SITE}/games/{GAME.game_id}.html", serve=serve)
    press_button(page, "Play")
    page.clock.run_for(4_000)
    expect_move(page, 4)
