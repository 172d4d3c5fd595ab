"""Compute the whole schedule of a tournament before its first game.

The same arguments always give the same schedule, so anyone can compute it again. This module defines stages
and matches, and expands matches into games. The other modules of the package choose which bots meet at which
table.

- A match is k games at one table of k bots, one in each cyclic seating. All its games have the same deal, which no
  other match has. In a stage with fresh deals, each game has its own deal.
- A lane has its own process of each bot. If there are L lanes, game i is played in lane i mod L. The k games
  of a match have consecutive numbers, and L is at least k. So these games are played in k different lanes,
  and no process ever meets a deal twice.
- If there are W workers, worker w plays the lanes l with l mod W = w.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from referee.errors import count_text
from referee.records import ScheduledGame
from referee.rules.ruleset import Ruleset

BotTable = tuple[int, ...]
"""The bots of a match, as numbers from 0."""

_LEAST_LANES = 4


class Deals(Enum):
    """Which games of a stage have the same deal (ruling R19)."""

    SAME = "same"
    """All games of a match have the same deal, so every bot plays every hand."""
    FRESH = "fresh"
    """Each game has its own deal, as in the rulebooks."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a tournament with one ruleset and one table size."""

    ruleset: Ruleset
    seats: int
    """Number of seats of each table."""
    matches: int
    """Number of matches at each table. If `balanced`, number of matches of all tables together."""
    balanced: bool = False
    """True if only a balanced choice of the tables plays; False if all tables play."""
    challengers: int = 0
    """Number of challengers, 0 if the format is no gauntlet. The first bots of the tournament are the challengers."""
    deals: Deals = Deals.SAME
    """Whether the games of a match have the same deal."""

    def deal_id(self, tournament: str, match: int, seating: int) -> str:
        """Return the id of the deal of a game: `TOURNAMENT-deal-M`, or `TOURNAMENT-deal-M-J` for a fresh deal.

        Args:
            tournament: the name of the tournament.
            match: the number of the match, from 1: the M of the id.
            seating: the number of the game in its match, from 0. J is this number plus 1.
        """
        own = f"-{seating + 1}" if self.deals is Deals.FRESH else ""
        return f"{tournament}-deal-{match}{own}"

    def games(self, bots: int) -> int:
        """Return the number of games of the stage, if the tournament has `bots` bots."""
        return (1 if self.balanced else self._tables(bots)) * self.matches * self.seats

    def most_games(self, bots: int) -> tuple[int, int]:
        """Return the most games that any challenger plays, and the most games that any other bot plays.

        The first number is 0 if the stage has no challengers.
        """
        if not self.challengers:
            return 0, self._share(self.seats, bots, bots) * self.seats
        field = bots - self.challengers
        return (
            self._share(1, self.challengers, bots) * self.seats,
            self._share(self.seats - 1, field, bots) * self.seats,
        )

    def min_matches(self, bots: int) -> int:
        """Return the smallest number of matches of a balanced choice in which each of `bots` bots plays."""
        if not self.challengers:
            return -(-bots // self.seats)
        return max(self.challengers, -(-(bots - self.challengers) // (self.seats - 1)))

    def _tables(self, bots: int) -> int:
        """Return the number of different tables that `bots` bots can form."""
        if not self.challengers:
            return math.comb(bots, self.seats)
        return self.challengers * math.comb(bots - self.challengers, self.seats - 1)

    def _share(self, places: int, bots: int, all_bots: int) -> int:
        """Return the most matches that one bot of a group plays.

        Args:
            places: the number of seats at each table that are for the group.
            bots: the number of bots in the group.
            all_bots: the number of bots in the tournament.
        """
        matches = self.games(all_bots) // self.seats
        return -(-matches * places // bots)


def count_games(stages: Iterable[Stage], bots: int) -> int:
    """Return the number of games of all stages, if the tournament has `bots` bots."""
    return sum(stage.games(bots) for stage in stages)


@dataclass(frozen=True, slots=True)
class Match:
    """A match, before `expand_matches` numbers its games."""

    stage: int
    round: int
    """Round number inside the stage, from 1."""
    order: BotTable
    """The bots of the table in clockwise order; each number is a position in the tournament's list of bots."""


def expand_matches(
    tournament: str,
    bots: Sequence[str],
    stages: Sequence[Stage],
    matches: Iterable[Match],
    *,
    lanes: int,
) -> tuple[ScheduledGame, ...]:
    """Return the games of all matches, numbered in the order of play.

    Args:
        tournament: the name of the tournament; the ids of deals and games begin with this name.
        bots: the names of all bots of the tournament.
        stages: the stages of the tournament.
        matches: the matches in the order of play.
        lanes: the number of lanes.
    """
    games: list[ScheduledGame] = []
    for number, match in enumerate(matches, start=1):
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
                    deal_id=stages[match.stage].deal_id(tournament, number, seating),
                    game_id=f"{tournament}-{index + 1}",
                )
            )
    return tuple(games)


def check_stages(bots: Sequence[str], stages: Iterable[Stage], lanes: int) -> None:
    """Raise ValueError if the stages cannot be scheduled.

    `bots` must not contain a name twice. The ruleset of each stage must allow the stage's table size. The
    tournament needs at least as many bots, and at least as many lanes, as the largest table has seats.
    """
    if len(set(bots)) != len(bots):
        raise ValueError(f"a bot is named twice: {', '.join(bots)}; name each bot once")
    for stage in stages:
        rules = stage.ruleset
        if not rules.min_players <= stage.seats <= rules.max_players:
            raise ValueError(
                f"{rules.name} is not played at tables of {stage.seats};"
                f" choose from {rules.min_players} to {rules.max_players} seats"
            )
        if len(bots) < stage.seats:
            raise ValueError(
                f"{count_text(len(bots), 'bot')} cannot fill {stage.seats} seats; add bots or choose smaller tables"
            )
        if lanes < stage.seats:
            raise ValueError(
                f"tables of {stage.seats} seats need at least {stage.seats} lanes, not {lanes}"
            )


def default_lanes(seats: Iterable[int], workers: int) -> int:
    """Return the number of lanes that a tournament has if its file does not set `lanes`.

    The result is the smallest multiple of `workers` that is at least 4 and at least the size of the largest
    table. With a multiple, all workers get equally many lanes. The smallest multiple saves memory, because
    each lane has a process of each bot.

    Args:
        seats: the table size of each stage.
        workers: the number of workers.
    """
    return workers * math.ceil(max(_LEAST_LANES, *seats) / workers)
