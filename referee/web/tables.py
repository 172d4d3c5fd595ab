"""Turn rows of `reports` into tables for the templates, with links to the pages of what they name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from referee.reports.formats import Field, fields_of, plain, visible
from referee.web.links import Links

AddressOf = Callable[[str], str | None]
"""A function that returns the address of the page for a value, such as the name of a bot. None: there is no page."""
Addresses = Mapping[str, AddressOf]
"""The function for each column with links, by the key of the column."""
_LONGEST = 120
"""A longer text is cut in a table. The page of the bot or of the game has it whole."""


class CellText(NamedTuple):
    """A piece of a cell: a text, and the address of its link."""

    text: str
    address: str | None = None


class Cell(NamedTuple):
    """A cell of a table."""

    texts: tuple[CellText, ...]
    right: bool
    """Align right, for numbers."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table that a template can show."""

    caption: str
    heads: tuple[tuple[str, bool], ...]
    """The title of each column, and whether it is aligned right."""
    rows: tuple[tuple[Cell, ...], ...]


def tables(
    row_type: type,
    rows: Iterable[object],
    links: Links,
    caption: str,
    *,
    data: bool = False,
    addresses: dict[str, AddressOf] | None = None,
) -> list[Table]:
    """Return a table for each section of the rows, or one table if the row type has no sections.

    Args:
        row_type: a dataclass whose fields are declared with `Column`.
        rows: the rows. Rows of the same section must follow each other.
        links: the addresses of the page.
        caption: the title of each table, followed by the name of the section.
        data: True to show also the columns that the command line writes only as data.
        addresses: functions for some columns, by key. They replace those of `_addresses`.
    """
    found = _addresses(links) | (addresses or {})
    fields = fields_of(row_type)
    section = next((field.key for field in fields if field.column.section), None)
    shown = [
        field
        for field in fields
        if not field.column.section and (data or not field.column.data_only)
    ]
    heads = tuple((field.column.title, field.column.right) for field in shown)
    return [
        Table(
            caption=", ".join(filter(None, (caption, name))),
            heads=heads,
            rows=tuple(tuple(_cell(field, row, found) for field in shown) for row in group),
        )
        for name, group in groupby(
            rows, lambda row: "" if section is None else str(getattr(row, section))
        )
    ]


def details(row: object, links: Links) -> list[tuple[str, Cell]]:
    """Return one row as pairs of a title and a cell."""
    return [
        (field.column.title, _cell(field, row, _addresses(links)))
        for field in fields_of(type(row))
        if not field.column.data_only
    ]


def cut(text: str) -> str:
    """Return a text for a table: control characters escaped, and cut if it is very long."""
    return visible(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")


def _cell(field: Field, row: object, addresses: Addresses) -> Cell:
    value: Any = getattr(row, field.key)
    if value is None:
        return Cell((CellText(field.column.empty),), field.column.right)
    address_of = addresses.get(field.key)
    # Some rows have a number under such a key: `bots` of a tournament is the number of its bots.
    if address_of is None or not value or not isinstance(value, str | tuple):
        return Cell((CellText(cut(field.column.show(value))),), field.column.right)
    values: Sequence[str] = value if isinstance(value, tuple) else (value,)
    return Cell(
        tuple(CellText(cut(plain(each)), address_of(each)) for each in values), field.column.right
    )


def _addresses(links: Links) -> dict[str, AddressOf]:
    """Return the usual function for each column with links."""
    return {
        "bot": links.bot,
        "bots": links.bot,
        "other": links.bot,
        "below": links.bot,
        "tournament": links.tournament,
        "game_id": links.game,
    }
