"""In which order the tables of a round are played: nobody waits for long while others play."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, combinations


def tables_in_turn(bots: int, seats: int) -> Iterator[tuple[int, ...]]:
    """All tables of `seats` of the bots 0, 1, …, each once, as ascending numbers.

    A table is made up bot by bot: each time the one that has played least so far, the lowest number
    of equals, among those that still have a table with the bots chosen before. So at any time no bot
    is more than `seats` matches ahead of another, and mostly one or two.
    """
    left = Counter(
        chain.from_iterable(
            _subsets(frozenset(table)) for table in combinations(range(bots), seats)
        )
    )
    """Of each set of bots: how many tables with all of them are still to come."""
    played = [0] * bots
    nobody = frozenset[int]()
    while left[nobody]:
        in_turn = sorted(range(bots), key=played.__getitem__)
        table = nobody
        for bot in in_turn:
            if len(table) == seats:
                break
            if left[table | {bot}]:
                table |= {bot}
        left.subtract(_subsets(table))
        for bot in table:
            played[bot] += 1
        yield tuple(sorted(table))


def _subsets(table: frozenset[int]) -> Iterator[frozenset[int]]:
    """The empty set and the table itself among them."""
    for size in range(len(table) + 1):
        yield from map(frozenset, combinations(table, size))
