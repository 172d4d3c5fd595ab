"""Serve the pages of a league over HTTP.

A page is rendered and compressed once for all visitors. After the league has changed, the next request for the page makes it again. But
no page is made again before its delay of at most 30 s is over (see `cache`).

`Guard` refuses requests that are not for this server. Its headers forbid the browser everything that the pages do not need. A
stranger can make the host name of a web site point to the address of this machine. Then a page of this site can read what this server
answers (DNS rebinding). But the browser still sends the stranger's host name in the header Host. So the server answers only requests
with a known host name.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
import time
from collections.abc import Callable, Container, Hashable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Self
from weakref import WeakValueDictionary

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from referee.errors import NotFoundError, RefereeError, StoreError, UserError, cut_middle
from referee.store.league import League
from referee.web import pages
from referee.web.board import board_script, phrases_script
from referee.web.bot_pages import bot_page, history_page, pair_page
from referee.web.cache import Cache, NotReadyError
from referee.web.lobby import Lobby
from referee.web.problems import explain
from referee.web.seat_pages import SCRIPT, SEAT, Endpoint, seat_routes
from referee.web.templates import LINKS, STATIC, Page, render
from referee.web.views import LeagueViews

_COMPRESSION = 5
"""The level of gzip. Higher levels take more time and save little."""
_KEPT_PAGES = 100
_MAX_TEXT = 1_000
"""A page shows at most about this number of characters of an error."""
_AGAIN_S = 5
"""After an error, an open page is loaded again after this time in seconds."""
_HOST = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::[0-9]*)?")
"""A header Host: a name or an address, IPv6 in brackets, and perhaps a port."""
_REFUSED_GZIP = re.compile(rb"gzip\s*;\s*q=0(\.0*)?\s*(,|$)", re.IGNORECASE)
"""This pattern is found in a header Accept-Encoding if the header refuses gzip."""
_HTTP_ERRORS = {
    404: "There is no page at this address.",
    405: "This address does not accept the method of this request.",
}
"""The texts of the error pages for these statuses. For any other HTTP error, the page has the text of the exception."""
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def create_app(
    views: LeagueViews, lobby: Lobby, *, hosts: Container[str], events: Endpoint
) -> ASGIApp:
    """Return the application.

    Args:
        views: the league to show.
        lobby: the games with people.
        hosts: the accepted values of the header Host, without a port. `*` accepts all.
        events: the endpoint that tells open pages, by a stream of events, when the league has changed.
    """
    handlers = (NotFoundError, RefereeError, HTTPException, NotReadyError, Exception)
    app = Starlette(
        routes=_list_routes(_Endpoints(views), lobby, events),
        middleware=[Middleware(GZipMiddleware, compresslevel=_COMPRESSION)],
        exception_handlers=dict.fromkeys(handlers, partial(_handle_error, views.league)),
    )
    return Guard(app, hosts, forms=SEAT)


def _list_routes(endpoints: _Endpoints, lobby: Lobby, events: Endpoint) -> list[BaseRoute]:
    """Return the routes of the server: each address, and what answers the requests for it."""
    page = endpoints.page
    return [
        Route("/", endpoints.league),
        Route("/games", endpoints.games),
        Route("/tournaments/{name:path}", page(pages.tournament_page)),
        Route("/bots/{bot:path}", page(bot_page)),
        Route("/histories/{bot:path}", page(history_page)),
        Route("/pairs/{bot}/{other}", page(pair_page)),
        Route("/games/{game_id:path}", page(pages.game_page)),
        Route("/boards/{game_id:path}.js", endpoints.board),
        Route("/phrases.js", lambda _: Response(phrases_script(), media_type=SCRIPT)),
        Route("/downloads/{file:path}", endpoints.download),
        Route("/events", events),
        *seat_routes(lobby),
        Mount("/static", _Assets(directory=STATIC)),
    ]


class _Endpoints:
    """The functions that answer requests for the league. The 100 pages that were requested last are kept."""

    def __init__(self, views: LeagueViews) -> None:
        self._views = views
        self._kept = Cache(views.league.change_mark, time.monotonic, limit=_KEPT_PAGES)
        self._first = WeakValueDictionary[Hashable, asyncio.Lock]()
        """The locks of pages that are being made for the first time, by the key of the page. A request that waits for a lock needs no thread."""

    def page(self, make: Callable[..., Page]) -> Endpoint:
        """Return an endpoint that shows a page. `make` gets the parameters of the path as keyword arguments."""

        async def respond(request: Request) -> Response:
            return await self._show(
                request, lambda: make(self._views, LINKS, **request.path_params)
            )

        return respond

    async def league(self, request: Request) -> Response:
        """Return the first page."""
        return await self._show(request, lambda: pages.league_page(self._views, LINKS))

    async def games(self, request: Request) -> Response:
        """Return a page of the list of games."""
        choice, number = pages.read_choice(request.query_params.multi_items())
        return await self._show(
            request,
            lambda: pages.games_page(self._views, LINKS, choice, number),
            (choice, number),
        )

    def board(self, request: Request) -> Response:
        """Return the data file of a replay."""
        game_id = request.path_params["game_id"]
        return Response(board_script(game_id, self._views.board(game_id)), media_type=SCRIPT)

    def download(self, request: Request) -> Response:
        """Return the data of a tournament as a file."""
        content, media_type = pages.download(self._views, request.path_params["file"])
        return Response(
            content, media_type=media_type, headers={"content-disposition": "attachment"}
        )

    async def _show(
        self, request: Request, make: Callable[[], Page], query: Hashable = ()
    ) -> Response:
        """Return a page. Make it anew if the kept one is outdated and its delay is over.

        `query` is what the page depends on besides its path. While a page is made for the first time, other requests for it wait here
        and not in the cache. In the cache, each of them would block one of the few threads.
        """
        key = (_path(request), query)
        turn = nullcontext() if key in self._kept else self._first.setdefault(key, asyncio.Lock())
        async with turn:
            rendered, newer_in_s = await run_in_threadpool(
                self._kept.look_up, key, lambda: _Rendered.of(make())
            )
        return rendered.response(request, newer_in_s)


def _handle_error(league: League, _request: Request, error: Exception) -> Response:
    """Return a page that says what is wrong and leads back to the league. The page does not say where the league is stored."""
    if isinstance(error, HTTPException):
        text = _HTTP_ERRORS.get(error.status_code, error.detail)
        return _problem(error.status_code, text, error.headers)
    if isinstance(error, NotReadyError):
        text = "The ratings are being computed. Try again in some seconds."
        return _problem(503, text, {"retry-after": str(_AGAIN_S)})
    if isinstance(error, NotFoundError):
        return _problem(404, explain(league, error))
    if isinstance(error, StoreError):
        return _problem(503, explain(league, error), {"retry-after": str(_AGAIN_S)})
    if isinstance(error, RefereeError):
        return _problem(400 if isinstance(error, UserError) else 500, explain(league, error))
    return _problem(500, "This is a bug of the referee. The terminal of the server shows more.")


class Guard:
    """Refuse requests with an unknown host or a method that is not allowed, and add `_HEADERS` to every response, also to errors.

    Remove a header Accept-Encoding that refuses gzip. Otherwise the response would be compressed, because Starlette and `_Rendered`
    only look for the word gzip in this header. They would find it in `gzip;q=0` too.

    Args:
        app: answers all other requests.
        hosts: the accepted names in the header Host. `*` accepts all.
        forms: a path. Some pages below it accept POST, so there the application itself refuses wrong methods. Everywhere else, only
            GET and HEAD reach the application.
    """

    def __init__(self, app: ASGIApp, hosts: Container[str], *, forms: str) -> None:
        self._app = app
        self._hosts = hosts
        self._forms = forms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", ()),
                    *((key.encode(), value.encode()) for key, value in _HEADERS.items()),
                ]
            await send(message)

        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = [
            (key, value)
            for key, value in scope["headers"]
            if key != b"accept-encoding" or not _REFUSED_GZIP.search(value)
        ]
        scope = {**scope, "headers": headers}
        await (self._refuse(Request(scope)) or self._app)(scope, receive, send_with_headers)

    def _refuse(self, request: Request) -> Response | None:
        """Return an error page if the application must not get the request; otherwise None."""
        host = _HOST.fullmatch(request.headers.get("host", ""))
        if host is None:
            return _problem(400, "The header Host of this request is not a name or an address.")
        if "*" not in self._hosts and (host["address"] or host["name"]).lower() not in self._hosts:
            return _problem(
                400,
                "This server has another host name. Use the address that it printed at its start.",
            )
        has_forms = _path(request).startswith(f"{self._forms}/")
        if request.method not in {"GET", "HEAD"} and not has_forms:
            return _problem(405, "This page can only be read.", {"allow": "GET, HEAD"})
        return None


def _path(request: Request) -> str:
    """Return the path of a request.

    Do not use `request.url` instead, because its path can be another one. Starlette 1.0 makes this URL from any text in the header Host,
    and Starlette 1.10 escapes some characters of the path.
    """
    path: str = request.scope["path"]
    return path


@dataclass(frozen=True, slots=True)
class _Rendered:
    """A page as it is sent."""

    html: bytes
    compressed: bytes
    etag: str

    @classmethod
    def of(cls, page: Page) -> Self:
        """Render and compress a page. The page is compressed once for all visitors."""
        html = render(page, LINKS).encode()
        digest = hashlib.sha256(html).hexdigest()[:32]
        return cls(html, gzip.compress(html, _COMPRESSION, mtime=0), f'W/"{digest}"')

    def response(self, request: Request, newer_in_s: float | None) -> Response:
        """Return the page, or only its headers if the browser has it.

        `live.js` reads the header `x-newer-in-s`: after this time in seconds it loads an outdated page again. The header is
        empty if the page is up to date. It is always sent, because after a response with status 304 a browser uses the old
        value of each header that this response lacks.
        """
        headers = {
            "etag": self.etag,
            "cache-control": "no-cache",
            "x-newer-in-s": "" if newer_in_s is None else f"{newer_in_s:.1f}",
        }
        known = request.headers.get("if-none-match", "")
        if self.etag in (tag.strip() for tag in known.split(",")):
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers |= {"content-encoding": "gzip", "vary": "Accept-Encoding"}
            return HTMLResponse(self.compressed, headers=headers)
        return HTMLResponse(self.html, headers=headers)


class _Assets(StaticFiles):
    """The files of the package. Their addresses contain the version of the package, so browsers can keep the files for a day."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return the response with a file. Raises HTTPException if there is no such file."""
        response = await super().get_response(path, scope)
        is_versioned = scope["query_string"] == LINKS.version.removeprefix("?").encode()
        response.headers["cache-control"] = "max-age=86400" if is_versioned else "no-cache"
        return response


def _problem(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a page that says what is wrong and leads back to the league.

    An open page that gets this response instead of its new content stays as it is. The header `x-newer-in-s` makes `live.js` try again.
    """
    title = "Not found" if status == 404 else "This page cannot be shown"  # noqa: PLR2004
    shown = Page("problem.html", title, {"explanation": cut_middle(text, _MAX_TEXT)}, live=False)
    return HTMLResponse(
        render(shown, LINKS),
        status,
        {"cache-control": "no-store", "x-newer-in-s": str(_AGAIN_S), **(headers or {})},
    )
