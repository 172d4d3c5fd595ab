"""Make tables by moving a few base blocks around a circle, so that pairs of bots meet equally often.

The bots 0 to n-1 stand on a circle. A base block is a table; moving it by 0, 1, …, n-1 places gives n tables,
in which every bot plays equally often. Two bots meet in these tables as often as their difference, modulo n,
occurs in the base block. So the search for thousands of tables becomes a search for a few base blocks: the counts of
any two differences may differ by 1 at most. Mathematicians call base blocks in which all
differences occur equally often a cyclic difference family.

If the number of matches is no multiple of n, one more base block is moved to some of the n places only.
These places are found by trial: they are steps of equal length around the circle. In the tables of this
block no bot may play two matches more than another, and two bots may meet in it only if their difference is among the
rarest.

The search uses `Random.random` with a fixed seed. Python guarantees the sequence of these numbers, so the
tables are the same on all machines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, islice
from random import Random

from referee.schedule import BotTable
from referee.schedule.cyclic_orders import choose_block_orders

_TRIES = 6
"""How often the search starts again with other random numbers."""
_STEPS = 20_000
"""The largest number of steps of a search for base blocks, for few blocks."""
_STEPS_PER_BLOCK = 20
"""The steps that are added for each block."""
_CHECK_EVERY = 50
"""Number of steps after which the search tests again whether it has reached its goal."""
_BLOCKS = 300
"""The largest number of blocks that are tried as the block that is moved to some places only."""
_EFFORT = 300_000
"""The approximate limit on the size of the trials for the block that is moved to some places only, in bots."""


def cyclic_tables(bots: int, seats: int, matches: int) -> list[list[BotTable]] | None:
    """Return tables of `matches` matches in which the meetings of any two pairs differ by one at most.

    Return None if the search does not find such tables. The tables are a list of parts; in each part but the
    last all bots play equally often. The bots of each table are in clockwise order.
    """
    random = Random(0).random  # noqa: S311 - no secret
    whole, rest = divmod(matches, bots)
    for _ in range(_TRIES):
        blocks = _Blocks(bots, seats, whole, random)
        if not blocks.search():
            continue
        last = _move_to_some(bots, seats, rest, blocks.rare_differences(), random)
        if last is None:
            continue
        parts = [_move(block, range(bots), bots) for block in blocks.in_order()]
        return [*parts, last] if last else parts
    return None


def _move(block: Sequence[int], places: Iterable[int], bots: int) -> list[BotTable]:
    """Return a block, moved by each of the given numbers of places."""
    return [tuple((bot + place) % bots for bot in block) for place in places]


class _Blocks:
    """Base blocks, and how often each difference occurs in them.

    Args:
        bots: the number of bots on the circle.
        seats: the number of bots of a block.
        blocks: the number of blocks. They start as random tables.
        random: returns a random number that is at least 0 and less than 1.
    """

    def __init__(self, bots: int, seats: int, blocks: int, random: Callable[[], float]) -> None:
        self._bots = bots
        self._random = random
        self._times = [0] * bots
        """How often each difference occurs. Position 0 is not used."""
        self._blocks = [sorted(range(bots), key=lambda _: random())[:seats] for _ in range(blocks)]
        for block in self._blocks:
            for one, other in combinations(block, 2):
                self._count(one - other, 1)

    def search(self) -> bool:
        """Exchange bots of the blocks until the numbers of differences differ by one at most.

        An exchange is made only if it does not increase the sum of the squared numbers. Return False if the
        search ends without success.
        """
        random = self._random
        for step in range(_STEPS + _STEPS_PER_BLOCK * len(self._blocks)):
            if step % _CHECK_EVERY == 0 and max(self._times[1:]) - min(self._times[1:]) <= 1:
                return True
            block = self._blocks[int(random() * len(self._blocks))]
            place, bot = int(random() * len(block)), int(random() * self._bots)
            if bot not in block:
                self._exchange(block, place, bot)
        return False

    def rare_differences(self) -> set[int]:
        """Return the differences that occur least often."""
        least = min(self._times[1:])
        return {
            difference for difference in range(1, self._bots) if self._times[difference] == least
        }

    def in_order(self) -> list[BotTable]:
        """Return the blocks, each in clockwise order."""
        blocks = [tuple(block) for block in self._blocks]
        return choose_block_orders(blocks, self._bots) if blocks else []

    def _exchange(self, block: list[int], place: int, bot: int) -> None:
        """Replace the bot at a place of a block, if the sum of the squared numbers does not increase."""
        before = block[place]
        others = [other for other in block if other != before]
        grows = sum(self._count(before - other, -1) for other in others)
        grows += sum(self._count(bot - other, 1) for other in others)
        if grows <= 0:
            block[place] = bot
            return
        for other in others:
            self._count(bot - other, -1)
            self._count(before - other, 1)

    def _count(self, difference: int, times: int) -> int:
        """Count a difference in both directions, and return by how much the sum of the squares grows."""
        grows = 0
        for each in (difference % self._bots, -difference % self._bots):
            grows += 2 * times * self._times[each] + 1
            self._times[each] += times
        return grows


def _move_to_some(
    bots: int, seats: int, matches: int, differences: set[int], random: Callable[[], float]
) -> list[BotTable] | None:
    """Return the tables of one block that is moved to `matches` places, or None if no block fits.

    Args:
        bots: the number of bots on the circle.
        seats: the number of bots of the block.
        matches: the number of tables, less than `bots`.
        differences: the only differences that the block may have.
        random: returns a random number that is at least 0 and less than 1.
    """
    if not matches:
        return []
    least, more = divmod(matches * seats, bots)
    choices = list(islice(_list_places(bots, matches), _EFFORT // (matches * seats)))
    marked = [_mark(places, bots) for places in choices]
    tried: set[BotTable] = {()}
    for _ in range(max(1, min(_BLOCKS, _EFFORT // (bots * len(choices))))):
        block = tuple(sorted(_choose_block(bots, seats, differences, random)))
        if block in tried:
            continue
        tried.add(block)
        for places, marks in zip(choices, marked, strict=True):
            plays = list(
                map(sum, zip(*(marks[-bot - bots :][:bots] for bot in block), strict=True))
            )
            if least <= min(plays) and max(plays) <= least + (more > 0):
                tables = _move(block, places, bots)
                pairs = [frozenset(pair) for table in tables for pair in combinations(table, 2)]
                if len(set(pairs)) == len(pairs):
                    return tables
    return None


def _mark(places: Iterable[int], bots: int) -> list[bool]:
    """Return, for each place on two rounds of the circle, whether it is one of the given places."""
    chosen = set(places)
    return [place in chosen for place in range(bots)] * 2


def _list_places(bots: int, matches: int) -> Iterator[list[int]]:
    """Yield lists of places to which a block may be moved.

    The places of a list are steps of equal length around the circle. If the steps come back to the start, they
    continue one place beside it.
    """
    for divisor in range(1, bots):
        if bots % divisor:
            continue
        steps = bots // divisor
        for step in range(1, max(2, steps // 2 + 1)):
            if math.gcd(step, steps) == 1:
                around = (
                    (step * divisor * number + beside) % bots
                    for beside in range(divisor)
                    for number in range(steps)
                )
                yield list(islice(around, matches))


def _choose_block(
    bots: int, seats: int, differences: set[int], random: Callable[[], float]
) -> list[int]:
    """Return a random block that has only the given differences. Return an empty list if the choice fails."""
    block = [0]
    waiting = sorted(differences)
    while waiting and len(block) < seats:
        bot = waiting[int(random() * len(waiting))]
        block.append(bot)
        waiting = [each for each in waiting if (each - bot) % bots in differences]
    return block if len(block) == seats else []
