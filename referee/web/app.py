"""Serve the pages of a league over HTTP.

The application only reads. It answers GET and HEAD requests for known hosts, and forbids everything that a page does
not need by a Content-Security-Policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from referee import __version__
from referee.errors import NotFoundError, RefereeError, UserError
from referee.web import pages
from referee.web.links import Links
from referee.web.templates import Page, render
from referee.web.views import LeagueViews

STATIC = Path(__file__).with_name("static")
_LINKS = Links(version=f"?v={__version__}")
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class _Headers:
    """Add the headers of `_HEADERS` to every response, also to errors."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [
                    (key.encode(), value.encode()) for key, value in _HEADERS.items()
                ]
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


def create_app(views: LeagueViews, *, hosts: list[str]) -> Starlette:
    """Return the application.

    Args:
        views: the league to show.
        hosts: the accepted values of the header Host, without a port. `*` accepts all.
    """

    def page(make: Callable[[Request], Page]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            return HTMLResponse(render(make(request), _LINKS))

        return answer

    routes = [
        Route("/", page(lambda _: pages.league_page(views, _LINKS))),
        Route("/games", page(lambda request: _games(views, request.query_params))),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(_Headers),
            Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False),
        ],
        exception_handlers={
            NotFoundError: _handle_error,
            RefereeError: _handle_error,
            HTTPException: _handle_error,
        },
    )


def _games(views: LeagueViews, query: Mapping[str, str]) -> Page:
    return pages.games_page(views, _LINKS, *pages.read_choice(query))


def _handle_error(_request: Request, error: Exception) -> Response:
    """Return a page that says what is wrong and leads back to the league."""
    if isinstance(error, HTTPException):
        status, text = error.status_code, error.detail
    elif isinstance(error, NotFoundError):
        status, text = 404, str(error)
    else:
        status, text = 400 if isinstance(error, UserError) else 500, str(error)
    title = "Not found" if status == 404 else "This page cannot be shown"  # noqa: PLR2004
    shown = Page("problem.html", title, {"explanation": text})
    headers = error.headers if isinstance(error, HTTPException) else None
    return HTMLResponse(render(shown, _LINKS), status, headers)
