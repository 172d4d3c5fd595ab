"""The crosstable: every bot against every other, as chess tournaments show it."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from referee.reports.ratings import PairRow
from referee.reports.show import visible


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
        cells = (_cell(bot, other, better.get((bot, other))) for other in bots)
        table.add_row(Text(str(number)), Text(visible(bot)), *cells)
    return table


def _cell(bot: str, other: str, better: float | None) -> Text:
    if bot == other:
        return Text("·", style="dim")
    return Text("-" if better is None else f"{100 * better:.0f}")
