"""Round robin: every table of k bots, in rounds.

- A **table** is a set of k of the n bots; a stage has all C(n,k) of them.
- A **match** is one deal at one table, played in all k cyclic seatings: k **games**. Every match of
  a tournament has a deal of its own.
- A **round** is one match of every table of a stage, next always a table of those who have played
  least so far. A tournament's stages take turns, round by round. So standings mean something at any
  time.
- A **lane** has its own process of each bot. Game i is played in lane i mod L. The k games of a
  match follow each other and L >= k, so no process ever meets a deal twice; and games are spread
  over the lanes as evenly as can be, whatever the table sizes. Worker w of W plays the lanes l with
  l mod W = w.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from referee.rules.ruleset import Ruleset
from referee.schedule.neighbours import Neighbours
from referee.schedule.tables import tables_in_turn

_LEAST_LANES = 4


@dataclass(frozen=True, slots=True)
class Stage:
    """The part of a tournament that is played by one ruleset at one table size."""

    ruleset: Ruleset
    seats: int
    matches: int
    """At each table: the number of rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledGame:
    """A game of a tournament. All numbers count from 0, over the whole tournament."""

    index: int
    stage: int
    round: int
    match: int
    """Also numbers the deal."""
    seating: int
    """Which of the cyclic seatings of the match: by how many places the bots have moved."""
    lane: int
    bots: tuple[str, ...]
    """Names; seat 0, which starts, first, then clockwise."""
    ruleset: Ruleset
    deal_id: str
    """`NAME-deal-N`, N from 1: shared by the games of the match."""
    game_id: str
    """`NAME-N`, N from 1."""


def round_robin(
    tournament: str, bots: Sequence[str], stages: Sequence[Stage], *, lanes: int
) -> tuple[ScheduledGame, ...]:
    """The schedule of a tournament, in the order of play.

    It depends on nothing but the arguments. When matches are added to the stages that have most of
    them, the longer schedule begins with the shorter one, and ids stay what they were.

    Raises ValueError for a bot named twice, a stage without enough bots or with a table size that
    its ruleset does not allow, and too few lanes.
    """
    _check(bots, stages, lanes)
    games: list[ScheduledGame] = []
    for number, match in enumerate(_matches(len(bots), stages)):
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
                    ruleset=stages[match.stage].ruleset,
                    deal_id=f"{tournament}-deal-{number + 1}",
                    game_id=f"{tournament}-{index + 1}",
                )
            )
    return tuple(games)


ALGORITHM = "round-robin-1"
"""What makes the schedules of new tournaments."""
ALGORITHMS = MappingProxyType({ALGORITHM: round_robin})
"""All that ever did, by the names that leagues keep. One that makes other schedules gets a new name."""


def default_lanes(seats: Iterable[int], workers: int) -> int:
    """How many lanes a tournament with these table sizes has where it does not say.

    The lowest multiple of the workers that is at least 4 and enough for the largest table: all
    workers get equal shares, one or two of them have a second lane to go on with, and every lane
    more would cost a process of each bot.
    """
    return workers * math.ceil(max(_LEAST_LANES, *seats) / workers)


def rounds_within(budget: int, bots: int, seats: Sequence[int]) -> int:
    """How many whole rounds of all stages fit into a number of games.

    Raises ValueError, which names the smallest budget that works, when not even one does.
    """
    games = sum(math.comb(bots, size) * size for size in seats)
    if budget < games:
        raise ValueError(f"{budget} games are less than one round, which has {games}")
    return budget // games


@dataclass(frozen=True, slots=True)
class _Match:
    stage: int
    round: int
    order: tuple[int, ...]
    """The bots of the table, clockwise."""


def _matches(bots: int, stages: Sequence[Stage]) -> Iterator[_Match]:
    neighbours = [Neighbours() for _ in stages]
    tables = [list(tables_in_turn(bots, stage.seats)) for stage in stages]
    for round_number in range(max(stage.matches for stage in stages)):
        for number, stage in enumerate(stages):
            if round_number < stage.matches:
                for table in tables[number]:
                    yield _Match(number, round_number, neighbours[number].seat(table))


def _check(bots: Sequence[str], stages: Sequence[Stage], lanes: int) -> None:
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
