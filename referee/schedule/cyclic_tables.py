"""Make tables by moving a few base blocks around a circle, so that pairs of bots meet equally often.

The bots 0 to n-1 stand on a circle. A base block is a table; moving it by 0, 1, …, n-1 positions gives n tables,
in which every bot plays equally often. Two bots meet in these tables as often as their difference, modulo n,
occurs in the base block. So the search for thousands of tables becomes a search for a few base blocks. For each
difference, the search counts how often it occurs in all base blocks together. Any two of these counts may differ by 1
at most. If they are all equal, mathematicians call the base blocks a cyclic difference family.

If the number of matches is no multiple of n, the remaining tables come from one more base block, the last block. It is
moved by a list of offsets, which gives one table for each offset. Several lists are tried. In each list the offsets go
around the circle in equal strides. In the tables of the last block, the numbers of matches of any two bots may differ by
one at most. Two bots may meet there once at most, and only if their difference is one of those that occur least often in
the other base blocks.

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
"""The largest number of searches, each with other random numbers."""
_STEPS = 20_000
"""The largest number of steps of a search for base blocks, before `_STEPS_PER_BLOCK` is added for each block."""
_STEPS_PER_BLOCK = 20
"""The number of steps that each block adds to `_STEPS`."""
_CHECK_EVERY = 50
"""Number of steps after which the search tests again whether it has reached its goal."""
_BLOCKS = 300
"""The largest number of random blocks that are tried as the last block."""
_EFFORT = 300_000
"""Limits the time of the search for the last block. The number of blocks that are tried, times the number of lists of
offsets, times the number of bots, is at most about this."""


def cyclic_tables(bots: int, seats: int, matches: int) -> list[list[BotTable]] | None:
    """Return `matches` tables in which the numbers of meetings of any two pairs differ by one at most.

    Return None if the search does not find such tables. The tables are a list of parts; in each part
    except the last, all bots play equally often. The bots of each table are in clockwise order.
    """
    random = Random(0).random  # noqa: S311 - no secret
    whole, rest = divmod(matches, bots)
    for _ in range(_TRIES):
        blocks = _Blocks(bots, seats, whole, random)
        if not blocks.search():
            continue
        last = _find_last(bots, seats, rest, blocks.rare_differences(), random)
        if last is None:
            continue
        parts = [_move(block, range(bots), bots) for block in blocks.in_order()]
        return [*parts, last] if last else parts
    return None


def _move(block: Sequence[int], offsets: Iterable[int], bots: int) -> list[BotTable]:
    """Return the tables that a block gives, one for each offset."""
    return [tuple((bot + offset) % bots for bot in block) for offset in offsets]


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
        """Replace bots in the blocks until the counts of any two differences differ by 1 at most.

        A bot is replaced only if this does not increase the sum of the squared counts. Return False if the search ends
        without success.
        """
        random = self._random
        for step in range(_STEPS + _STEPS_PER_BLOCK * len(self._blocks)):
            if step % _CHECK_EVERY == 0 and max(self._times[1:]) - min(self._times[1:]) <= 1:
                return True
            block = self._blocks[int(random() * len(self._blocks))]
            index, bot = int(random() * len(block)), int(random() * self._bots)
            if bot not in block:
                self._replace(block, index, bot)
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

    def _replace(self, block: list[int], index: int, bot: int) -> None:
        """Replace a bot of a block, if this does not increase the sum of the squared counts."""
        before = block[index]
        others = [other for other in block if other != before]
        grows = sum(self._count(before - other, -1) for other in others)
        grows += sum(self._count(bot - other, 1) for other in others)
        if grows <= 0:
            block[index] = bot
            return
        for other in others:
            self._count(bot - other, -1)
            self._count(before - other, 1)

    def _count(self, difference: int, sign: int) -> int:
        """Add a difference in both directions (`sign` 1), or remove it (-1). Return by how much the sum of the squares grows."""
        grows = 0
        for each in (difference % self._bots, -difference % self._bots):
            grows += 2 * sign * self._times[each] + 1
            self._times[each] += sign
        return grows


def _find_last(
    bots: int, seats: int, matches: int, differences: set[int], random: Callable[[], float]
) -> list[BotTable] | None:
    """Return the tables of the last block, one for each of `matches` offsets. Return None if the search finds no block.

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
    choices = list(islice(_list_offsets(bots, matches), _EFFORT // (matches * seats)))
    marked = [_mark(offsets, bots) for offsets in choices]
    tried: set[BotTable] = {()}  # a failed choice gives the empty block, which is then skipped
    for _ in range(max(1, min(_BLOCKS, _EFFORT // (bots * len(choices))))):
        block = tuple(sorted(_choose_block(bots, seats, differences, random)))
        if block in tried:
            continue
        tried.add(block)
        for offsets, marks in zip(choices, marked, strict=True):
            # Each slice belongs to one bot of the block, and marks the positions to which the offsets move this bot.
            # The sum of the slices is the number of matches at each position.
            plays = list(
                map(sum, zip(*(marks[-bot - bots :][:bots] for bot in block), strict=True))
            )
            if least <= min(plays) and max(plays) <= least + (more > 0):
                tables = _move(block, offsets, bots)
                pairs = [frozenset(pair) for table in tables for pair in combinations(table, 2)]
                if len(set(pairs)) == len(pairs):
                    return tables
    return None


def _mark(offsets: Iterable[int], bots: int) -> list[bool]:
    """Return for each position of the circle whether it is one of the offsets. The list is doubled, so that a slice can begin anywhere."""
    chosen = set(offsets)
    return [position in chosen for position in range(bots)] * 2


def _list_offsets(bots: int, matches: int) -> Iterator[list[int]]:
    """Yield lists of offsets by which the last block may be moved.

    In each list the offsets go around the circle in equal strides. When they come back to the start, they continue one
    position further. Strides of more than half a circle would only give the same offsets in the other direction.
    """
    for divisor in range(1, bots):
        if bots % divisor:
            continue
        count = bots // divisor  # the number of strides until the offsets come back
        for factor in range(1, count // 2 + 1):
            if math.gcd(factor, count) == 1:
                around = (
                    (factor * divisor * number + further) % bots
                    for further in range(divisor)
                    for number in range(count)
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
