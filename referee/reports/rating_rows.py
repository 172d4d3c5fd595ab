"""Make rows of ratings, of the history of a rating, and of the standings while a tournament runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated

from referee.ratings.intervals import Estimate
from referee.ratings.trueskill import Point, Rating
from referee.records import GameResult
from referee.reports.formats import (
    Column,
    chance,
    decimal,
    estimate,
    percent,
    percent_estimate,
    row_from,
)
from referee.rules.game import competition_ranks

if TYPE_CHECKING:  # numpy and scipy take a while to load
    from referee.ratings.analysis import Analysis


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingRow:
    """The rating of a bot in a ruleset, with 95 % intervals."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    rank: Annotated[int, Column("#", right=True)]
    """Rank by `rating`, then by mu. Bots that are equal in both share a rank."""
    bot: Annotated[str, Column("bot", wrap=True)]
    mu: Annotated[float, Column("mu", right=True, show=decimal(2))]
    """TrueSkill's estimate of the skill. TrueSkill takes the games in schedule order."""
    sigma: Annotated[float, Column("sigma", right=True, show=decimal(2))]
    rating: Annotated[float, Column("rating", right=True, show=decimal(2))]
    """mu - 3 sigma."""
    fit: Annotated[Estimate, Column("fit [95 %]", right=True, show=estimate(1), interval=True)]
    """The skill that explains all games at once, whatever their order. The bots of `Analysis.centre` have the mean fit 25.

    An end of the interval is None if the games set no limit on that side. For example, a bot that always ranked last has
    no lower end, and the table shows only the upper end, such as `< 3.1`. Both ends are None if there are too few matches.
    """
    ahead: Annotated[float | None, Column("ahead", right=True, show=chance, drop=3)]
    """Probability, by the fit, that the bot is better than the next bot in the table.

    It is None for the last bot, and if `Analysis.chance_of_lead` returns None: if neither bot beat the other, directly or over a
    chain of bots (a tie counts too), or if one of them has played fewer than two matches.
    """
    games: Annotated[int, Column("games", right=True, drop=6)]
    matches: Annotated[int, Column("matches", right=True, drop=9)]
    """Number of matches of the bot. The intervals are computed from matches, not from games."""
    wins: Annotated[int, Column("wins", data_only=True)]
    """Number of games in which the bot had rank 1, alone or shared. A game that the bot forfeited is not a win."""
    won: Annotated[
        Estimate,
        Column("won [95 %]", right=True, show=percent_estimate, drop=2, interval=True),
    ]
    """Wins divided by games."""
    points: Annotated[int, Column("points", right=True, drop=1)]
    """Sum of the points of the bot in all its games. In a game that it forfeited, it gets the lowest points of all seats."""
    score: Annotated[
        Estimate, Column("score [95 %]", right=True, show=estimate(1), drop=7, interval=True)
    ]
    """Mean points of the bot in a game. In a game that it forfeited, it gets the lowest points of all seats."""
    strikes: Annotated[int, Column("strikes", right=True, drop=1)]
    forfeits: Annotated[int, Column("forfeits", right=True, drop=8)]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """The rating of a bot after a round."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    tournament: Annotated[str, Column("tournament", wrap=True)]
    round: Annotated[int, Column("round", right=True)]
    """Round number, from 1."""
    games: Annotated[int, Column("games", right=True)]
    """Number of games of the bot up to the end of this round, in this ruleset."""
    mu: Annotated[float, Column("mu", right=True, show=decimal(2))]
    sigma: Annotated[float, Column("sigma", right=True, show=decimal(2))]
    rating: Annotated[float, Column("rating", right=True, show=decimal(2))]
    """mu - 3 sigma."""


def rating_rows(
    ruleset: str,
    ratings: Mapping[str, Rating],
    analysis: Analysis,
    strikes: Mapping[str, int],
) -> list[RatingRow]:
    """Return the ratings of a ruleset, best bot first.

    Args:
        ruleset: the name of the ruleset.
        ratings: the TrueSkill rating of each bot.
        analysis: the analysis of the games that the ratings come from.
        strikes: the number of strikes of each bot that has any.
    """
    figures = {each.bot: each for each in analysis.bots()}
    ranks = competition_ranks([(ratings[bot].conservative, ratings[bot].mu) for bot in figures])
    table = sorted(zip(ranks, figures, strict=True), key=lambda place: place[0])
    return [
        row_from(
            RatingRow,
            figures[bot],
            ruleset=ruleset,
            rank=rank,
            mu=ratings[bot].mu,
            sigma=ratings[bot].sigma,
            rating=ratings[bot].conservative,
            fit=figures[bot].rating,
            ahead=analysis.chance_of_lead(bot, below[1]) if below else None,
            won=figures[bot].win_share,
            strikes=strikes.get(bot, 0),
        )
        for (rank, bot), below in zip_longest(table, table[1:])
    ]


def history_rows(points: Mapping[str, Iterable[Point]]) -> tuple[HistoryRow, ...]:
    """Return a row for each round in which the bot has played, ruleset by ruleset.

    Args:
        points: for each ruleset, the ratings of one bot after each round, as `rating_history` returns them.
    """
    return tuple(
        HistoryRow(
            ruleset=ruleset,
            tournament=point.tournament,
            round=point.round,
            games=point.games,
            mu=point.rating.mu,
            sigma=point.rating.sigma,
            rating=point.rating.conservative,
        )
        for ruleset, each in points.items()
        for point in each
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingRow:
    """A bot in the standings of a ruleset while a tournament runs."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    rank: Annotated[int, Column("#", right=True)]
    """Rank by `rating`, then by mu. Bots that are equal in both share a rank."""
    bot: Annotated[str, Column("bot", wrap=True)]
    mu: Annotated[float, Column("mu", right=True, show=decimal(2))]
    sigma: Annotated[float, Column("sigma", right=True, show=decimal(2))]
    rating: Annotated[float, Column("rating", right=True, show=decimal(2))]
    """mu - 3 sigma."""
    games: Annotated[int, Column("games", right=True)]
    matches: Annotated[int, Column("matches", right=True, drop=1)]
    wins: Annotated[int, Column("wins", right=True)]
    """Number of games in which the bot had rank 1, alone or shared. A game that the bot forfeited is not a win."""
    won: Annotated[float, Column("won", right=True, show=percent, drop=2)]
    """Wins divided by games."""
    score: Annotated[float, Column("score", right=True, show=decimal(2), drop=5)]
    """Mean points of the bot in a game. In a game that it forfeited, it gets the lowest points of all seats."""
    strikes: Annotated[int, Column("strikes", right=True, drop=3)]
    forfeits: Annotated[int, Column("forfeits", right=True, drop=4)]


