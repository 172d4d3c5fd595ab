"""What decides games beside the bots' strength, as rows: seats, luck, company."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from referee.ratings.estimate import Estimate
from referee.reports.columns import Column, row_from
from referee.reports.show import decimal, estimate, percent_estimate

if TYPE_CHECKING:  # numpy and scipy take a while to load
    from referee.ratings.company import CompanyFigures
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
class CompanyRow:
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


def company_rows(ruleset: str, pairs: Iterable[CompanyFigures]) -> tuple[CompanyRow, ...]:
    """The pairs of a ruleset, the largest excess first."""
    rows = (row_from(CompanyRow, each, ruleset=ruleset) for each in pairs)
    return tuple(sorted(rows, key=lambda row: -row.excess.value))
