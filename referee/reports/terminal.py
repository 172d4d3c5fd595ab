"""Show rows on a terminal: several rows as a table, one row as a card, a rating as a diagram.

If a table is wider than the terminal, some columns are hidden, and their titles are listed below the table. Long
texts wrap. Numbers never wrap. `RowsTable` selects the columns only when it is printed, because Rich passes the width
then. If the output is a file or a pipe, no column is hidden, unless the environment variable COLUMNS sets a width. A
crosstable that is too wide is split into several tables.

Some columns are never hidden. If the terminal is too narrow for them, `RowsPrinter` in `cli/options.py` prints the table
wider than the terminal, and the terminal wraps its lines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from math import ceil
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.table import Table
from rich.text import Text

from referee.reports.formats import Field, fields_of, quoted, visible

if TYPE_CHECKING:  # these load numpy and scipy
    from referee.ratings.analysis import MeetingFigures
    from referee.reports.game_rows import ChargeRow
    from referee.reports.rating_rows import HistoryRow

_WRAPPED = 24
"""The selection of columns assumes that a column whose text may wrap needs at most this width, in characters. The column is
printed wider if there is room."""
_NARROWEST = 8
"""The smallest width of a column whose text may wrap, in characters."""
_EDGES = 2
"""Characters that the two edges of a table take."""
_GAP = 2
"""Characters between two columns of a table."""
_SHARE_WIDTH = 3
"""The width of a percentage without decimals, in characters."""


class RowsTable:
    """A table of rows of one type, or one table for each section if the row type has sections.

    Args:
        row_type: a dataclass whose fields are declared with `Column`.
        rows: the rows. Rows of the same section must follow each other.
        title: the text above each table, followed by the name of the section.
        columns: the columns to show, which are then never hidden. The default is all except the section and those that are
            `data_only`.
        keep: the keys of further columns that are never hidden, besides those whose `Column.drop` is 0. Ignored if `columns` is given.
        hint: the text below a table with hidden columns, after their titles.
    """

    def __init__(
        self,
        row_type: type,
        rows: Iterable[object],
        title: str = "",
        *,
        columns: Sequence[Field] | None = None,
        keep: Collection[str] = (),
        hint: str = "",
    ) -> None:
        fields = fields_of(row_type)
        self._section = next((field.key for field in fields if field.column.section), None)
        self._fields = tuple(
            columns
            or (each for each in fields if not each.column.data_only and not each.column.section)
        )
        self._keep = frozenset(keep if columns is None else (field.key for field in columns))
        self._rows = tuple(rows)
        self._title = title
        self._hint = hint

    def least_width(self) -> int:
        """Return the smallest width, in characters, at which all columns that are never hidden fit and no number is cut."""
        return _width(
            [
                _NARROWEST
                if field.column.wrap
                else _column_width(field, [_cell(field, row) for row in self._rows])
                for field in self._fields
                if not _may_hide(field, self._keep)
            ]
        )

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        if not self._rows:
            yield Text(visible(f"{self._title}: none" if self._title else "none"))
        for number, (section, rows) in enumerate(groupby(self._rows, self._section_of)):
            if number:
                yield Text()
            title = ", ".join(filter(None, (self._title, section)))
            if title:
                yield _title_line(title)
            yield self._table(tuple(rows), options.max_width)

    def _section_of(self, row: object) -> str:
        return "" if self._section is None else str(getattr(row, self._section))

    def _table(self, rows: Sequence[object], width: int) -> Table:
        """Return a table of the columns that fit into `width` characters."""
        cells = {field: [_cell(field, row) for row in rows] for field in self._fields}
        fields = _select_fields(cells, width, self._keep)
        table = _empty_table()
        for _, column in fields:
            table.add_column(
                Text(column.title),
                justify="right" if column.right else "left",
                no_wrap=not column.wrap,
                overflow="fold",
                min_width=_NARROWEST if column.wrap else None,
            )
        for row in zip(*(cells[field] for field in fields), strict=True):
            table.add_row(*row)
        hidden = [field.column.title for field in self._fields if field not in fields]
        if hidden:
            table.caption = f"hidden here: {', '.join(hidden)}{self._hint}"
        return table


def card(row: object) -> Table:
    """Return one row as a table with a line for each field."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for field in fields_of(type(row)):
        if not field.column.data_only:
            table.add_row(field.column.title, _cell(field, row))
    return table


def _cell(field: Field, row: object) -> Text:
    value: Any = getattr(row, field.key)
    return Text(visible(field.column.empty if value is None else field.column.show(value)))


def _select_fields(
    cells: Mapping[Field, Sequence[Text]], width: int, keep: Collection[str]
) -> list[Field]:
    """Return the fields that a table of `width` characters shows.

    If not all fit, columns are left out in the order of `Column.drop`. Of the columns with the same number, the rightmost
    is left out first. Columns with the number 0, and those whose key is in `keep`, always stay.

    Each column is measured once, because it takes ten times as long to measure the table with Rich after each removed column.
    """
    fields = list(cells)
    widths = {field: _column_width(field, texts) for field, texts in cells.items()}
    droppable = (each for each in reversed(fields) if _may_hide(each, keep))
    for field in sorted(droppable, key=lambda each: each.column.drop):
        if _width([widths[each] for each in fields]) <= width:
            break
        fields.remove(field)
    return fields


