"""Serve the pages of a league over HTTP.

A page is rendered once for all visitors until the league changes. `guard` refuses what is not for the server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Mapping
from dataclasses import fields

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from referee.errors import NotFoundError, RefereeError, UserError
from referee.store import GameChoice
from referee.web import pages
from referee.web.board import board_script, phrases_script
from referee.web.bot_pages import bot_page, history_page, pair_page
from referee.web.cache import Cache
from referee.web.guard import Guard
from referee.web.live import Feed
from referee.web.lobby import Lobby
from referee.web.responses import COMPRESSION, LINKS, SCRIPT, STATIC, Assets, Rendered, problem
from referee.web.seat_pages import SEAT, seat_routes
from referee.web.templates import Page
from referee.web.tournament_pages import download, tournament_page
from referee.web.views import LeagueViews

_KEPT_PAGES = 100
_LIST_KEYS = ("page", *(field.name for field in fields(GameChoice)))
"""What the address of a list of games can have after the question mark."""


def create_app(
    views: LeagueViews, lobby: Lobby, *, hosts: Container[str], feed: Feed | None = None
) -> ASGIApp:
    """Return the application.

    Args:
        views: the league to show.
        lobby: the games with people.
        hosts: the accepted values of the header Host, without a port. `*` accepts all.
        feed: the changes of the league.
    """
    kept = Cache(views.league.change_mark, time.monotonic, limit=_KEPT_PAGES)
    feed = feed or Feed(views.league.change_mark)

    def page(make: Callable[[Request], Page], *keys: str) -> Callable[[Request], Response]:
        """Return an endpoint that shows a page. `keys` are the keys that its query can have."""

        def respond(request: Request) -> Response:
            query = tuple((key, request.query_params.get(key)) for key in keys)
            rendered, newer_in_s = kept.look_up(
                (request.url.path, query), lambda: Rendered.of(make(request))
            )
            return rendered.response(request, newer_in_s)

        return respond

    def page_of(make: Callable[..., Page]) -> Callable[[Request], Response]:
        """Return an endpoint that shows a page. `make` gets the parts of the page's path by name."""
        return page(lambda request: make(views, LINKS, **request.path_params))

    routes = [
        Route("/", page(lambda _: pages.league_page(views, LINKS))),
        Route("/games", page(lambda request: _games(views, request.query_params), *_LIST_KEYS)),
        Route("/tournaments/{name:path}", page_of(tournament_page)),
        Route("/bots/{bot:path}", page_of(bot_page)),
        Route("/histories/{bot:path}", page_of(history_page)),
        Route("/pairs/{bot}/{other}", page_of(pair_page)),
        Route("/games/{game_id:path}", page_of(pages.game_page)),
        Route("/boards/{game_id:path}.js", lambda request: _board(views, request)),
        Route("/phrases.js", lambda _: Response(phrases_script(), media_type=SCRIPT)),
        Route("/downloads/{file:path}", lambda request: _download(views, request)),
        Route("/events", feed.respond),
        *seat_routes(lobby),
        Mount("/static", Assets(directory=STATIC)),
    ]
    handlers = (NotFoundError, RefereeError, HTTPException, Exception)
    app = Starlette(
        routes=routes,
        middleware=[Middleware(GZipMiddleware, compresslevel=COMPRESSION)],
        exception_handlers=dict.fromkeys(handlers, _handle_error),
    )
    return Guard(app, hosts, forms=SEAT)


def _board(views: LeagueViews, request: Request) -> Response:
    game_id = request.path_params["game_id"]
    return Response(board_script(game_id, views.board(game_id)), media_type=SCRIPT)


def _download(views: LeagueViews, request: Request) -> Response:
    content, media_type = download(views, request.path_params["file"])
    return Response(content, media_type=media_type, headers={"content-disposition": "attachment"})


def _games(views: LeagueViews, query: Mapping[str, str]) -> Page:
    return pages.games_page(views, LINKS, *pages.read_choice(query))


def _handle_error(_request: Request, error: Exception) -> Response:
    """Return a page that says what is wrong and leads back to the league."""
    if isinstance(error, HTTPException):
        is_missing = error.status_code == 404  # noqa: PLR2004
        text = "There is no page at this address." if is_missing else error.detail
        return problem(error.status_code, text, error.headers)
    if isinstance(error, NotFoundError):
        return problem(404, str(error))
    if isinstance(error, RefereeError):
        return problem(400 if isinstance(error, UserError) else 500, str(error))
    return problem(500, "This is a bug of the referee. The terminal of the server shows more.")
