"""Turn rows of `reports` into tables and crosstables for the templates. Names of bots, tournaments and games become links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import quote

from referee.ratings.analysis import MeetingFigures
from referee.reports.formats import Field, fields_of, plain
from referee.web.templates import Links, cut

AddressOf = Callable[[str], str | None]
"""A function that takes a value, such as the name of a bot, and returns the address of its page; None if there is no page."""
Addresses = Mapping[str, AddressOf]
"""The function for each column with links, by the key of the column."""


_MAX_SHADE = 10
"""The shade of a crosstable cell with a share of 100 %. A share of 0 % has the shade 0. The style sheet has a class for each shade."""


class CellText(NamedTuple):
    """A piece of a cell: a text, and the address of its link."""

    text: str
    address: str | None = None
    id: str | None = None
    """The id of the link on the page. With it, an update of the page recognises the row, so that the focus stays on the
    link even if rows are added above it."""


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
    """Return a table for each section of the rows. Without sections, return one table; without rows, none.

    Args:
        row_type: a dataclass whose fields are declared with `Column`.
        rows: the rows. Rows of the same section must follow each other.
        links: the addresses of the page.
        caption: the title of each table. The name of the section is added to it.
        data: True to show also the columns with `data_only`.
        addresses: functions for some columns, by key. They replace those of `_addresses`.
    """
    address_of_key = _addresses(links) | (addresses or {})
    fields = fields_of(row_type)
    section = next((field.key for field in fields if field.column.section), None)
    shown = [
        field
        for field in fields
        if not field.column.section and (data or not field.column.data_only)
    ]
    heads = tuple((field.column.title, field.column.right) for field in shown)
    made = []
    for name, group in groupby(
        rows, lambda row: "" if section is None else str(getattr(row, section))
    ):
        title = ", ".join(filter(None, (caption, name)))
        cells = [tuple(_cell(field, row, address_of_key) for field in shown) for row in group]
        made.append(Table(title, heads, tuple(_with_ids(title, cells))))
    return made


def _with_ids(caption: str, rows: Sequence[tuple[Cell, ...]]) -> Iterator[tuple[Cell, ...]]:
    """Give one link of each row an id: the link in the column that has the most different links.

    If several rows have the same link in this column, only the first of them gets an id.
    """
    columns = list(zip(*([cell.texts[0].address for cell in row] for row in rows), strict=True))
    different = [len(set(addresses) - {None}) for addresses in columns]
    key = different.index(max(different))
    used: set[str | None] = {None}
    for row in rows:
        first, *others = row[key].texts
        if first.address in used:
            yield row
            continue
        used.add(first.address)
        named = first._replace(id=quote(f"{caption} {first.address}"))
        yield (*row[:key], row[key]._replace(texts=(named, *others)), *row[key + 1 :])


def details(row: object, links: Links) -> list[tuple[str, Cell]]:
    """Return one row as pairs of a title and a cell."""
    return [
        (field.column.title, _cell(field, row, _addresses(links)))
        for field in fields_of(type(row))
        if not field.column.data_only
    ]


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


class CrosstableCell(NamedTuple):
    """A cell of a crosstable: how the bot of the row did against the bot of the column."""

    share: str
    """`MeetingFigures.better` as a percentage. Empty on the diagonal, `-` if the two bots never met."""
    counts: str
    """Wins, draws and losses."""
    shade: int | None
    """From 0 for a share near 0 % to `_MAX_SHADE` for a share near 100 %; None on the diagonal, and if the two bots never met."""
    label: str
    """What a screen reader says for the link. It begins with the visible text, so that people who control the browser by voice can say
    what they see."""
    address: str | None


_DIAGONAL = CrosstableCell("", "", None, "", None)


class CrosstableRow(NamedTuple):
    """A row of a crosstable."""

    bot: CellText
    cells: tuple[CrosstableCell, ...]


def crosstable(
    bots: Sequence[str], meetings: Iterable[MeetingFigures], links: Links
) -> list[CrosstableRow]:
    """Return a row for each bot with a cell for each bot, both in the order of `bots`.

    Args:
        bots: the bots of one ruleset, best first.
        meetings: the results of these bots, as `Analysis.meetings` returns them.
        links: the addresses of the page.
    """
    met = {(each.first, each.second): each for each in meetings}
    return [
        CrosstableRow(
            CellText(cut(bot), links.bot(bot)),
            tuple(
                _DIAGONAL if other == bot else _crosstable_cell(met.get((bot, other)), links)
                for other in bots
            ),
        )
        for bot in bots
    ]


def _crosstable_cell(met: MeetingFigures | None, links: Links) -> CrosstableCell:
    """Return the cell of two bots; `met` is None if they never met."""
    if met is None:
        return CrosstableCell("-", "", None, "", None)
    share, counts = f"{100 * met.better:.0f}", f"{met.wins}-{met.draws}-{met.losses}"
    return CrosstableCell(
        share=share,
        counts=counts,
        shade=round(_MAX_SHADE * met.better),
        label=f"{share} {counts}: {cut(met.first)} against {cut(met.second)},"
        f" {met.wins} won, {met.draws} drawn, {met.losses} lost",
        address=links.pair(met.first, met.second),
    )
