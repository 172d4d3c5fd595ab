"""Make rows of statistics over many games: pairs of bots, neighbours, seats, machines, luck, collusion and total points.

`name_winners` names the winner by total points, but only if all bots have started equally often, as in the rulebooks
(ruling R19).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, TypeVar

import numpy as np

from referee.errors import count_text
from referee.ratings.intervals import Estimate
from referee.reports.formats import (
    Column,
    chance,
    decimal,
    estimate,
    percent,
    percent_estimate,
    row_from,
    visible,
)
from referee.result_columns import NOBODY, ResultColumns
from referee.rules.game import competition_ranks
from referee.store import StoredMachine

if TYPE_CHECKING:  # scipy takes a while to load
    from referee.ratings.analysis import MeetingFigures, PairFigures
    from referee.ratings.collusion import CollusionFigures
    from referee.ratings.effects import LuckFigures, SeatFigures
    from referee.ratings.judge import PairVerdict
    from referee.ratings.machines import MachineFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow:
    """How two bots compare."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    bot: Annotated[str, Column("bot", wrap=True)]
    other: Annotated[str, Column("other", wrap=True)]
    meetings: Annotated[int, Column("meetings", right=True, drop=1)]
    """Number of games in which both bots played."""
    matches: Annotated[int, Column("matches", right=True)]
    """Number of matches in which both bots played."""
    wins: Annotated[int, Column("wins", right=True, data_only=True)]
    """Number of meetings in which `bot` ranked higher than `other`."""
    draws: Annotated[int, Column("draws", right=True, data_only=True)]
    """Number of meetings in which both had the same rank."""
    losses: Annotated[int, Column("losses", right=True, data_only=True)]
    """Number of meetings in which `other` ranked higher than `bot`."""
    ahead_in: Annotated[float | None, Column("ahead in", right=True, show=percent, drop=2)]
    """Share of the meetings in which `bot` ranked higher than `other`; a tie counts half.

    A meeting at a table of k seats has the weight 2 / k, because the k (k - 1) / 2 meetings of a game tell only as much as
    k - 1 comparisons.
    None if there are no meetings.
    """
    points_more: Annotated[
        Estimate | None, Column("points more [95 %]", right=True, show=estimate(1), interval=True)
    ]
    """Mean points of `bot` minus mean points of `other` in the meetings. None if there are no meetings."""
    fit_more: Annotated[
        Estimate, Column("fit more [95 %]", right=True, show=estimate(1), drop=3, interval=True)
    ]
    """Fit of `bot` minus fit of `other`. An end of the interval is None if no games limit it."""
    p_better: Annotated[float | None, Column("P better", right=True, show=chance)]
    """Probability, by the fit, that `bot` is better than `other`.

    None if neither bot beat the other, directly or over a chain of bots, or if one of them has played fewer than two
    matches; see `Analysis.chance_of_lead`.
    """


