"""Compute the whole schedule of a tournament before its first game.

A schedule depends only on its arguments, so that anyone can compute it again. This module defines stages and
matches, and expands matches into games. The other modules choose which bots meet at which table.

- A match is one deal at one table, played in all k cyclic seatings: k games. Every match of a tournament has its
  own deal.
- A lane has its own process of each bot. Of L lanes, game i is played in lane i mod L. The k games of a match
  follow each other and L >= k, so no process ever meets a deal twice. Games are spread over the lanes evenly,
  whatever the table sizes. Of W workers, worker w plays the lanes l with l mod W = w.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from referee.records import ScheduledGame
from referee.rules.ruleset import Ruleset

_LEAST_LANES = 4


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a tournament with one ruleset and one table size."""

    ruleset: Ruleset
    seats: int
    """Number of seats of each table."""
    matches: int
    """Number of matches at each table; in a balanced choice, of all tables together."""
    balanced: bool = False
    """True if only a balanced choice of the tables plays."""
    challengers: int = 0
    """Number of challengers in a gauntlet: the first bots. 0 if it is no gauntlet."""

    def games(self, bots: int) -> int:
        """Return the number of games for this number of bots."""
        return (1 if self.balanced else self._tables(bots)) * self.matches * self.seats

    def most_games(self, bots: int) -> tuple[int, int]:
        """Return two numbers: the most games of any challenger (0 without challengers), and of any other bot."""
        if not self.challengers:
            return 0, self._share(self.seats, bots, bots) * self.seats
        field = bots - self.challengers
        return (
            self._share(1, self.challengers, bots) * self.seats,
            self._share(self.seats - 1, field, bots) * self.seats,
        )

    def min_matches(self, bots: int) -> int:
        """Return the fewest matches of a balanced choice in which every bot plays."""
        if not self.challengers:
            return -(-bots // self.seats)
        return max(self.challengers, -(-(bots - self.challengers) // (self.seats - 1)))

    def _tables(self, bots: int) -> int:
        if not self.challengers:
            return math.comb(bots, self.seats)
        return self.challengers * math.comb(bots - self.challengers, self.seats - 1)

    def _share(self, places: int, bots: int, all_bots: int) -> int:
        """Return the most matches of one of `bots` bots that share `places` places of each table."""
        matches = self.matches * (1 if self.balanced else self._tables(all_bots))
        return -(-matches * places // bots)


@dataclass(frozen=True, slots=True)
class Match:
    """A match whose games are not numbered yet."""

    stage: int
    round: int
    """Round number inside the stage, from 0."""
    order: tuple[int, ...]
    """The bots of the table in clockwise order, as indexes of the tournament's bots."""


def expand_matches(
    tournament: str,
    bots: Sequence[str],
    matches: Iterable[Match],
    *,
    lanes: int,
) -> tuple[ScheduledGame, ...]:
    """Return the numbered games of the matches, in the order of play."""
    games: list[ScheduledGame] = []
    for number, match in enumerate(matches):
        seats = len(match.order)
        for seating in range(seats):
            index = len(games)
            games.append(
                ScheduledGame(
                    index=index,
                    stage=match.stage,
                    round=match.round,
                    match=number,
                    seating=seating,
                    lane=index % lanes,
                    bots=tuple(
                        bots[match.order[(seating + seat) % seats]] for seat in range(seats)
                    ),
                    deal_id=f"{tournament}-deal-{number + 1}",
                    game_id=f"{tournament}-{index + 1}",
                )
            )
    return tuple(games)


def check_stages(bots: Sequence[str], stages: Iterable[Stage], lanes: int) -> None:
    """Raise ValueError if the stages cannot be scheduled.

    A bot may not be named twice. Each stage needs enough bots, enough lanes and a table size that its
    ruleset allows.
    """
    if len(set(bots)) != len(bots):
        raise ValueError(f"a bot is named twice: {', '.join(bots)}")
    for stage in stages:
        rules = stage.ruleset
        if not rules.min_players <= stage.seats <= rules.max_players:
            raise ValueError(f"{rules.name} is not played at tables of {stage.seats}")
        if len(bots) < stage.seats:
            raise ValueError(f"{len(bots)} bots do not fill {stage.seats} seats")
        if lanes < stage.seats:
            raise ValueError(f"{lanes} lanes are too few for {stage.seats} seats")


def default_lanes(seats: Iterable[int], workers: int) -> int:
    """Return the number of lanes of a tournament that does not set it.

    It is the smallest multiple of `workers` that is at least 4 and at least the size of the largest table. So
    all workers have equally many lanes. More lanes would cost one more process of each bot.
    """
    return workers * math.ceil(max(_LEAST_LANES, *seats) / workers)