def _may_hide(field: Field, keep: Collection[str]) -> bool:
    return field.column.drop > 0 and field.key not in keep


def _width(columns: Sequence[int]) -> int:
    """Return the width of a table, from the widths of its columns."""
    return sum(columns) + _GAP * (len(columns) - 1) + _EDGES


def _column_width(field: Field, cells: Sequence[Text]) -> int:
    """Return the width that a column needs, in characters."""
    column = field.column
    width = max(cell_len(text) for text in (column.title, *(cell.plain for cell in cells)))
    return max(_NARROWEST, min(width, _WRAPPED)) if column.wrap else width


def _title_line(title: str) -> Text:
    """Return the text above a table. It is not the `title` of a Rich table, because Rich wraps that to the width of the table."""
    return Text(visible(title), style="bold")


def _empty_table() -> Table:
    return Table(
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )


def stderr_tails(charges: Iterable[ChargeRow]) -> Group:
    """Return the end of the bot's standard error for each fault. Faults without output on standard error are left out."""
    return Group(
        *(
            Text(f"{visible(title)}\n", style="bold").append(
                quoted(charge.stderr_tail), style="not bold"
            )
            for charge in charges
            if charge.stderr_tail
            for title in (
                f"stderr of {charge.bot} (seat {charge.seat}), after move {charge.move}:",
            )
        )
    )


class Crosstable:
    """A table with a row and a column for each bot, in the order of `bots`.

    A cell compares the bot of its row with the bot of its column. It shows in which percentage of their common games the
    bot of the row ranked higher. A tie counts half, and a game with k seats has the weight 2 / k. A dash means that the
    two bots have never met.

    If the columns do not fit into the terminal, several tables follow each other. Each has all rows and some of the columns.
    """

    def __init__(self, bots: Sequence[str], meetings: Iterable[MeetingFigures], title: str) -> None:
        self._bots = bots
        self._shares = {(each.first, each.second): each.better for each in meetings}
        self._title = title

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        size = self._columns_at(options.max_width)
        for first in range(0, len(self._bots), size):
            if first:
                yield Text()
            yield _title_line(self._title)
            yield self._table(range(first, min(first + size, len(self._bots))))

    def _columns_at(self, width: int) -> int:
        """Return the number of bots whose columns fit into `width` characters, at least 1."""
        longest = max((cell_len(visible(bot)) for bot in self._bots), default=0)
        name_width = max(_NARROWEST, min(longest, _WRAPPED))
        fixed = _width([len(str(len(self._bots))), name_width])
        return max(1, (width - fixed) // (_SHARE_WIDTH + _GAP))

    def _table(self, columns: range) -> Table:
        """Return a table with all rows. Its columns are the bots with the indices `columns`. Only the last table has the caption."""
        table = _empty_table()
        if columns.stop == len(self._bots):
            table.caption = (
                "percentage of the common games in which the bot of the row ranked higher;"
                " a tie counts half, and a game with k seats has the weight 2 / k"
            )
        table.add_column(Text("#"), justify="right", no_wrap=True)
        table.add_column(Text("bot"), overflow="fold", min_width=_NARROWEST)
        for column in columns:
            table.add_column(
                Text(str(column + 1)), justify="right", no_wrap=True, min_width=_SHARE_WIDTH
            )
        for number, bot in enumerate(self._bots, 1):
            others = (self._bots[column] for column in columns)
            cells = (_share_cell(bot, other, self._shares.get((bot, other))) for other in others)
            table.add_row(Text(str(number)), Text(visible(bot)), *cells)
        return table


def _share_cell(bot: str, other: str, share: float | None) -> Text:
    if bot == other:
        return Text("·", style="dim")
    return Text("-" if share is None else f"{100 * share:.0f}")


_MARGIN = 24
"""Width of the labels and the axis at the left and right of a diagram, in characters."""
_LEGEND = "Middle line: mu. Upper and lower line: mu + 2 sigma and mu - 2 sigma."
_HEIGHT = 16
"""Height of a diagram, in lines."""
_TICK = 10
"""Width between two ticks of the horizontal axis, in characters. It is fixed in plotille."""


def plot(rows: Sequence[HistoryRow], width: int) -> str:
    """Draw a bot's rating over its games with three lines: mu - 2 sigma, mu and mu + 2 sigma. The legend is above the diagram.

    Each tick of the horizontal axis is at a whole number of games. The diagram is as wide as this rule and `width` allow.

    Args:
        rows: the history of the bot in one ruleset, at least two rows.
        width: the largest width of the diagram with its labels, in characters. A value below 44 counts as 44.
    """
    import plotille  # noqa: PLC0415 - takes a while to load

    games = [row.games for row in rows]
    games_per_tick = ceil(max(games) * _TICK / max(20, width - _MARGIN))
    figure = plotille.Figure()
    figure.width, figure.height = ceil(max(games) * _TICK / games_per_tick), _HEIGHT
    figure.with_colors = False
    figure.x_label, figure.y_label = "games", "rating"
    figure.x_ticks_fkt = lambda low, _high: f"{low:.0f}"
    figure.y_ticks_fkt = lambda low, _high: f"{low:z.1f}"
    for sigmas in (-2, 0, 2):
        figure.plot(games, [row.mu + sigmas * row.sigma for row in rows])
    figure.set_x_limits(min_=0, max_=figure.width * games_per_tick / _TICK)
    return f"{_LEGEND}\n{figure.show()}"
