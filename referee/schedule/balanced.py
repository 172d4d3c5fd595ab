"""A round robin that is too large for its budget: of its tables, a balanced choice.

What holds for the whole of a stage, and what comes as near to it as a search gets:

- all bots have played equally often after each **round**, after the last one within one match;
- every bot has each seat equally often, since a match has all cyclic seatings;
- all pairs meet equally often, within one match where the search finds that (`choice`);
- everybody sits to the right of everybody else equally often, as near as can be (`neighbours`).

Stages take turns by rounds, next always the one that has had the fewest games. Where all bots cannot
play equally often in a stage, the next stage makes up for it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from referee.schedule.choice import Table, balanced_tables
from referee.schedule.games import Match, ScheduledGame, Stage, check, unfold
from referee.schedule.neighbours import even_orders


def balanced(
    tournament: str, bots: Sequence[str], stages: Sequence[Stage], *, lanes: int
) -> tuple[ScheduledGame, ...]:
    """The schedule of a tournament, in the order of play; it depends on nothing but the arguments.

    Raises ValueError as `games.check` does.
    """
    check(bots, stages, lanes)
    matches = rounds_in_turn(stages, _rounds(len(bots), stages))
    return unfold(tournament, bots, stages, matches, lanes=lanes)


def rounds_in_turn(
    stages: Sequence[Stage], rounds: Iterable[Iterable[Sequence[Table]]]
) -> Iterator[Match]:
    """The matches of the rounds of each stage, whose tables are cyclic orders.

    The next round is always one of the stage that has had the fewest games.
    """
    left = [deque(enumerate(each)) for each in rounds]
    games = [0] * len(stages)
    while any(left):
        waiting = [stage for stage, more in enumerate(left) if more]
        stage = min(waiting, key=games.__getitem__)
        number, orders = left[stage].popleft()
        games[stage] += len(orders) * stages[stage].seats
        for order in orders:
            yield Match(stage, number, order)


def _rounds(bots: int, stages: Sequence[Stage]) -> Iterator[list[list[Table]]]:
    """The rounds of each stage, their tables as cyclic orders."""
    played = Counter(range(bots))
    played.subtract(range(bots))
    for stage in stages:
        rounds = balanced_tables(bots, stage.seats, stage.matches)
        plays = Counter(chain.from_iterable(chain.from_iterable(rounds)))
        most_first = sorted(range(bots), key=lambda bot: -plays[bot])
        names = dict(zip(most_first, sorted(range(bots), key=played.__getitem__), strict=True))
        for bot, name in names.items():
            played[name] += plays[bot]
        tables = [tuple(sorted(names[bot] for bot in table)) for each in rounds for table in each]
        orders = iter(even_orders(tables))
        yield [[next(orders) for _ in each] for each in rounds]
