"""Send requests to an application without a server."""

from __future__ import annotations

import asyncio

import httpx

from referee.sandbox import Rung
from referee.web.app import create_app
from referee.web.lobby import Lobby
from referee.web.serve import Feed

HOST = "referee.test"


def make_app(views, hosts=(HOST,)):
    """Return the application for a league. Nothing can be stored."""
    lobby, feed = Lobby(views.league, _refuse, Rung.NONE), Feed(views.league.change_mark)
    return create_app(views, lobby, hosts=hosts, events=feed.respond)


def _refuse():
    raise AssertionError("this league is open for reading only")


class Client:
    """A browser without cookies and cache."""

    def __init__(self, app):
        self._app = app

    def request(self, method, path, headers=None):
        """Return the response; a bug of the application gives one too."""

        async def send():
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
                return await client.request(method, path, headers=headers)

        return asyncio.run(send())

    def get(self, path, headers=None):
        return self.request("GET", path, headers)
