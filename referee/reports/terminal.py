"""Rows on a terminal: a table for many, a card for one.

A table that is too wide loses the columns that matter least, and says so; text wraps; numbers stay
whole. It adapts where it is printed, so that the same object fits a window, a panel or a pipe.

A bot's rating over its games, drawn with characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from referee.reports.formats import Field, fields_of, visible

if TYPE_CHECKING:  # these load numpy and scipy
    from referee.reports.game_rows import ChargeRow
    from referee.reports.rating_rows import HistoryRow
    from referee.reports.statistics import PairRow

_WIDE = 10_000
_WRAPPED = 24
"""What a column that can wrap counts for, at most, when it is found out which columns fit."""
_NARROWEST = 8
"""What a column that can wrap shrinks to."""


class RowsTable:
    """Rows of one type as a table; as one table a section where the type has sections.

    Args:
        row_type: a type declared with columns.
        rows: its rows, those of a section one after the other.
        title: stands above.
    """

    def __init__(self, row_type: type, rows: Iterable[object], title: str = "") -> None:
        fields = fields_of(row_type)
        self._section = next((field.key for field in fields if field.column.section), None)
        self._fields = tuple(
            field for field in fields if not field.column.section and not field.column.data_only
        )
        self._rows = tuple(rows)
        self._title = title

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self._rows:
            yield Text(visible(f"{self._title}: none" if self._title else "none"))
        for number, (section, rows) in enumerate(groupby(self._rows, self._section_of)):
            if number:
                yield Text()
            title = ", ".join(filter(None, (self._title, section)))
            yield self._fitting(title, tuple(rows), console, options)

    def _section_of(self, row: object) -> str:
        return "" if self._section is None else str(getattr(row, self._section))

    def _fitting(
        self, title: str, rows: Sequence[object], console: Console, options: ConsoleOptions
    ) -> Table:
        fields = list(self._fields)
        going = sorted((field for field in fields if field.column.drop), key=_drop, reverse=True)
        wide = options.update(max_width=_WIDE)
        while going:
            trial = _table(title, fields, rows, wrapped=_WRAPPED)
            if Measurement.get(console, wide, trial).maximum <= options.max_width:
                break
            fields.remove(going.pop())
        table = _table(title, fields, rows)
        hidden = [field.column.title for field in self._fields if field not in fields]
        if hidden:
            table.caption = f"hidden here: {', '.join(hidden)}"
        return table


def card(row: object) -> Table:
    """One row, a line a field."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for field in fields_of(type(row)):
        if not field.column.data_only:
            table.add_row(field.column.title, _cell(field, row))
    return table


def stderr_tails(charges: Iterable[ChargeRow]) -> Group:
    """What the processes had written to standard error when the faults happened, line by line."""
    return Group(
        *(
            Text(f"{visible(title)}\n", style="bold").append(
                visible(charge.stderr_tail, lines=True), style="not bold"
            )
            for charge in charges
            if charge.stderr_tail
            for title in (f"stderr of {charge.bot} (seat {charge.seat}), move {charge.move}:",)
        )
    )


def _drop(field: Field) -> int:
    return field.column.drop


def _table(
    title: str, fields: Sequence[Field], rows: Sequence[object], *, wrapped: int | None = None
) -> Table:
    table = Table(
        title=Text(visible(title), style="bold") if title else None,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for _, column in fields:
        table.add_column(
            Text(column.title),
            justify="right" if column.right else "left",
            no_wrap=not column.wrap,
            overflow="fold",
            max_width=wrapped if column.wrap else None,
            min_width=_NARROWEST if column.wrap else None,
        )
    for row in rows:
        table.add_row(*(_cell(field, row) for field in fields))
    return table


def _cell(field: Field, row: object) -> Text:
    value: Any = getattr(row, field.key)
    return Text(visible(field.column.empty if value is None else field.column.show(value)))


def crosstable(bots: Sequence[str], pairs: Sequence[PairRow], title: str) -> Table:
    """A row and a column for each bot, in the order given.

    A cell says in how many per cent of their meetings the bot of the row ranked higher, ties by half.
    """
    better = {(row.bot, row.other): row.better for row in pairs}
    table = Table(
        title=Text(visible(title), style="bold"),
        title_justify="left",
        caption="per cent of the meetings in which the bot of the row ranked higher, ties by half",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column(Text("#"), justify="right")
    table.add_column(Text("bot"), overflow="fold")
    for number in range(1, len(bots) + 1):
        table.add_column(Text(str(number)), justify="right", no_wrap=True)
    for number, bot in enumerate(bots, 1):
        cells = (_share_cell(bot, other, better.get((bot, other))) for other in bots)
        table.add_row(Text(str(number)), Text(visible(bot)), *cells)
    return table


def _share_cell(bot: str, other: str, better: float | None) -> Text:
    if bot == other:
        return Text("·", style="dim")
    return Text("-" if better is None else f"{100 * better:.0f}")


_MARGIN = 24
"""What labels and axes take beside the picture, in characters."""
_HEIGHT = 16


def plot(rows: Sequence[HistoryRow], width: int) -> str:
    """Three lines over the games played: mu - 2 sigma, mu and mu + 2 sigma.

    Args:
        rows: of one ruleset, at least one.
        width: of the text, in characters.
    """
    import plotille  # noqa: PLC0415 - takes a while to load

    figure = plotille.Figure()
    figure.width, figure.height = max(20, width - _MARGIN), _HEIGHT
    figure.with_colors = False
    figure.x_label, figure.y_label = "games", "mu, 2 sigma"
    figure.register_label_formatter(float, _label)
    figure.register_label_formatter(int, _label)
    games = [row.games for row in rows]
    for sigmas in (-2, 0, 2):
        figure.plot(games, [row.mu + sigmas * row.sigma for row in rows])
    figure.set_x_limits(min_=0, max_=max(games))
    return str(figure.show())


def _label(value: float, chars: int, delta: float, left: bool = False) -> str:
    """A tick: the signature is plotille's."""
    text = f"{value:.0f}" if delta > 5 else f"{value:.1f}"  # noqa: PLR2004 - decimals would crowd
    return text.ljust(chars) if left else text.rjust(chars)
