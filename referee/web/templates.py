"""Render pages with Jinja2. Every text is escaped, because names, details and outputs come from strangers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from referee import __version__
from referee.reports.formats import duration, memory, moment, percent, visible
from referee.web.links import Links
from referee.web.tables import cut


@dataclass(frozen=True, slots=True)
class Page:
    """A page that is ready to be rendered."""

    template: str
    title: str
    values: dict[str, Any] = field(default_factory=dict)
    """The values that the template uses, besides `page`, `links` and `live`."""
    live: bool = True
    """On a server: load the page again when the league changes."""


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