AnyPair = TypeVar("AnyPair", bound=PairRow)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourRow:
    """Two neighbours, and the verdict about them."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    bot: Annotated[str, Column("bot", wrap=True)]
    below: Annotated[str, Column("below", wrap=True)]
    """The other neighbour. `bot` has the higher fit, with one exception: if the verdict is `ahead`, `bot` is the better
    one, even if newer games gave it the lower fit."""
    p_better: Annotated[float | None, Column("P better", right=True, show=chance)]
    """Probability, by the fit, that `bot` is better than `below`; see `PairVerdict.chance`."""
    verdict: Annotated[str, Column("verdict")]
    """`ahead`: `bot` is surely better. `equal`: the fits surely differ by less than the margin. `open`: not settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatWorthRow:
    """The value of a seat at tables of one size.

    A match counts only if every bot of the match has played in every seat, and no bot forfeited one of these games.
    """

    ruleset: Annotated[str, Column("ruleset", section=True)]
    seats: Annotated[int, Column("seats", right=True)]
    """Number of seats of the table."""
    seat: Annotated[int, Column("seat", right=True)]
    """Number of the seat; seat 0 starts the game."""
    matches: Annotated[int, Column("matches", right=True)]
    points_more: Annotated[
        Estimate, Column("points more [95 %]", right=True, show=estimate(2), interval=True)
    ]
    """Mean points per game of the seat minus the mean points per game of all seats."""
    won: Annotated[Estimate, Column("won [95 %]", right=True, show=percent_estimate, interval=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRow:
    """The results of a bot on one machine. If the interval of `points_more` excludes 0, the machine may change results.

    Even if no machine changes results, 5 % of the intervals exclude 0 by chance.
    """

    ruleset: Annotated[str, Column("ruleset", section=True)]
    host: Annotated[str, Column("host", wrap=True)]
    cpu: Annotated[str, Column("CPU", wrap=True, drop=1)]
    speed: Annotated[float, Column("speed", right=True, show=decimal(0), drop=2)]
    """Mean `Machine.speed` in all games of the machine, whatever their ruleset. If a tournament is selected, only its games count."""
    noise: Annotated[float | None, Column("noise", right=True, show=percent)]
    """Mean `Machine.noise` in these games. Games without a known noise do not count. None if no game has a known noise."""
    bot: Annotated[str, Column("bot", wrap=True)]
    games: Annotated[int, Column("games", right=True)]
    """Number of games of the bot on the machine."""
    forfeits: Annotated[int, Column("forfeits", right=True)]
    matches: Annotated[int, Column("matches", right=True, drop=3)]
    """Number of matches in which the bot played on this machine and on another one; 0 if the seat of the bot decided whether it
    played on this machine. Games in which any bot forfeited do not count."""
    points_more: Annotated[
        Estimate | None, Column("points more [95 %]", right=True, show=estimate(2), interval=True)
    ]
    """How many more points per game the bot gets on this machine than on other machines. Differences between matches and between
    the seats of the bot are taken out; see `MachineFigures.lead`. None if `matches` is 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LuckRow:
    """How much the deal, the bots and other effects change the points, at tables of one size.

    `hand`, `bots` and `rest` are shares of the variance of the points within a game. Their sum is 1.
    """

    ruleset: Annotated[str, Column("ruleset", section=True)]
    seats: Annotated[int, Column("seats", right=True)]
    """Number of seats of the table."""
    matches: Annotated[int, Column("matches", right=True)]
    deviation: Annotated[float, Column("deviation", right=True, show=decimal(1))]
    """The square root of the sum of the variances that come from the hand, from the bots and from the rest; see `LuckFigures.deviation`."""
    hand: Annotated[
        Estimate, Column("hand [95 %]", right=True, show=percent_estimate, interval=True)
    ]
    """Share that comes from the hand and the seat, whichever bot has them."""
    bots: Annotated[
        Estimate, Column("bots [95 %]", right=True, show=percent_estimate, interval=True)
    ]
    """Share that comes from the different strength of the bots."""
    rest: Annotated[
        Estimate, Column("rest [95 %]", right=True, show=percent_estimate, interval=True)
    ]
    """Share that neither the hand nor the bots explain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollusionRow:
    """The points of a bot when another bot plays at its table."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    bot: Annotated[str, Column("bot", wrap=True)]
    other: Annotated[str, Column("other", wrap=True)]
    matches: Annotated[int, Column("matches", right=True)]
    """Number of matches with both bots."""
    with_other: Annotated[float, Column("with other", right=True, show=decimal(2), drop=1)]
    """Mean points of `bot` per game in the matches with `other`."""
    without_other: Annotated[
        float | None, Column("without other", right=True, show=decimal(2), drop=2)
    ]
    """Mean points of `bot` per game in its matches without `other`; None if it played all matches with `other`."""
    excess: Annotated[
        Estimate, Column("excess [95 %]", right=True, show=estimate(2), interval=True)
    ]
    """Points per game of `bot` in the matches with `other`, beyond what its strength and the usual effects of all its
    opponents explain."""
    limit: Annotated[float | None, Column("limit", right=True, show=decimal(2), drop=3)]
    """The largest excess that different styles of play can explain: 1.5 standard deviations of a bot's points in a game, or
    more if the other pairs have large excesses too. None if there are too few other pairs to estimate it."""
    hint: Annotated[bool, Column("hint", show=lambda yes: "suspicious" if yes else "")]
    """True if the excess is above `limit`, and surely above 1.5 standard deviations of a bot's points in a game. `Surely`
    means with a confidence of 95 % for all pairs together."""


def seat_worth_rows(ruleset: str, seats: Iterable[SeatFigures]) -> tuple[SeatWorthRow, ...]:
    """Return a row for each seat of a ruleset."""
    return tuple(
        row_from(
            SeatWorthRow, each, ruleset=ruleset, points_more=each.advantage, won=each.win_share
        )
        for each in seats
    )


def machine_rows(
    ruleset: str, found: Iterable[MachineFigures], machines: Iterable[StoredMachine]
) -> tuple[MachineRow, ...]:
    """Return a row for each machine and each bot of a ruleset. `machines` has all machines of `found`."""
    known = {machine.key: machine for machine in machines}
    return tuple(
        row_from(
            MachineRow,
            each,
            ruleset=ruleset,
            host=(machine := known[each.machine]).host,
            cpu=machine.cpu,
            speed=machine.speed,
            noise=machine.noise,
            points_more=each.lead,
        )
        for each in found
    )


def luck_rows(ruleset: str, sizes: Iterable[LuckFigures]) -> tuple[LuckRow, ...]:
    """Return a row for each table size of a ruleset."""
    return tuple(row_from(LuckRow, each, ruleset=ruleset) for each in sizes)


def collusion_rows(ruleset: str, pairs: Iterable[CollusionFigures]) -> tuple[CollusionRow, ...]:
    """Return a row for each pair of a ruleset, largest excess first."""
    rows = (row_from(CollusionRow, each, ruleset=ruleset, hint=each.suspicious) for each in pairs)
    return tuple(sorted(rows, key=lambda row: -row.excess.value))


def neighbour_rows(ruleset: str, verdicts: Iterable[PairVerdict]) -> tuple[NeighbourRow, ...]:
    """Return a row for each pair of neighbours of a ruleset, best bots first."""
    return tuple(
        row_from(
            NeighbourRow, each, ruleset=ruleset, p_better=each.chance, verdict=each.verdict.value
        )
        for each in verdicts
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CrosstableRow:
    """A bot against every other bot of a ruleset."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    rank: Annotated[int, Column("#", right=True)]
    """The line of the bot in the table, from 1."""
    bot: Annotated[str, Column("bot", wrap=True)]
    ahead_in: Annotated[Mapping[str, float | None], Column("ahead in")]
    """For each other bot, in the order of the table: its name, and `PairRow.ahead_in` of `bot` against it."""


def crosstable_rows(
    ruleset: str, bots: Sequence[str], meetings: Iterable[MeetingFigures]
) -> list[CrosstableRow]:
    """Return a row for each bot of a ruleset.

    Args:
        ruleset: the ruleset.
        bots: the bots in the order of the table.
        meetings: the results of these bots, as `Analysis.meetings` returns them.
    """
    share_of = {(each.first, each.second): each.better for each in meetings}
    return [
        CrosstableRow(
            ruleset=ruleset,
            rank=rank,
            bot=bot,
            ahead_in={other: share_of.get((bot, other)) for other in others},
        )
        for rank, bot in enumerate(bots, 1)
        if (others := [other for other in bots if other != bot])
    ]


def pair_rows(ruleset: str, pairs: Iterable[PairFigures]) -> tuple[PairRow, ...]:
    """Return a row for each pair of a ruleset."""
    return tuple(make_pair_row(PairRow, ruleset, each) for each in pairs)


def make_pair_row(
    row_type: type[AnyPair], ruleset: str, pair: PairFigures, **others: object
) -> AnyPair:
    """Return a row of `row_type` for a pair. `others` has the values of the fields that `PairRow` does not have."""
    return row_from(
        row_type,
        pair,
        ruleset=ruleset,
        bot=pair.first,
        other=pair.second,
        ahead_in=pair.better,
        points_more=pair.lead,
        fit_more=pair.rating_lead,
        p_better=pair.chance,
        **others,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PointsRow:
    """The total points of a bot in a ruleset."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    rank: Annotated[int, Column("#", right=True)]
    """Rank by total points. Bots with equal points share a rank."""
    bot: Annotated[str, Column("bot", wrap=True)]
    points: Annotated[int, Column("points", right=True)]
    """Sum of the points of the bot in all its games. A game that it forfeited counts with the lowest points of all seats of this game."""
    score: Annotated[float, Column("score", right=True, show=decimal(2), drop=1)]
    """Mean points of the bot in a game."""
    games: Annotated[int, Column("games", right=True)]
    started: Annotated[int, Column("started", right=True)]
    """Number of games that the bot started, in seat 0."""
    forfeits: Annotated[int, Column("forfeits", right=True)]
    """Number of games that the bot forfeited. The stand-in played them to their end."""


def points_rows(by_ruleset: Mapping[str, ResultColumns]) -> tuple[PointsRow, ...]:
    """Return a row for each bot, ruleset by ruleset, most points first.

    `by_ruleset` is the result of `ResultColumns.by_ruleset`.
    """
    return tuple(row for name, games in by_ruleset.items() for row in _add_up(name, games))


def _add_up(ruleset: str, results: ResultColumns) -> list[PointsRow]:
    size, taken = len(results.bots), results.bot != NOBODY
    bot = results.bot[taken]
    points = np.bincount(bot, results.points[taken], minlength=size).astype(int).tolist()
    games = np.bincount(bot, minlength=size).tolist()
    starts = np.bincount(results.bot[:, 0], minlength=size).tolist()
    forfeits = np.bincount(results.bot[results.forfeited], minlength=size).tolist()
    ranks = competition_ranks([(each,) for each in points])
    rows = [
        PointsRow(
            ruleset=ruleset,
            rank=ranks[number],
            bot=name,
            points=points[number],
            score=points[number] / games[number],
            games=games[number],
            started=starts[number],
            forfeits=forfeits[number],
        )
        for number, name in enumerate(results.bots)
    ]
    return sorted(rows, key=lambda row: row.rank)


def name_winners(rows: Iterable[PointsRow], missing: int) -> tuple[str, ...]:
    """Return one text for each ruleset. It names the winner by total points, or says why there is no winner.

    There is a winner only if all games are played, and if all bots have played and started equally often. If games are
    missing, return only one sentence, for all rulesets.

    Args:
        rows: the result of `points_rows`.
        missing: the number of games of the schedule that are not played.
    """
    if missing:
        games = (
            "1 game of the schedule is" if missing == 1 else f"{missing} games of the schedule are"
        )
        return (f"There is no winner yet: {games} not played.",)
    return tuple(
        f"{ruleset}: {_name_winner(list(table))}"
        for ruleset, table in groupby(rows, key=lambda row: row.ruleset)
    )


def _name_winner(table: Sequence[PointsRow]) -> str:
    for verb, counts in (
        ("played", {row.games: row.bot for row in table}),
        ("started", {row.started: row.bot for row in table}),
    ):
        least, most = min(counts), max(counts)
        if least < most:
            return (
                f"there is no winner by points, because not all bots have {verb} equally often:"
                f" {visible(counts[most])} has {verb} {count_text(most, 'game')}, {visible(counts[least])} {least}."
            )
    winners = [row for row in table if row.rank == 1]
    names = " and ".join(visible(row.bot) for row in winners)
    won = "wins" if len(winners) == 1 else "share the win"
    helped = [row for row in winners if row.forfeits]
    notes = "".join(
        f" {visible(row.bot)} forfeited {row.forfeits} of its games; each counts with the lowest points of its table."
        for row in helped
    )
    return f"{names} {won} with {count_text(winners[0].points, 'point')}.{notes}"
