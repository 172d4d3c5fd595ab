"""Schedule a balanced choice of tables, for a budget that is too small for all tables.

In this module a round is a group of matches in which all bots play equally often. Only the last round of a
stage may be shorter. Each stage has these properties:

- After each round all bots have played equally often. After a shorter last round the numbers of matches of two
  bots differ by one at most.
- Every bot has each seat equally often, because a match has all cyclic seatings.
- All pairs of bots meet about equally often. `balanced_tables` searches for such tables.
- Each bot has each other bot as left neighbour about equally often. `choose_orders` searches for such orders.

Stages take turns: the next round is always from the stage with the fewest games so far. If a stage must let
some bots play more often than others, it prefers the bots that play least in the earlier stages of the list.

The search of `balanced_tables` has two steps:

1. A greedy choice fills the tables: the next bot is always one that has played least. This step fixes how
   often each bot plays in each round.
2. A random walk exchanges bots between two matches of a round. Its cost is the sum, over all pairs of bots,
   of the squared number of meetings. The goal is that no two pairs differ by more than one meeting; then the
   cost is smallest. The walk makes only exchanges that do not increase the cost. Exchanges that do not
   change the cost lead out of most dead ends. If the walk does not reach its goal, it continues with rounds of double length,
   because longer rounds allow more exchanges.

For some tournaments no choice of tables reaches the goal. For other tournaments the walk may miss the goal.

The walk uses `Random.random` with a fixed seed. Python guarantees the sequence of these numbers, so the
schedule is the same on all machines.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations
from random import Random

from referee.records import ScheduledGame
from referee.schedule import BotTable, Match, Stage, check_stages, expand_matches
from referee.schedule.cyclic_orders import choose_orders

_STEPS = 200_000
"""The largest number of steps of the walk before the length of the rounds is doubled."""
_LONGEST = 32
"""The longest round, as a multiple of the shortest round in which all bots can play equally often."""
_CHECK_EVERY = 1_000
"""Number of steps after which the walk tests again whether it has reached its goal."""
_LOOK_AHEAD = 64
"""How many of the remaining tables `_order_tables` compares to select the next table."""


def balanced_tables(bots: int, seats: int, matches: int) -> list[list[BotTable]]:
    """Return the tables of `matches` matches between the bots 0, 1, …, as a list of rounds.

    The bots of a table are in ascending order. The module's docstring says what a round is.
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
    """The tables chosen so far, how often each bot has played, and how often each pair of bots has met."""

    def __init__(self, bots: int, seats: int) -> None:
        self._tables: list[list[int]] = []
        self._seats = seats
        self._played = [0] * bots
        self._met = [[0] * bots for _ in range(bots)]

    def add(self) -> None:
        """Add a table of the bots that have played least.

        Among bots that have played equally often, prefer the bot that has the fewest meetings with the bots
        already at the table.
        """
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
        """Return the largest number of meetings of a pair minus the smallest number of meetings of a pair."""
        meetings = [met for bot, others in enumerate(self._met) for met in others[:bot]]
        return max(meetings) - min(meetings)

    def copy(self) -> list[BotTable]:
        """Return a copy of the tables; the bots of each table are in ascending order."""
        return [tuple(sorted(table)) for table in self._tables]

    def walk(self, length: int, random: Callable[[], float]) -> None:
        """Exchange bots at random between matches of the same round.

        Stop when no two pairs differ by more than one meeting, or after `_STEPS` attempts.

        Args:
            length: the number of matches of a round.
            random: returns a random number that is at least 0 and less than 1.
        """
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
        """Exchange a bot of `table` and a bot of `other` if the cost of the walk does not increase."""
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
    """Yield the tables of a round. The next table is one whose bots have played least in the round so far."""
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
    """Return the schedule of a tournament of balanced stages, in the order of play.

    Args:
        tournament: the name of the tournament, used in ids.
        bots: the names of the bots.
        stages: the stages of the tournament.
        lanes: the number of lanes, at least the number of seats of the largest table.

    Raises ValueError if `check_stages` does.
    """
    check_stages(bots, stages, lanes)
    matches = interleave_rounds(stages, _rounds(len(bots), stages))
    return expand_matches(tournament, bots, stages, matches, lanes=lanes)


def interleave_rounds(
    stages: Sequence[Stage], rounds: Iterable[Iterable[Sequence[BotTable]]]
) -> Iterator[Match]:
    """Yield all matches, round by round. The next round is from the stage with the fewest games so far.

    Args:
        stages: the stages of the tournament.
        rounds: a list of rounds for each stage. A round is a list of tables. The bots of each table are in
            clockwise order.
    """
    left = [deque(enumerate(each, start=1)) for each in rounds]
    games = [0] * len(stages)
    while any(left):
        waiting = [stage for stage, more in enumerate(left) if more]
        stage = min(waiting, key=games.__getitem__)
        number, orders = left[stage].popleft()
        games[stage] += len(orders) * stages[stage].seats
        for order in orders:
            yield Match(stage, number, order)


def _rounds(bots: int, stages: Sequence[Stage]) -> Iterator[list[list[BotTable]]]:
    """Yield, for each stage, the list of its rounds. The bots of each table are in clockwise order.

    If a stage must let some bots play more often than others, it prefers the bots that play least in the
    earlier stages.
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
