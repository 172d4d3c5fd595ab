"""Render pages with Jinja2, and make the addresses in them, for a server or for a report.

Every text is escaped, because names, details and outputs come from strangers.

The templates get every address from `Links`. On a server, an address begins with `/`. In a report, an address is relative, so
that the folder of the report can be moved. There, the address of a page ends with `.html`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from referee import __version__
from referee.reports.formats import duration, game_speed, memory, moment, percent, visible

STATIC = Path(__file__).with_name("static")
"""The folder of the style sheets and scripts."""
_UNSAFE = re.compile(r"[^a-z0-9._+@-]|^\.|\.$")
"""Matches each character that a file name must not contain, because some system forbids it, ignores it or gives it a special
meaning. Capital letters match too, because some systems ignore case. `~` matches too, because `file_name` writes each byte of
such a character as `~` and two hexadecimal digits."""
_LONGEST = 120
"""The limit of a text in tables, lists, headings and titles, in characters. A longer text is cut."""


@dataclass(frozen=True, slots=True)
class Links:
    """The addresses that one page can contain.

    Args:
        root: the beginning of every address in this page. On a server, it is `/`. In a report, it is the path from this page to
            the folder of the first page, such as `../`; it is empty for pages in this folder.
        files: the paths of all pages of the report, without `.html`; None on a server. If the report does not have a page, the
            method for its address returns None, and the template shows the text without a link.
        report: the tournament that the report shows; None on a server.
        version: appended to the addresses of assets, so that a browser loads them again when they change.
    """

    root: str = "/"
    files: AbstractSet[str] | None = None
    report: str | None = None
    version: str = ""

    def home(self) -> str:
        """Return the address of the first page. On a server, it shows the league; in a report, the tournament."""
        return self.root if self.files is None else f"{self.root}index.html"

    def tournament(self, name: str) -> str | None:
        """Return the address of a tournament. In a report, the first page is the page of its tournament."""
        return self.home() if name == self.report else self._page("tournaments", name)

    def bot(self, bot: str) -> str | None:
        """Return the address of a version of a bot, by `name@version`."""
        return self._page("bots", bot)

    def history(self, bot: str) -> str | None:
        """Return the address of the rating history of a version of a bot, by `name@version`."""
        return self._page("histories", bot)

    def pair(self, bot: str, other: str) -> str | None:
        """Return the address of the comparison of two bots, by `name@version`. Both orders have the same address."""
        return self._page("pairs", *sorted((bot, other)))

    def game(self, game_id: str) -> str | None:
        """Return the address of the replay of a game."""
        return self._page("games", game_id)

    def games(self, page: int = 1, **choice: str | None) -> str | None:
        """Return the address of a list of games.

        Args:
            page: the number of the page, from 1.
            choice: the fields of `GameChoice` that restrict the list. A report has only the list of its tournament, so the
                method returns None for any other list.
        """
        wanted = {key: value for key, value in choice.items() if value}
        if self.files is not None:
            is_whole = wanted in ({}, {"tournament": self.report})
            return self._page("games" if page == 1 else f"games-{page}") if is_whole else None
        query = urlencode(wanted | ({"page": str(page)} if page > 1 else {}))
        return f"{self.root}games?{query}" if query else f"{self.root}games"

    def seat(self) -> str | None:
        """Return the address of the page that leads people to the seat."""
        return f"{self.root}sit" if self.files is None else None

    def board(self, game_id: str) -> str:
        """Return the address of the data file of a replay."""
        return f"{self.root}boards/{self.segment(game_id)}.js"

    def phrases(self) -> str:
        """Return the address of the file with the sentences of the replay."""
        return f"{self.root}phrases.js"

    def download(self, tournament: str, ending: str) -> str | None:
        """Return the address of a tournament's data in a format, such as `csv`."""
        if self.files is not None:
            return None
        return f"{self.root}downloads/{quote(tournament, safe='')}.{ending}"

    def asset(self, name: str) -> str:
        """Return the address of a file of the package, such as `style.css`."""
        return f"{self.root}static/{name}{self.version}"

    def segment(self, text: str) -> str:
        """Return a text as one part of an address. In a report, the part is also the name of a file or folder."""
        return quote(text, safe="@+") if self.files is None else file_name(text)

    def _page(self, *parts: str) -> str | None:
        if self.files is None:
            return self.root + "/".join(map(self.segment, parts))
        path = "/".join(map(file_name, parts))
        return f"{self.root}{path}.html" if path in self.files else None


def file_name(text: str) -> str:
    """Return the name of a bot or the id of a game as a file name that every system allows. Different texts give different names."""
    return _UNSAFE.sub(lambda match: "".join(f"~{byte:02x}" for byte in match[0].encode()), text)


LINKS = Links(version=f"?v={__version__}")
"""The addresses of all pages of the server."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page that is ready to be rendered."""

    template: str
    title: str
    values: dict[str, Any] = field(default_factory=dict)
    """The values that the template uses, besides `page`, `links` and `live`."""
    live: bool = True
    """True to load the open page again when the league changes. In a report, this has no effect."""


def cut(text: str) -> str:
    """Cut a text for a table, a list or a heading if it is very long, and escape its control characters."""
    return visible(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("referee.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., str]] = {
        "visible": visible,
        "lines": lambda text: visible(text, lines=True),
        "cut": cut,
        "duration": duration,
        "game_speed": game_speed,
        "moment": moment,
        "percent": percent,
        "memory": memory,
    }
    environment.filters |= filters
    environment.globals["version"] = __version__
    return environment


_ENVIRONMENT = _environment()


def render(page: Page, links: Links) -> str:
    """Return a page as HTML."""
    template = _ENVIRONMENT.get_template(page.template)
    return template.render(page=page, links=links, live=links.files is None, **page.values)
