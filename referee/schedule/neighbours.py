"""Who sits next to whom: the cyclic order of a table's bots, varied from round to round.

Snatching goes clockwise, so it matters who sits on one's left. The seatings of a match rotate a
cyclic order and keep its neighbours; other neighbours come with the next match of the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, permutations


class Neighbours:
    """Chooses the cyclic orders of all tables of one stage.

    A table goes through all (k-1)! cyclic orders of its k bots before one comes again; then
    everybody has sat on the left of everybody else at that table equally often. Which of the orders
    left comes next is chosen so that the same holds as nearly as possible over all tables at any
    time. The choice depends on the past alone, so a longer schedule begins as a shorter one does.
    """

    def __init__(self) -> None:
        self._left: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        self._met: Counter[tuple[int, int]] = Counter()

    def seat(self, table: tuple[int, ...]) -> tuple[int, ...]:
        """The bots of a table in the clockwise order of its next match."""
        left = self._left.setdefault(table, [])
        if not left:
            first, *others = table
            left += [(first, *order) for order in permutations(others)]
        order = min(left, key=self._met_before)
        left.remove(order)
        self._met.update(_pairs(order))
        return order

    def _met_before(self, order: Sequence[int]) -> int:
        return sum(self._met[pair] for pair in _pairs(order))


def _pairs(order: Sequence[int]) -> list[tuple[int, int]]:
    """Each bot with the one on its left."""
    return list(pairwise((*order, order[0])))
