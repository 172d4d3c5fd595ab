"""What a schedule is made of: stages, matches and the games that matches unfold into.

- A **match** is one deal at one table, played in all k cyclic seatings: k **games**. Every match of
  a tournament has a deal of its own.
- A **lane** has its own process of each bot. Game i is played in lane i mod L. The k games of a
  match follow each other and L >= k, so no process ever meets a deal twice; and games are spread
  over the lanes as evenly as can be, whatever the table sizes. Worker w of W plays the lanes l with
  l mod W = w.
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
    """The part of a tournament that is played by one ruleset at one table size."""

    ruleset: Ruleset
    seats: int
    matches: int
    """At each table; of a balanced choice, at all tables together."""
    balanced: bool = False
    """Not every table plays: which ones do is a balanced choice."""
    challengers: int = 0
    """Of a gauntlet: the first so many bots. Each table has one of them; the others, the field, fill it."""

    def games(self, bots: int) -> int:
        """How many games it has."""
        return (1 if self.balanced else self._tables(bots)) * self.matches * self.seats

    def most_games(self, bots: int) -> tuple[int, int]:
        """How many games no challenger plays more than, and none of the other bots."""
        if not self.challengers:
            return 0, self._share(self.seats, bots, bots) * self.seats
        field = bots - self.challengers
        return (
            self._share(1, self.challengers, bots) * self.seats,
            self._share(self.seats - 1, field, bots) * self.seats,
        )

    def min_matches(self, bots: int) -> int:
        """The matches of the smallest balanced choice in which every bot plays."""
        if not self.challengers:
            return -(-bots // self.seats)
        return max(self.challengers, -(-(bots - self.challengers) // (self.seats - 1)))

    def _tables(self, bots: int) -> int:
        if not self.challengers:
            return math.comb(bots, self.seats)
        return self.challengers * math.comb(bots - self.challengers, self.seats - 1)

    def _share(self, places: int, bots: int, all_bots: int) -> int:
        """The matches of one of those who share so many places of each table, at most."""
        matches = self.matches * (1 if self.balanced else self._tables(all_bots))
        return -(-matches * places // bots)


@dataclass(frozen=True, slots=True)
class Match:
    """A match, before its games get their numbers."""

    stage: int
    round: int
    order: tuple[int, ...]
    """The bots of the table, clockwise."""


def expand_matches(
    tournament: str,
    bots: Sequence[str],
    matches: Iterable[Match],
    *,
    lanes: int,
) -> tuple[ScheduledGame, ...]:
    """The games of matches, in the order of play."""
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
    """Raise ValueError for what cannot be scheduled.

    That is a bot named twice, a stage without enough bots or with a table size that its ruleset does
    not allow, and too few lanes.
    """
    if len(set(bots)) != len(bots):
        raise ValueError(f"a bot is named twice: {', '.join(bots)}")
    for stage in stages:
        rules = stage.ruleset
        if not rules.min_players <= stage.seats <= rules.max_players:
            raise ValueError(f"{rules.name} is not played by {stage.seats}")
        if len(bots) < stage.seats:
            raise ValueError(f"{len(bots)} bots do not fill {stage.seats} seats")
        if lanes < stage.seats:
            raise ValueError(f"{lanes} lanes are too few for {stage.seats} seats")


def default_lanes(seats: Iterable[int], workers: int) -> int:
    """How many lanes a tournament with these table sizes has where it does not say.

    The lowest multiple of the workers that is at least 4 and enough for the largest table: all
    workers get equal shares, one or two of them have a second lane to go on with, and every lane
    more would cost a process of each bot.
    """
    return workers * math.ceil(max(_LEAST_LANES, *seats) / workers)
