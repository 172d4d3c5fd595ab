"""A browser draws the charts under the policy of the server, and draws them anew only when their data changes."""

from __future__ import annotations

import re
import shutil
import threading

import pytest
import uvicorn
from playwright.sync_api import expect, sync_playwright
from real_runs import place

from referee.store.league import League
from referee.web.app import create_app
from referee.web.views import LeagueViews

pytestmark = [
    pytest.mark.extended("opens pages in a browser"),
    pytest.mark.toolchain("chromium"),
    pytest.mark.unmeasured,
]
PATHS = {"/tournaments/cup": 1, "/bots/greedy@1.0": 2, "/histories/greedy@1.0": 1}
"""The number of charts of each page."""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Return the address of a server that shows a league in which a tournament was played."""
    with place(tmp_path_factory.mktemp("charts")) as here:
        done = here.referee("tournament", "run", here.tournament(matches=3))
        assert done.returncode == 0, done.stderr
        with League.open_read_only(here.folder / "league") as league:
            app = create_app(LeagueViews(league), hosts=["127.0.0.1"])
            config = uvicorn.Config(
                app, port=0, log_level="error", timeout_graceful_shutdown=1, lifespan="off"
            )
            server, started = uvicorn.Server(config), threading.Event()
            startup = server.startup

            async def start(sockets=None):
                await startup(sockets)
                started.set()

            server.startup = start
            thread = threading.Thread(target=server.run)
            thread.start()
            assert started.wait(60)
            port = server.servers[0].sockets[0].getsockname()[1]
            yield f"http://127.0.0.1:{port}"
            server.should_exit = True
            thread.join(60)


@pytest.fixture
def open_page(address):
    """Return a function that opens a page. At the end of the test, no page may have had a message in its console."""
    messages = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )

        def open_path(path, **options):
            page = browser.new_page(**options)
            page.on("console", lambda message: messages.append(message.text))
            page.on("pageerror", lambda error: messages.append(str(error)))
            page.goto(address + path)
            return page

        yield open_path
        browser.close()
    assert messages == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("path", "charts"), PATHS.items())
def test_every_chart_is_drawn_and_described(open_page, path, charts, scheme):
    page = open_page(path, color_scheme=scheme, viewport={"width": 390, "height": 800})
    expect(page.locator("figure.chart svg")).to_have_count(charts)
    for drawn in page.locator("figure.chart > div").all():
        expect(drawn).to_have_attribute("role", "graphics-document")
        expect(drawn).to_have_attribute("aria-label", re.compile("The table has the same figures"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_chart_is_drawn_anew_only_when_its_data_changes(open_page):
    page = open_page("/tournaments/cup")
    marks = page.locator("figure.chart svg[data-old]")
    expect(page.locator("figure.chart svg")).to_have_count(1)
    page.evaluate("document.querySelector('figure.chart svg').dataset.old = 'yes'")
    page.evaluate("document.dispatchEvent(new Event('htmx:afterSettle'))")
    expect(marks).to_have_count(1)
    page.evaluate(
        "const script = document.querySelector('figure.chart script');"
        "script.textContent = script.textContent.replace('95 %', '94 %');"
        "document.dispatchEvent(new Event('htmx:afterSettle'))"
    )
    expect(marks).to_have_count(0)
    expect(page.locator("figure.chart svg")).to_have_count(1)


def test_chart_stays_when_the_page_is_updated_in_place(open_page):
    page = open_page("/tournaments/cup")
    expect(page.locator("figure.chart svg")).to_have_count(1)
    page.evaluate("document.querySelector('figure.chart svg').dataset.old = 'yes'")
    with page.expect_response("**/tournaments/cup"):
        page.evaluate("htmx.trigger('#main', 'refresh')")
    page.evaluate("new Promise(requestAnimationFrame)")
    expect(page.locator("figure.chart svg[data-old]")).to_have_count(1)
