"""What many games tell, as rows: pairs of bots, settled places, seats, luck and collusion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from referee.ratings.intervals import Estimate
from referee.reports.formats import (
    Column,
    chance,
    decimal,
    estimate,
    percent,
    percent_estimate,
    row_from,
)

if TYPE_CHECKING:  # numpy and scipy take a while to load
    from referee.ratings.analysis import PairFigures
    from referee.ratings.collusion import CollusionFigures
    from referee.ratings.effects import LuckFigures, SeatFigures
    from referee.ratings.stopping import Neighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow:
    """How two bots compare."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    bot: Annotated[str, Column("bot", wrap=True)]
    other: Annotated[str, Column("against", wrap=True)]
    meetings: Annotated[int, Column("meetings", right=True, drop=1)]
    """Games in which both sat at the table."""
    matches: Annotated[int, Column("matches", right=True)]
    better: Annotated[float | None, Column("ahead in", right=True, show=percent, drop=2)]
    """The share of the meetings in which the bot ranked higher, ties by half."""
    lead: Annotated[
        Estimate | None, Column("points more [95 %]", right=True, show=estimate(1), interval=True)
    ]
    """Mean points of the bot less the other's, in a meeting."""
    rating_lead: Annotated[
        Estimate, Column("rating more [95 %]", right=True, show=estimate(1), drop=3, interval=True)
    ]
    """Order-free rating of the bot less the other's."""
    chance: Annotated[float | None, Column("P(better)", right=True, show=chance)]
    """How sure it is that the bot is the better one, by their ratings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourRow:
    """Two that follow each other in a table, and whether that is settled."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    bot: Annotated[str, Column("bot", wrap=True)]
    below: Annotated[str, Column("above", wrap=True)]
    """The next one in the table, by the fitted ratings."""
    chance: Annotated[float | None, Column("P(better)", right=True, show=chance)]
    """How sure it is that the bot is the better one."""
    verdict: Annotated[str, Column("verdict")]
    """`ahead`: the bot is surely better; `equal`: surely as good, within the margin; `open`: neither."""


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


def neighbour_rows(ruleset: str, table: Iterable[Neighbours]) -> tuple[NeighbourRow, ...]:
    """The table of a ruleset, from the top."""
    return tuple(
        row_from(NeighbourRow, each, ruleset=ruleset, verdict=each.verdict.value) for each in table
    )


def pair_rows(ruleset: str, pairs: Iterable[PairFigures]) -> tuple[PairRow, ...]:
    """The pairs of a ruleset."""
    return tuple(
        row_from(PairRow, each, ruleset=ruleset, bot=each.first, other=each.second)
        for each in pairs
    )


def comparison(ruleset: str, pair: PairFigures, margin: float = 0.5) -> str:
    """One sentence that says which of two bots is better, and how sure that is.

    Within `margin` of rating on either side they are called equal.
    """
    lead = pair.rating_lead
    met = (
        f"in {pair.meetings} games of {pair.matches} matches"
        if pair.meetings
        else "though they have never met"
    )
    if pair.chance is None or lead.low is None or lead.high is None:
        return f"{ruleset}: too little is known to compare {pair.first} and {pair.second}, {met}."
    known = f"rating {lead.value:+.2f}, 95 % interval {lead.low:+.2f} to {lead.high:+.2f}; {met}"
    if -margin < lead.low and lead.high < margin:
        return f"{ruleset}: {pair.first} and {pair.second} are equally strong ({known})."
    better, worse = (pair.first, pair.second) if lead.value >= 0 else (pair.second, pair.first)
    sure = max(pair.chance, 1 - pair.chance)
    if lead.low <= 0 <= lead.high:
        return (
            f"{ruleset}: it is not settled whether {better} is better than {worse}:"
            f" {chance(sure)} sure ({pair.first} less {pair.second}: {known})."
        )
    return (
        f"{ruleset}: {better} is better than {worse}, {chance(sure)} sure"
        f" ({pair.first} less {pair.second}: {known})."
    )