@dataclass(slots=True)
class _Sums:
    """Sums over all games of a bot in a ruleset."""

    games: int = 0
    matches: set[tuple[str, int]] = field(default_factory=set)
    wins: int = 0
    points: int = 0
    strikes: int = 0
    forfeits: int = 0


class Tally:
    """Sums games and strikes for the standings while a tournament runs. The order of the games does not matter."""

    def __init__(self) -> None:
        self._sums: dict[str, dict[str, _Sums]] = {}

    def add(self, game: GameResult, strikes: Mapping[int, int]) -> None:
        """Add a game. `strikes` has the number of strikes of each seat that has any."""
        by_bot = self._sums.setdefault(game.ruleset, {})
        for seat, bot in enumerate(game.bots):
            sums = by_bot.setdefault(bot, _Sums())
            forfeited = seat in game.forfeited
            sums.games += 1
            sums.matches.add(game.match_key)
            sums.wins += game.ranks[seat] == 1 and not forfeited
            sums.points += game.points[seat]
            sums.strikes += strikes.get(seat, 0)
            sums.forfeits += forfeited

    def rows(self, ratings: Mapping[str, Mapping[str, Rating]]) -> tuple[StandingRow, ...]:
        """Return the standings, ruleset by ruleset, best bot first.

        Args:
            ratings: the rating of each bot that has played, by ruleset and bot.
        """
        return tuple(
            row
            for ruleset, by_bot in sorted(self._sums.items())
            for row in _rows(ruleset, by_bot, ratings[ruleset])
        )


def _rows(
    ruleset: str,
    by_bot: Mapping[str, _Sums],
    ratings: Mapping[str, Rating],
) -> list[StandingRow]:
    """Return the standings of one ruleset, best bot first."""
    rated = {bot: ratings[bot] for bot in sorted(by_bot)}
    ranks = competition_ranks([(rating.conservative, rating.mu) for rating in rated.values()])
    rows = [
        row_from(
            StandingRow,
            by_bot[bot],
            ruleset=ruleset,
            rank=rank,
            bot=bot,
            mu=rating.mu,
            sigma=rating.sigma,
            rating=rating.conservative,
            matches=len(by_bot[bot].matches),
            won=by_bot[bot].wins / by_bot[bot].games,
            score=by_bot[bot].points / by_bot[bot].games,
        )
        for rank, (bot, rating) in zip(ranks, rated.items(), strict=True)
    ]
    return sorted(rows, key=lambda row: row.rank)
