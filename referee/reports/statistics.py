"""The crosstable: every bot against every other, as chess tournaments show it.

What decides games beside the bots' strength, as rows: seats, luck, company.

What bots did wrong, counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from rich import box
from rich.table import Table
from rich.text import Text

from referee.errors import Cause
from referee.ratings.intervals import Estimate
from referee.reports.formats import Column, decimal, estimate, percent_estimate, row_from, visible
from referee.reports.inputs import ChargedFault
from referee.reports.rating_rows import PairRow


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


if TYPE_CHECKING:  # numpy and scipy take a while to load
    from referee.ratings.collusion import CollusionFigures
    from referee.ratings.effects import LuckFigures, SeatFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatWorthRow:
    """What a seat is worth in a ruleset, from whole matches, in which every bot had every seat."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    seats: Annotated[int, Column("seats", right=True)]
    """Of the table."""
    seat: Annotated[int, Column("seat", right=True)]
    """0 starts the game."""
    matches: Annotated[int, Column("matches", right=True)]
    advantage: Annotated[
        Estimate, Column("points more [95 %]", right=True, show=estimate(2), interval=True)
    ]
    """Mean points of the seat less the mean of all seats."""
    win_share: Annotated[
        Estimate, Column("won [95 %]", right=True, show=percent_estimate, interval=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class LuckRow:
    """What the points of a game come from: shares of their variance within a match."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    seats: Annotated[int, Column("seats", right=True)]
    """Of the table."""
    matches: Annotated[int, Column("matches", right=True)]
    deviation: Annotated[float, Column("deviation", right=True, show=decimal(1))]
    """Standard deviation of a seat's points in one game, around the mean of its match."""
    hand: Annotated[
        Estimate, Column("the hand [95 %]", right=True, show=percent_estimate, interval=True)
    ]
    """The luck of the deal: the same seat of the same deal, whoever sits there."""
    bots: Annotated[
        Estimate, Column("the bots [95 %]", right=True, show=percent_estimate, interval=True)
    ]
    rest: Annotated[
        Estimate, Column("the rest [95 %]", right=True, show=percent_estimate, interval=True)
    ]
    """How just these bots played just this hand in just this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollusionRow:
    """How a bot fares when another one sits at its table."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    bot: Annotated[str, Column("bot", wrap=True)]
    other: Annotated[str, Column("in company of", wrap=True)]
    matches: Annotated[int, Column("matches", right=True)]
    """Played by both."""
    with_other: Annotated[float, Column("with", right=True, show=decimal(2), drop=1)]
    """Mean points of the bot in these."""
    without_other: Annotated[float | None, Column("without", right=True, show=decimal(2), drop=2)]
    """Mean points of the bot in its other matches."""
    excess: Annotated[
        Estimate, Column("unexplained [95 %]", right=True, show=estimate(2), interval=True)
    ]
    """Points that neither the bot's strength nor what the other does to everybody explains."""
    suspicious: Annotated[bool, Column("hint", show=lambda yes: "look!" if yes else "")]
    """The excess is above 0 even for the largest of so many pairs (chance of error 5 % in all)."""


def seat_worth_rows(ruleset: str, seats: Iterable[SeatFigures]) -> tuple[SeatWorthRow, ...]:
    """The seats of a ruleset."""
    return tuple(row_from(SeatWorthRow, each, ruleset=ruleset) for each in seats)


def luck_rows(ruleset: str, sizes: Iterable[LuckFigures]) -> tuple[LuckRow, ...]:
    """The table sizes of a ruleset."""
    return tuple(row_from(LuckRow, each, ruleset=ruleset) for each in sizes)


def collusion_rows(ruleset: str, pairs: Iterable[CollusionFigures]) -> tuple[CollusionRow, ...]:
    """The pairs of a ruleset, the largest excess first."""
    rows = (row_from(CollusionRow, each, ruleset=ruleset) for each in pairs)
    return tuple(sorted(rows, key=lambda row: -row.excess.value))


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """How often one thing went wrong with a bot."""

    bot: Annotated[str, Column("bot", wrap=True)]
    cause: Annotated[str, Column("cause")]
    """Its name in the list of faults, such as `timeout`."""
    strikes: Annotated[int, Column("strikes", right=True)]
    forfeits: Annotated[int, Column("forfeits", right=True)]
    games: Annotated[int, Column("games", right=True)]
    """Games in which it happened."""


def fault_rows(faults: Iterable[ChargedFault]) -> tuple[FaultRow, ...]:
    """Faults by bot, in the order of the alphabet, and cause, in the order of the list of faults."""
    by_kind = defaultdict[tuple[str, Cause], list[ChargedFault]](list)
    for fault in faults:
        by_kind[fault.bot, fault.cause].append(fault)
    order = list(Cause)
    return tuple(
        FaultRow(
            bot=bot,
            cause=cause.value,
            strikes=sum(not fault.forfeit for fault in by_kind[bot, cause]),
            forfeits=sum(fault.forfeit for fault in by_kind[bot, cause]),
            games=len({fault.game_id for fault in by_kind[bot, cause]}),
        )
        for bot, cause in sorted(by_kind, key=lambda kind: (kind[0], order.index(kind[1])))
    )
