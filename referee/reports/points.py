"""Add up the points of the bots over all games of a tournament, and name the winner, as in the rulebooks (ruling R19)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated

import numpy as np

from referee.reports.formats import Column, decimal, visible
from referee.result_columns import NOBODY, ResultColumns
from referee.rules.game import competition_ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class PointsRow:
    """The total points of a bot in a ruleset."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    rank: Annotated[int, Column("#", right=True)]
    """Rank by total points. Bots with equal points share a rank."""
    bot: Annotated[str, Column("bot", wrap=True)]
    points: Annotated[int, Column("points", right=True)]
    """Sum of the points of the bot in all its games. A forfeit does not change the points."""
    mean_score: Annotated[float, Column("score", right=True, show=decimal(2), drop=1)]
    """Mean points of the bot in a game."""
    games: Annotated[int, Column("games", right=True)]
    starts: Annotated[int, Column("started", right=True)]
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
    points = np.bincount(bot, results.score[taken], minlength=size).astype(int).tolist()
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
            mean_score=points[number] / games[number],
            games=games[number],
            starts=starts[number],
            forfeits=forfeits[number],
        )
        for number, name in enumerate(results.bots)
    ]
    return sorted(rows, key=lambda row: row.rank)


def name_winners(rows: Iterable[PointsRow], missing: int) -> tuple[str, ...]:
    """Return a sentence for each ruleset that names the winner by total points, or says why there is no winner.

    There is a winner only if all games are played, and if all bots have played and started equally often.

    Args:
        rows: the result of `points_rows`.
        missing: the number of games of the tournament that are still to be played.
    """
    if missing:
        games = "1 game is" if missing == 1 else f"{missing} games are"
        return (f"There is no winner yet: {games} still to be played.",)
    return tuple(
        f"{ruleset}: {_name_winner(list(table))}"
        for ruleset, table in groupby(rows, key=lambda row: row.ruleset)
    )


def _name_winner(table: Sequence[PointsRow]) -> str:
    for verb, counts in (
        ("played", {row.games: row.bot for row in table}),
        ("started", {row.starts: row.bot for row in table}),
    ):
        least, most = min(counts), max(counts)
        if least < most:
            return (
                f"there is no winner by points, because not all bots have {verb} equally often:"
                f" {visible(counts[most])} has {verb} {most} games, {visible(counts[least])} {least}."
            )
    winners = [row for row in table if row.rank == 1]
    names = " and ".join(visible(row.bot) for row in winners)
    won = "wins" if len(winners) == 1 else "share the win"
    helped = [row for row in winners if row.forfeits]
    notes = "".join(
        f" {visible(row.bot)} forfeited {row.forfeits} of its games; the stand-in played them to their end."
        for row in helped
    )
    return f"{names} {won} with {winners[0].points} points.{notes}"
