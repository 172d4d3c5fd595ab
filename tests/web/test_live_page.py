"""Test in a browser that an open page follows the league: updates, holding them, and a lost connection."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing

import pytest
from playwright.sync_api import expect, sync_playwright
from real_runs import place
from served import PATIENCE_S, address_in, serving, store_game

from referee.errors import Cause, Evidence
from referee.records import Fault
from referee.store.league import League
from referee.web.views import REPLAY_HIDDEN

pytestmark = [
    pytest.mark.extended("opens pages in a browser"),
    pytest.mark.toolchain("chromium"),
]
expect.set_options(timeout=1000 * PATIENCE_S)


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    with place(tmp_path_factory.mktemp("live"), apart=True) as made:
        done = made.referee("tournament", "run", made.tournament(matches=1))
        assert done.returncode == 0, done.stderr
        yield made


@pytest.fixture
def page(browser):
    """Return a page that notes errors; a blocked style or script is an error."""
    opened = browser.new_page()
    opened.set_default_timeout(1000 * PATIENCE_S)
    opened.problems = []
    opened.on("pageerror", lambda error: opened.problems.append(str(error)))
    opened.on(
        "console",
        lambda message: opened.problems.append(message.text) if message.type == "error" else None,
    )
    yield opened
    opened.close()


def state(page):
    return page.get_by_role("status").first


def test_stored_game_appears_in_an_open_page_and_the_focus_stays(page, here):
    with serving(here) as server:
        page.goto(server.address)
        expect(state(page)).to_have_text("Live")
        link = page.get_by_role("main").get_by_role("link", name="cup").first
        link.focus()
        page.evaluate("document.getElementById('main').firstElementChild.marked = true")
        store_game(here, "new-1")
        expect(page.get_by_role("main")).to_contain_text("new-1")
        expect(link).to_be_focused()
        assert page.evaluate("document.getElementById('main').firstElementChild.marked")
    assert page.problems == []


def test_values_that_the_reader_chose_stay(page, here):
    with serving(here) as server:
        page.goto(f"{server.address}games")
        expect(state(page)).to_have_text("Live")
        page.get_by_label("bot", exact=True).select_option("greedy@1.0")
        store_game(here, "new-2")
        expect(page.get_by_role("main")).to_contain_text("new-2")
        expect(page.get_by_label("bot", exact=True)).to_have_value("greedy@1.0")


def test_details_that_the_reader_opened_stay_open(page, here):
    with serving(here) as server:
        page.goto(server.address)
        expect(state(page)).to_have_text("Live")
        details = page.evaluate("""() => {
            const box = document.createElement("div");
            box.innerHTML = "<details open><summary>a</summary><p>old</p></details>";
            Idiomorph.morph(box, "<details><summary>a</summary><p>new</p></details>", { morphStyle: "innerHTML" });
            return [box.firstChild.open, box.textContent];
        }""")
    assert details == [True, "anew"]


def test_focus_stays_on_the_link_of_a_game_when_newer_games_appear_above_it(page, here):
    store_game(here, "focused")
    with serving(here) as server:
        page.goto(server.address)
        expect(state(page)).to_have_text("Live")
        link = page.get_by_role("main").get_by_role("link", name="focused")
        link.focus()
        store_game(here, "above-it")
        expect(page.get_by_role("main")).to_contain_text("above-it")
        expect(link).to_be_focused()
    assert page.problems == []


def test_opened_fault_stays_open_when_newer_faults_appear_above_it(page, here):
    faults = [Fault(0, Cause.TIMEOUT, forfeit=False, move=0, evidence=Evidence(detail="old"))]
    store_game(here, "fault-1", faults=faults)
    with League.open(here.folder / "league", create=False) as league:
        bot = league.record("fault-1").seating[0]
    with serving(here) as server:
        page.goto(f"{server.address}bots/{bot}")
        expect(state(page)).to_have_text("Live")
        page.locator("details.fault summary").first.click()
        store_game(here, "fault-2", faults=faults)
        expect(page.locator("details.fault")).to_have_count(2)
        opened = page.locator("details.fault[open]")
        expect(opened).to_have_count(1)
        expect(opened).to_contain_text("fault-1")
    assert page.problems == []


def test_page_that_is_opened_in_the_background_keeps_no_connection(page, here):
    page.add_init_script(
        "window.isHidden = true;"
        "Object.defineProperty(document, 'hidden', {get: () => window.isHidden});"
    )
    with serving(here) as server:
        page.goto(server.address)
        page.wait_for_timeout(1000)
        expect(state(page)).to_have_text("Connecting")
        page.evaluate(
            "window.isHidden = false; document.dispatchEvent(new Event('visibilitychange'))"
        )
        expect(state(page)).to_have_text("Live")
    assert page.problems == []


def test_held_page_stays_as_it_is_until_it_is_resumed(page, here):
    with serving(here) as server:
        page.goto(server.address)
        expect(state(page)).to_have_text("Live")
        page.get_by_role("button", name="Hold updates").press("Enter")
        expect(state(page)).to_have_text("Updates are held")
        with server.stream() as (_, events):
            next(events)
            store_game(here, "new-3")
            next(events)
            next_page = server.shows("", "new-3")
        assert next_page
        expect(page.get_by_role("main")).not_to_contain_text("new-3")
        page.get_by_role("button", name="Hold updates", pressed=True).click()
        expect(page.get_by_role("main")).to_contain_text("new-3")
        expect(state(page)).to_have_text("Live")
    assert page.problems == []


def test_page_connects_again_after_the_server_was_restarted(page, here):
    with serving(here) as server:
        page.goto(server.address)
        expect(state(page)).to_have_text("Live")
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(PATIENCE_S)
        expect(state(page)).to_have_text("Connection lost. Trying again.")
    store_game(here, "new-4")
    with here.started("serve", "--port", server.port) as process:
        address_in(process)
        expect(state(page)).to_have_text("Live")
        expect(page.get_by_role("main")).to_contain_text("new-4")


def test_page_is_readable_without_javascript(browser, here):
    with serving(here) as server:
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(server.address)
        expect(page.get_by_role("main")).to_contain_text("cup")
        expect(state(page)).to_have_text("Live updates need JavaScript.")
        expect(page.get_by_role("button")).to_have_count(0)
        context.close()


def test_replay_appears_when_all_games_of_the_deal_are_played(page, tmp_path):
    with place(tmp_path, apart=True) as made:
        done = made.referee("tournament", "run", made.tournament(matches=1))
        assert done.returncode == 0, done.stderr
        with closing(sqlite3.connect(made.folder / "league" / "league.db")) as database, database:
            key = "(SELECT id FROM games WHERE name = 'cup-2')"
            for table in ("faults", "records", "seats", "results"):
                database.execute(f"DELETE FROM {table} WHERE game_id = {key}")  # noqa: S608
        with serving(made) as server:
            page.goto(f"{server.address}games/cup-1")
            expect(state(page)).to_have_text("Live")
            expect(page.get_by_role("alert")).to_have_text(REPLAY_HIDDEN)
            done = made.referee("tournament", "resume", "cup")
            assert done.returncode == 0, done.stderr
            expect(page.get_by_role("region", name="Replay")).to_be_visible()
    assert page.problems == []
