"""Search for tables at which all bots play, and all pairs of bots meet, about equally often.

This search makes the tables that neither `designs` nor `cyclic_tables` can make. It cuts the schedule into parts. All parts
except the last have the same number of matches. With this number, all bots can play equally often. The search has two steps:

1. A greedy choice fills the tables: the next bot is always one that has played least. This step fixes how
   often each bot plays in each part of the schedule.
2. A random walk exchanges bots between two matches of a part. Its cost is the sum, over all pairs of bots,
   of the squared number of meetings. The goal is that no two pairs differ by more than one meeting; then the
   cost is smallest. The walk makes only exchanges that do not increase the cost. Exchanges that do not
   change the cost lead out of most dead ends. If the walk does not reach its goal, it continues with parts of
   double length, because longer parts allow more exchanges.

For some tournaments no choice of tables reaches the goal. For other tournaments the walk may miss the goal.

The walk uses `Random.random` with a fixed seed. Python guarantees the sequence of these numbers, so the
tables are the same on all machines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from random import Random

from referee.schedule import BotTable

_STEPS = 50_000
"""The largest number of steps of the walk before the length of the parts is doubled."""
_LONGEST = 32
"""The longest part, as a multiple of the shortest part in which all bots can play equally often."""
_CHECK_EVERY = 1_000
"""Number of steps after which the walk tests again whether it has reached its goal."""


def search_tables(bots: int, seats: int, matches: int) -> list[list[BotTable]]:
    """Return the tables of `matches` matches between the bots 0, 1, …, as a list of parts.

    In each part except the last, all bots play equally often. The last part may be shorter.
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
    return [tables[first : first + best_length] for first in range(0, matches, best_length)]


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
        for level in (least, least + 1):  # no bot has played more often
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
        """Exchange bots at random between matches of the same part.

        Stop when no two pairs differ by more than one meeting, or after `_STEPS` attempts.

        Args:
            length: the number of matches of a part.
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
        # Half of the change of the cost. If two bots have met m times and now meet once more, and two others have met n
        # times and now meet once less, the cost changes by (m+1)² - m² + (n-1)² - n² = 2 (m - n + 1).
        growth = sum(met_guest[each] - met_bot[each] + 1 for each in left)
        growth += sum(met_bot[each] - met_guest[each] + 1 for each in joined)
        if growth > 0:
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
