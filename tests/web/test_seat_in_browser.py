"""A person plays a whole game against bots in a browser, from the page of the league to the replay of the stored game."""

from __future__ import annotations

import random
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright
from real_runs import place
from served import PATIENCE_S, serving
from sights import keep_screenshot, violations

pytestmark = [
    pytest.mark.extended("opens pages in a browser"),
    pytest.mark.toolchain("chromium"),
    pytest.mark.unmeasured,
]
FINISHED_OR_TURN = """() => {
    document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "End", bubbles: true}));
    return document.querySelector("#sit .choice:enabled") || !document.querySelector("#sit-end").hidden;
}"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with place(tmp_path_factory.mktemp("seat"), apart=True) as here:
        done = here.referee("tournament", "run", here.tournament(matches=1))
        assert done.returncode == 0, done.stderr
        with serving(here) as server:
            yield server


@pytest.fixture
def open_page():
    """Return a function that opens a page. At the end of the test, no page may have had a message in its console."""
    messages = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )

        def open_address(address, **options):
            page = browser.new_page(**options)
            page.set_default_timeout(1000 * PATIENCE_S)
            page.on("console", lambda message: messages.append(message.text))
            page.on("pageerror", lambda error: messages.append(str(error)))
            page.goto(address)
            return page

        yield open_address
        browser.close()
    refused = "Failed to load resource: the server responded with a status of 400"
    assert [message for message in messages if not message.startswith(refused)] == []


def test_whole_game_is_played_from_the_seat(open_page, served):
    page = open_page(served.address)
    page.get_by_role("link", name="Sit down").click()
    expect(page.get_by_text("referee serve", exact=True)).to_be_visible()
    page.goto(served.seat)
    page.get_by_label("Your name").fill("anna")
    page.get_by_label("Ruleset").select_option("basic")
    page.get_by_label("Player 1").select_option("greedy@1.0")
    page.get_by_label("Player 2").select_option("you")
    page.get_by_label("Player 3").select_option("random@1.0")
    page.get_by_label("Player 4").select_option("")
    page.get_by_role("button", name="Start the game").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "basic: you against greedy and random"
    )
    chance, decisions = random.Random(4), 0
    while page.wait_for_function(FINISHED_OR_TURN) and page.locator("#sit-end").is_hidden():
        choices = page.locator("#sit .choice")
        before = page.locator("#replay-count").inner_text()
        choices.nth(chance.randrange(choices.count())).click()
        expect(page.locator("#replay-count")).not_to_have_text(before)
        decisions += 1
    assert decisions > 10
    expect(page.locator("#sit-state")).to_contain_text("You are")
    expect(page.locator("#sit-state")).to_contain_text("The game is stored.")
    expect(page.locator("#sit-problem")).to_be_hidden()
    keep_screenshot(page, "seat-finished")
    page.get_by_role("link", name="Replay with all cards").click()
    expect(page.locator("#replay-board .seat").first).to_be_visible()
    assert "/games/" in page.url
    expect(page.get_by_role("table", name="Seats")).to_contain_text("anna@person")
    page.goto(served.address)
    expect(page.get_by_role("table", name="Games")).to_contain_text("anna@person")


@pytest.mark.parametrize(
    ("width", "scheme"), [(390, "light"), (390, "dark"), (1280, "dark"), (2560, "light")]
)
def test_lobby_violates_no_wcag_and_does_not_scroll_sideways(open_page, served, width, scheme):
    page = open_page(served.seat, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.get_by_label("Player 2").select_option("")
    page.get_by_role("button", name="Start the game").click()
    if page.locator(".sit").count():
        page.get_by_role("button", name="Leave the game").click()
    keep_screenshot(page, f"lobby-{width}-{scheme}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []


def test_second_click_while_the_server_is_slow_starts_no_second_game(open_page, served):
    page = open_page(served.seat)
    sent = []

    def hold(route):
        """Make the request wait until the test lets it go on."""
        sent.append(route)

    page.route(served.seat, hold)
    page.evaluate("""() => {
        const click = () => document.querySelector(".start button").click();
        click();
        setTimeout(click, 200);
    }""")
    page.wait_for_timeout(400)
    assert [each.request.method for each in sent] == ["POST"]
    sent[0].continue_()
    page.get_by_role("button", name="Leave the game").click()


def test_refused_form_keeps_what_was_chosen(open_page, served):
    page = open_page(served.seat, java_script_enabled=False)
    page.get_by_label("Your name").fill("greedy")
    page.get_by_label("Ruleset").select_option("duel")
    page.get_by_label("Store the finished game").uncheck()
    page.get_by_role("button", name="Start the game").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_css("border-left-width", "4px")
    expect(page.get_by_label("Your name")).to_have_value("greedy")
    expect(page.get_by_label("Ruleset")).to_have_value("duel")
    expect(page.get_by_label("Store the finished game")).not_to_be_checked()
