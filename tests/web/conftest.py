"""A server with a real league, and a browser that opens its pages."""

from __future__ import annotations

import shutil
import threading

import pytest
import uvicorn
from client import make_app
from playwright.sync_api import expect, sync_playwright
from real_runs import place

from referee.store.league import League
from referee.web.views import LeagueViews

PATIENCE_MS = 120_000
expect.set_options(timeout=PATIENCE_MS)  # a machine may be busy
CRASH = "import os, sys\nprint('Ouch', file=sys.stderr)\nos._exit(3)\n"


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Give a folder with a league in which a tournament was played. One of the bots, `crashes`, has ended in each game."""
    with place(tmp_path_factory.mktemp("league")) as made:
        crashes = made.bot("crashes", CRASH)
        file = made.tournament(bots=("random", "greedy", "bait", crashes), matches=3)
        done = made.referee("tournament", "run", file)
        assert done.returncode == 0, done.stderr
        yield made


@pytest.fixture(scope="module")
def league(here):
    with League.open_read_only(here.folder / "league") as opened:
        yield opened


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Return the address of a server that shows a league in which a tournament was played."""
    with place(tmp_path_factory.mktemp("charts")) as made:
        done = made.referee("tournament", "run", made.tournament(matches=3))
        assert done.returncode == 0, done.stderr
        with League.open_read_only(made.folder / "league") as opened:
            app = make_app(LeagueViews(opened), ["127.0.0.1"])
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
            page.set_default_timeout(PATIENCE_MS)
            page.on("console", lambda message: messages.append(message.text))
            page.on("pageerror", lambda error: messages.append(str(error)))
            page.goto(address + path)
            return page

        yield open_path
        browser.close()
    assert messages == []
