"""Turn the comparisons of all bots into a crosstable for the templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from referee.reports.statistics import PairRow
from referee.web.links import Links
from referee.web.tables import CellText, cut

_SHADES = 10
"""Number of steps between the darkest and the lightest cell. The style sheet has a class for each shade."""


class CrosstableCell(NamedTuple):
    """A cell of a crosstable: how the bot of the row did against the bot of the column."""

    share: str
    """`PairRow.better` as a percentage, with its weights: ties count half. Empty on the diagonal, `-` if the two bots never met."""
    counts: str
    """Wins, draws and losses."""
    shade: int | None
    """From 0, always lower, to 10, always higher; None if the two bots never met."""
    label: str
    """What a screen reader says. It begins with the visible text, so that a reader who speaks that text finds the link."""
    address: str | None


class CrosstableRow(NamedTuple):
    """A row of a crosstable."""

    bot: CellText
    cells: tuple[CrosstableCell, ...]


def crosstable(bots: Sequence[str], pairs: Sequence[PairRow], links: Links) -> list[CrosstableRow]:
    """Return a row for each bot with a cell for each bot, both in the order of `bots`.

    Args:
        bots: the bots of one ruleset, best first.
        pairs: the comparisons of these bots.
        links: the addresses of the page.
    """
    found = {(row.bot, row.other): row for row in pairs}
    return [
        CrosstableRow(
            CellText(cut(bot), links.bot(bot)),
            tuple(_cell(found.get((bot, other)), links) for other in bots),
        )
        for bot in bots
    ]


def _cell(row: PairRow | None, links: Links) -> CrosstableCell:
    """Return the cell of a comparison; `row` is None on the diagonal."""
    if row is None:
        return CrosstableCell("", "", None, "", None)
    if row.better is None:
        return CrosstableCell("-", "", None, f"{cut(row.bot)} and {cut(row.other)} never met", None)
    share, counts = f"{100 * row.better:.0f}", f"{row.wins}-{row.draws}-{row.losses}"
    return CrosstableCell(
        share=share,
        counts=counts,
        shade=round(_SHADES * row.better),
        label=f"{share} {counts}: {cut(row.bot)} against {cut(row.other)},"
        f" {row.wins} won, {row.draws} drawn, {row.losses} lost",
        address=links.pair(row.bot, row.other),
    )
