"""Schedule a balanced choice of tables, for a budget that is too small for all tables.

Within a stage the following holds, or nearly holds where a search decides:

- all bots have played equally often after each round; after the last round they differ by one match at most;
- every bot has each seat equally often, because a match has all cyclic seatings;
- all pairs meet equally often, within one match, if the search finds that;
- every bot has every other bot as its left neighbour equally often, as nearly as possible.

Stages take turns by rounds: the next round belongs to the stage with the fewest games so far. If the bots
cannot play equally often in a stage, the next stage compensates for it.

The search for the tables starts with a greedy choice: the next bot is always one that has played least.
This fixes how often each bot plays in each round. Then a random walk exchanges bots between two matches of a
round, if the sum over all pairs of their squared numbers of meetings does not grow. That sum is smallest when
no two pairs differ by more than one meeting. Exchanges that keep the sum lead out of most dead ends. If the
walk ends in one, it continues with rounds of double length, which give more freedom. A perfect choice does not
always exist, and the walk may miss it.

The walk uses `Random.random` with a fixed seed. Python guarantees its sequence, so the schedule is the same on
all machines.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations
from random import Random

from referee.records import ScheduledGame
from referee.schedule import Match, Stage, check_stages, expand_matches
from referee.schedule.round_robin import choose_orders

BotTable = tuple[int, ...]

_STEPS = 200_000
"""Steps of a walk with rounds of one length."""
_LONGEST = 32
"""The longest rounds, as a multiple of the shortest in which all bots play equally often."""
_CHECK_EVERY = 1_000
"""Steps between two tests whether the walk has reached its goal."""
_LOOK_AHEAD = 64
"""Number of waiting tables of a round among which the next one is selected."""


def balanced_tables(bots: int, seats: int, matches: int) -> list[list[BotTable]]:
    """Return `matches` tables of the bots 0, 1, …, grouped into rounds, each table in ascending order.

    All bots play equally often in each round. Only the last round may be shorter; after it the bots
    differ by one match at most.
    """
    choice = _Choice(bots, seats)
    for _ in range(matches):
        choice.add()
    random = Random(0).random  # noqa: S311 - no secret
    length = shortest = bots // math.gcd(bots, seats)
    choice.walk(length, random)
    least, best_length, tables = choice.difference(), length, choice.copy()
    while length < min(matches, _LONGEST * shortest) and least > 1:
        length *= 2
        choice.walk(length, random)
        if choice.difference() < least:
            least, best_length, tables = choice.difference(), length, choice.copy()
    return [
        list(_order_tables(bots, tables[first : first + best_length]))
        for first in range(0, matches, best_length)
    ]


class _Choice:
    """The tables chosen so far, and how often each bot has played and each pair has met."""

    def __init__(self, bots: int, seats: int) -> None:
        self._tables: list[list[int]] = []
        self._seats = seats
        self._played = [0] * bots
        self._met = [[0] * bots for _ in range(bots)]

    def add(self) -> None:
        """Add a table of the bots that have played least; among equals, of those that have met least."""
        table: list[int] = []
        least = min(self._played)
        for level in (least, least + 1):
            missing = self._seats - len(table)
            waiting = [bot for bot, played in enumerate(self._played) if played == level]
            if len(waiting) <= missing:
                table += waiting
                continue
            met = {bot: sum(self._met[bot][other] for other in table) for bot in waiting}
            for _ in range(missing):
                chosen = min(met, key=met.__getitem__)
                del met[chosen]
                table.append(chosen)
                for bot in met:
                    met[bot] += self._met[bot][chosen]
            break
        for bot in table:
            self._played[bot] += 1
        for one, other in combinations(table, 2):
            self._meet(one, other, 1)
        self._tables.append(table)

    def difference(self) -> int:
        """Return the difference between the most and the fewest meetings of a pair."""
        meetings = [met for bot, others in enumerate(self._met) for met in others[:bot]]
        return max(meetings) - min(meetings)

    def copy(self) -> list[BotTable]:
        """Return the tables as they are now, each in ascending order."""
        return [tuple(sorted(table)) for table in self._tables]

    def walk(self, length: int, random: Callable[[], float]) -> None:
        """Exchange bots between matches of the same round of this length, at random, many times."""
        if length == 1:
            return
        for step in range(_STEPS):
            if step % _CHECK_EVERY == 0 and self.difference() <= 1:
                return
            number = int(random() * len(self._tables))
            first = number - number % length
            size = min(length, len(self._tables) - first)
            table, other = self._tables[number], self._tables[first + int(random() * size)]
            place, other_place = int(random() * self._seats), int(random() * self._seats)
            if table[place] not in other and other[other_place] not in table:
                self._exchange(table, place, other, other_place)

    def _exchange(self, table: list[int], place: int, other: list[int], other_place: int) -> None:
        """Exchange the bots at two places of two tables, unless that makes the meetings less even."""
        bot, guest = table[place], other[other_place]
        met_bot, met_guest = self._met[bot], self._met[guest]
        left = [each for each in table if each != bot and each not in other]
        joined = [each for each in other if each != guest and each not in table]
        grows = sum(met_guest[each] - met_bot[each] + 1 for each in left)
        grows += sum(met_bot[each] - met_guest[each] + 1 for each in joined)
        if grows > 0:
            return
        for each in left:
            self._meet(bot, each, -1)
            self._meet(guest, each, 1)
        for each in joined:
            self._meet(guest, each, -1)
            self._meet(bot, each, 1)
        table[place], other[other_place] = guest, bot

    def _meet(self, one: int, other: int, times: int) -> None:
        self._met[one][other] += times
        self._met[other][one] += times


def _order_tables(bots: int, tables: list[BotTable]) -> Iterator[BotTable]:
    """Yield the tables of a round, next always one whose bots have played least in it."""
    played = [0] * bots
    left = list(tables)
    while left:
        table = min(
            left[:_LOOK_AHEAD],
            key=lambda table: (
                max(played[bot] for bot in table),
                sum(played[bot] for bot in table),
            ),
        )
        left.remove(table)
        for bot in table:
            played[bot] += 1
        yield table


def balanced_schedule(
    tournament: str, bots: Sequence[str], stages: Sequence[Stage], *, lanes: int
) -> tuple[ScheduledGame, ...]:
    """Return the schedule of a tournament, in the order of play. Raises ValueError as `check_stages`."""
    check_stages(bots, stages, lanes)
    matches = interleave_rounds(stages, _rounds(len(bots), stages))
    return expand_matches(tournament, bots, matches, lanes=lanes)


def interleave_rounds(
    stages: Sequence[Stage], rounds: Iterable[Iterable[Sequence[BotTable]]]
) -> Iterator[Match]:
    """Yield the matches of all stages; the next round is always of the stage with the fewest games.

    Args:
        stages: the stages.
        rounds: for each stage its rounds, each a list of tables in cyclic order.
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


def _rounds(bots: int, stages: Sequence[Stage]) -> Iterator[list[list[BotTable]]]:
    """Yield the rounds of each stage, with the bots of each table in cyclic order.

    If the bots cannot play equally often in a stage, those that played least in earlier stages play more.
    """
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
        orders = iter(choose_orders(tables))
        yield [[next(orders) for _ in each] for each in rounds]
