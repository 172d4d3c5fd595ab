"""The table of a tournament while it is played: how each bot did, and how strong that makes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from referee.ratings import Rating
from referee.reports.formats import Column, decimal, percent
from referee.reports.inputs import ChargedFault, FinishedGame
from referee.rules.scoring import competition_ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingRow:
    """How a bot stands in a ruleset."""

    ruleset: Annotated[str, Column("ruleset", section=True)]
    rank: Annotated[int, Column("#", right=True)]
    """By conservative rating, then mu; equal ranks are shared."""
    bot: Annotated[str, Column("bot", wrap=True)]
    mu: Annotated[float, Column("mu", right=True, show=decimal(2))]
    sigma: Annotated[float, Column("sigma", right=True, show=decimal(2))]
    conservative: Annotated[float, Column("rating", right=True, show=decimal(2))]
    """mu - 3 sigma."""
    games: Annotated[int, Column("games", right=True)]
    matches: Annotated[int, Column("matches", right=True, drop=1)]
    wins: Annotated[int, Column("wins", right=True)]
    """Games of rank 1, shared ones included, forfeited ones not."""
    win_share: Annotated[float, Column("won", right=True, show=percent, drop=2)]
    """Wins divided by games."""
    mean_score: Annotated[float, Column("score", right=True, show=decimal(2), drop=5)]
    """Mean points of a game, by the rules."""
    strikes: Annotated[int, Column("strikes", right=True, drop=3)]
    forfeits: Annotated[int, Column("forfeits", right=True, drop=4)]


@dataclass(slots=True)
class _Sums:
    """What a bot has collected in a ruleset."""

    games: int = 0
    matches: set[Hashable] = field(default_factory=set)
    wins: int = 0
    points: int = 0
    forfeits: int = 0


class Tally:
    """Adds games and faults up; the order in which they come is no matter."""

    def __init__(self) -> None:
        self._sums: dict[str, dict[str, _Sums]] = {}
        self._rulesets: dict[str, str] = {}
        """Ruleset of each game."""
        self._strikes = Counter[tuple[str, str]]()
        """By game and bot."""

    def add(self, game: FinishedGame) -> None:
        """Count a game."""
        self._rulesets[game.game_id] = game.ruleset
        by_bot = self._sums.setdefault(game.ruleset, {})
        for seat, bot in enumerate(game.bots):
            sums = by_bot.setdefault(bot, _Sums())
            forfeited = seat in game.forfeited
            sums.games += 1
            sums.matches.add(game.match)
            sums.wins += game.ranks[seat] == 1 and not forfeited
            sums.points += game.scores[seat]
            sums.forfeits += forfeited

    def charge(self, fault: ChargedFault) -> None:
        """Count a fault. It is shown once its game has been added."""
        if not fault.forfeit:
            self._strikes[fault.game_id, fault.bot] += 1

    def rows(self, ratings: Mapping[str, Mapping[str, Rating]]) -> tuple[StandingRow, ...]:
        """The standings, ruleset by ruleset, best first.

        `ratings` are by ruleset and bot. Raises KeyError when a bot that played is not among them.
        """
        strikes = Counter[tuple[str, str]]()
        for (game_id, bot), count in self._strikes.items():
            if game_id in self._rulesets:
                strikes[self._rulesets[game_id], bot] += count
        return tuple(
            row
            for ruleset, by_bot in sorted(self._sums.items())
            for row in _rows(ruleset, by_bot, ratings[ruleset], strikes)
        )


def _rows(
    ruleset: str,
    by_bot: Mapping[str, _Sums],
    ratings: Mapping[str, Rating],
    strikes: Mapping[tuple[str, str], int],
) -> list[StandingRow]:
    """The standings of one ruleset, best first."""
    rated = {bot: ratings[bot] for bot in sorted(by_bot)}
    ranks = competition_ranks([(rating.conservative, rating.mu) for rating in rated.values()])
    rows = [
        StandingRow(
            ruleset=ruleset,
            rank=rank,
            bot=bot,
            mu=rating.mu,
            sigma=rating.sigma,
            conservative=rating.conservative,
            games=by_bot[bot].games,
            matches=len(by_bot[bot].matches),
            wins=by_bot[bot].wins,
            win_share=by_bot[bot].wins / by_bot[bot].games,
            mean_score=by_bot[bot].points / by_bot[bot].games,
            strikes=strikes.get((ruleset, bot), 0),
            forfeits=by_bot[bot].forfeits,
        )
        for rank, (bot, rating) in zip(ranks, rated.items(), strict=True)
    ]
    return sorted(rows, key=lambda row: row.rank)
