"""Round robin: every table of k bots, in rounds.

- A **table** is a set of k of the n bots; a stage has all C(n,k) of them.
- A **round** is one match of every table of a stage, next always a table of those who have played
  least so far. A tournament's stages take turns, round by round. So standings mean something at any
  time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from referee.schedule.games import Match, ScheduledGame, Stage, check, unfold
from referee.schedule.neighbours import Neighbours
from referee.schedule.tables import tables_in_turn


def round_robin(
    tournament: str, bots: Sequence[str], stages: Sequence[Stage], *, lanes: int
) -> tuple[ScheduledGame, ...]:
    """The schedule of a tournament, in the order of play.

    It depends on nothing but the arguments. When matches are added to the stages that have most of
    them, the longer schedule begins with the shorter one, and ids stay what they were.

    Raises ValueError as `games.check` does.
    """
    check(bots, stages, lanes)
    tables = [list(tables_in_turn(len(bots), stage.seats)) for stage in stages]
    return unfold(tournament, bots, stages, whole_rounds(stages, tables), lanes=lanes)


def whole_rounds(
    stages: Sequence[Stage], tables: Sequence[Sequence[tuple[int, ...]]]
) -> Iterator[Match]:
    """The matches of stages that have all these tables in each of their rounds, in this order."""
    neighbours = [Neighbours() for _ in stages]
    for round_number in range(max(stage.matches for stage in stages)):
        for number, stage in enumerate(stages):
            if round_number < stage.matches:
                for table in tables[number]:
                    yield Match(number, round_number, neighbours[number].seat(table))
