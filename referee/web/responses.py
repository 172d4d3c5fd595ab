"""Make responses of pages, of problems and of the files of the package."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from referee import __version__
from referee.web.templates import Links, Page, render

STATIC = Path(__file__).with_name("static")
LINKS = Links(version=f"?v={__version__}")
"""The addresses of all pages of the server."""
SCRIPT = "text/javascript"
COMPRESSION = 5
"""The level of gzip. Higher levels take more time and save little."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A page as it is sent."""

    html: bytes
    compressed: bytes
    etag: str

    @classmethod
    def of(cls, page: Page) -> Self:
        """Render and compress a page. The page is compressed once for all visitors."""
        html = render(page, LINKS).encode()
        digest = hashlib.sha256(html).hexdigest()[:32]
        return cls(html, gzip.compress(html, COMPRESSION, mtime=0), f'W/"{digest}"')

    def response(self, request: Request, newer_in_s: float | None) -> Response:
        """Return the page, or only its headers if the browser has it.

        `live.js` reads the header `x-newer-in-s`: after this time in seconds it loads an outdated page again. The header is
        empty if the page is up to date. It is never missing, because after a response with status 304 a browser keeps
        each header of the page that the response does not have.
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


class Assets(StaticFiles):
    """The files of the package. Their addresses have the version, so browsers can keep them."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return the response with a file. Raises HTTPException if there is no such file."""
        response = await super().get_response(path, scope)
        is_versioned = scope["query_string"] == LINKS.version.removeprefix("?").encode()
        response.headers["cache-control"] = "max-age=86400" if is_versioned else "no-cache"
        return response


def problem(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a page that says what is wrong and leads back to the league."""
    title = "Not found" if status == 404 else "This page cannot be shown"  # noqa: PLR2004
    shown = Page("problem.html", title, {"explanation": text}, live=False)
    return HTMLResponse(
        render(shown, LINKS), status, {"cache-control": "no-store", **(headers or {})}
    )
