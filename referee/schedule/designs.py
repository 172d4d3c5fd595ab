"""Store known designs, which are lists of tables at which all pairs of bots meet equally often.

A balanced choice uses two kinds of designs. Let n be the number of bots, and k the number of seats of a table:

- In a **pair design** every two bots meet exactly once. Mathematicians call it a Steiner system S(2, k, n), or
  a 2-(n, k, 1) design. All pair designs of this module except the one for 25 bots at tables of 4 are resolvable: every
  bot plays once in the first n/k tables, once in the next n/k tables, and so on.
- In a **neighbour design** every bot has every other bot as left neighbour exactly once, and every two bots
  meet k-1 times. Mathematicians call it a Mendelsohn design. It is perfect if every bot also has every other
  bot exactly once as the second bot to the left, as the third bot to the left, and so on.

A design is stored as base blocks, which are some of its tables, and a group in the sense of mathematics. Each element
of the group is a permutation of the bots, which leaves fixed bots in their places. If it is applied to all bots of a
base block, the result is a table of the design. These tables, each once, are the whole design. A few designs use only
the first elements of their group (`Design.moves`). The "Handbook of Combinatorial Designs" by C. J. Colbourn and J. H.
Dinitz, 2nd edition, 2007, says for which numbers of bots and seats designs exist. The base blocks were found by
computer searches. A test counts the pairs and the neighbours of each design.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt, prod
from types import MappingProxyType

from referee.schedule import BotTable


@dataclass(frozen=True, slots=True)
class Design:
    """The base blocks of a design, and the group that moves them.

    The group is a product of cyclic groups. There may be several copies of it. Each bot is an element of one copy, or it is
    fixed. An element of the group moves a bot by addition, inside the bot's copy. No element moves a fixed bot.
    """

    blocks: tuple[BotTable, ...]
    """The base blocks, each in clockwise order."""
    group: tuple[int, ...]
    """The sizes of the cyclic groups. If they are a and b, the element (x, y) has the number x + a * y."""
    copies: int = 1
    """Number of copies of the group. Element x of copy c is the bot c * (size of the group) + x."""
    fixed: int = 0
    """Number of bots that no element moves. They have the highest numbers."""
    moves: int | None = None
    """If not None, only the elements with the numbers 0 to `moves` - 1 move the base blocks."""

    @property
    def bots(self) -> int:
        """Return the number of bots."""
        return self.copies * prod(self.group) + self.fixed

    @property
    def seats(self) -> int:
        """Return the number of seats of each table."""
        return len(self.blocks[0])

    def tables(self) -> list[BotTable]:
        """Return the tables of the design, each in clockwise order. A base block that has only fixed bots gives only one table."""
        moved = (
            tuple(self._move(bot, element) for bot in block)
            for element in range(self.moves or prod(self.group))
            for block in self.blocks
        )
        return list(dict.fromkeys(moved))

    def _move(self, bot: int, element: int) -> int:
        """Return the bot to which an element of the group moves a bot."""
        if bot >= self.bots - self.fixed:
            return bot
        copy, place = divmod(bot, prod(self.group))
        moved, unit = copy * prod(self.group), 1
        for size in self.group:
            moved += (place // unit + element // unit) % size * unit
            unit *= size
        return moved


def pair_design(bots: int, seats: int) -> Design | None:
    """Return a pair design, as the module's docstring defines it. Return None if none is known here."""
    return _PAIR_DESIGNS.get((bots, seats))


def neighbour_design(bots: int, seats: int) -> Design | None:
    """Return a neighbour design, as the module's docstring defines it. Return None if none is known here."""
    known = _NEIGHBOUR_DESIGNS.get((bots, seats))
    return known or (_prime_design(bots, seats) if _is_prime(bots) and bots % seats == 1 else None)


def _prime_design(prime: int, seats: int) -> Design:
    """Return the perfect neighbour design for a prime number of bots that is 1 more than a multiple of `seats`.

    Let g be a number whose powers are all numbers from 1 to p-1, modulo the prime p. Let u be g to the power
    (p-1)/k, so that u to the power k is 1. The base blocks are g^i * (1, u, u², …) for i from 0 to (p-1)/k - 1.
    In base block i, the bot on seat s and the j-th bot to its left differ by g^i * u^s * (u^j - 1). The products g^i * u^s are all numbers
    from 1 to p-1, each once. So each difference occurs once for each j.
    """
    step = (prime - 1) // seats
    root = next(
        root
        for root in range(2, prime)
        if len({pow(root, power, prime) for power in range(prime - 1)}) == prime - 1
    )
    blocks = tuple(
        tuple(pow(root, first + step * seat, prime) for seat in range(seats))
        for first in range(step)
    )
    return Design(blocks, (prime,))


def _is_prime(number: int) -> bool:
    """Return True if `number` is a prime. It must be at least 2."""
    return all(number % divisor for divisor in range(2, isqrt(number) + 1))


def _by_size(*designs: Design) -> Mapping[tuple[int, int], Design]:
    """Return the designs by number of bots and seats."""
    return MappingProxyType({(design.bots, design.seats): design for design in designs})


def _classes(group: tuple[int, ...], subgroup: BotTable, *blocks: BotTable) -> Design:
    """Return a resolvable pair design with one fixed bot.

    In the base blocks of the result every bot plays once. One base block has the fixed bot and the bots of `subgroup`. The others
    are `blocks`, each moved by every element of `subgroup`. Only the elements from 0 to m - 1 move the base blocks, where m is the size
    of the group divided by the size of the subgroup.
    """
    every = Design(blocks, group).tables()
    moved = [
        every[len(blocks) * element + number]
        for number in range(len(blocks))
        for element in subgroup
    ]
    size = prod(group)
    return Design(((size, *subgroup), *moved), group, fixed=1, moves=size // len(subgroup))


def _around(inner: Design, moved: int, *blocks: BotTable) -> Design:
    """Return a neighbour design that contains a smaller one.

    Args:
        inner: the smaller design. Its bots are fixed.
        moved: how many other bots there are. They are the elements of a cyclic group.
        blocks: the base blocks of the other tables.
    """
    fixed = (tuple(moved + bot for bot in table) for table in inner.tables())
    return Design((*blocks, *fixed), (moved,), fixed=inner.bots)


_PAIR_DESIGNS = _by_size(
    _classes((8,), (0, 4), (1, 6, 7)),
    Design(((14, 2, 7), (13, 0, 11), (12, 8, 5), (10, 9, 1), (6, 4, 3)), (7,), copies=2, fixed=1),
    _classes((26,), (0, 13), (1, 23, 4), (2, 11, 3), (5, 20, 25), (6, 22, 8)),
    _classes((15,), (0, 5, 10), (1, 3, 4, 12)),
    Design(((0, 1, 18, 23), (0, 2, 6, 16)), (5, 5)),
    _classes((3, 3, 3), (0, 9, 18), (1, 23, 2, 7), (3, 8, 15, 22)),
    _classes((24,), (0, 6, 12, 18), (1, 20, 16, 3, 17)),
)
"""Pair designs, for tables of 3, 4 and 5 seats. A design is not listed if `cyclic_tables` finds it, such as the one for
13 bots at tables of 4. Larger designs are not listed either, even if `cyclic_tables` does not find them, such as the one for
33 bots at tables of 3."""

_THREE = Design(((0, 1, 2), (0, 2, 1)), (), copies=0, fixed=3)
_FOUR = Design(((0, 1, 2), (3, 2, 1), (3, 0, 2), (3, 1, 0)), (), copies=0, fixed=4)
_FIVE_AT_FOUR = _prime_design(5, 4)
_FIVE = Design(
    ((0, 1, 2, 3, 4), (0, 2, 4, 1, 3), (0, 3, 1, 4, 2), (0, 4, 3, 2, 1)), (), copies=0, fixed=5
)
# fmt: off
_NEIGHBOUR_DESIGNS = _by_size(
    # Tables of 3.
    Design(((8, 1, 5), (7, 0, 2), (6, 4, 3)), (8,), fixed=1),
    _around(_THREE, 7, (7, 3, 4), (8, 1, 3), (9, 4, 1), (1, 4, 3)),
    _around(_FOUR, 8, (8, 0, 2), (9, 5, 1), (10, 7, 4), (11, 4, 5), (5, 4, 2)),
    Design(((14, 9, 2), (13, 3, 11), (12, 10, 7), (8, 4, 5), (6, 1, 0)), (14,), fixed=1),
    Design(((15, 10, 8), (14, 7, 4), (13, 12, 1), (11, 3, 5), (9, 2, 6)), (2, 2, 2, 2)),
    _around(_FOUR, 14, (14, 5, 13), (15, 9, 4), (16, 4, 9), (17, 1, 0), (3, 13, 5), (0, 1, 3),
        (7, 10, 0)),
    Design(((20, 16, 6), (19, 0, 11), (18, 2, 5), (17, 3, 15), (14, 12, 7), (13, 9, 8),
        (10, 4, 1)), (20,), fixed=1),
    _around(_THREE, 19, (19, 15, 6), (20, 15, 11), (21, 11, 5), (17, 3, 1), (4, 6, 1), (1, 8, 0),
        (10, 3, 2), (5, 9, 15)),
    _around(_FOUR, 20, (20, 10, 3), (21, 3, 6), (22, 15, 17), (23, 4, 16), (14, 5, 13),
        (11, 0, 15), (19, 17, 14), (8, 12, 2), (11, 10, 4)),
    Design(((24, 23, 10), (22, 17, 11), (21, 3, 13), (20, 4, 5), (19, 16, 14), (18, 6, 2),
        (15, 8, 12), (9, 1, 7)), (25,)),
    Design(((11, 8, 19), (15, 11, 6), (4, 19, 0), (3, 11, 10), (14, 19, 20), (7, 9, 23),
        (26, 8, 21), (0, 16, 2), (7, 10, 1)), (26,), fixed=1),
    _around(_THREE, 25, (25, 11, 17), (26, 3, 11), (27, 2, 13), (15, 3, 18), (24, 19, 17),
        (19, 13, 5), (4, 22, 24), (16, 3, 12), (5, 4, 14), (19, 20, 23)),
    # Tables of 4.
    Design(((8, 2, 4, 1), (7, 6, 5, 3)), (3, 3)),
    Design(((6, 11, 1, 9), (5, 4, 2, 0), (9, 7, 0, 4), (7, 10, 6, 4), (7, 6, 3, 0), (10, 2, 8, 9),
        (7, 3, 10, 5), (4, 8, 6, 1), (10, 3, 2, 1), (3, 4, 10, 9), (10, 1, 6, 0)), (3,), copies=4),
    _around(_FIVE_AT_FOUR, 11, (11, 4, 5, 9), (12, 5, 8, 3), (13, 1, 0, 2), (14, 5, 10, 8),
        (15, 4, 0, 8)),
    _around(_FIVE_AT_FOUR, 15, (15, 4, 5, 9), (16, 7, 4, 6), (17, 4, 0, 8), (18, 10, 2, 8),
        (19, 1, 0, 10), (2, 7, 5, 14)),
    Design(((20, 11, 3, 19), (18, 5, 7, 4), (17, 15, 1, 6), (16, 10, 9, 13), (14, 2, 12, 8)),
        (21,)),
    _around(_FIVE_AT_FOUR, 19, (19, 9, 2, 15), (20, 12, 10, 15), (21, 9, 0, 18), (22, 3, 11, 15),
        (23, 6, 12, 14), (14, 15, 10, 17), (3, 18, 2, 13)),
    Design(((24, 18, 14, 22), (23, 13, 20, 12), (21, 2, 7, 8), (19, 16, 11, 9), (17, 10, 1, 5),
        (15, 4, 3, 6)), (25,)),
    _around(_FIVE_AT_FOUR, 23, (23, 8, 11, 9), (24, 13, 5, 9), (25, 22, 16, 7), (26, 14, 10, 7),
        (27, 4, 16, 6), (0, 6, 5, 16), (1, 2, 10, 19), (1, 11, 4, 22)),
    # Tables of 5.
    Design(((5, 1, 3, 9, 2), (3, 4, 7, 2, 8), (0, 8, 2, 3, 5), (4, 6, 9, 3, 7), (3, 0, 1, 8, 7),
        (9, 8, 6, 2, 1)), (3,), copies=3, fixed=1),
    Design(((11, 10, 13, 14, 6), (12, 10, 4, 11, 1), (1, 10, 11, 13, 5)), (14,), fixed=1),
    Design(((15, 10, 8, 4, 9), (14, 7, 3, 11, 1), (13, 12, 2, 5, 6)), (2, 2, 2, 2)),
    Design(((0, 1, 12, 16, 19), (0, 5, 11, 4, 13), (0, 7, 19, 11, 6), (0, 10, 9, 7, 4)), (21,)),
    Design(((13, 16, 7, 0, 14), (20, 2, 24, 14, 16), (13, 21, 4, 16, 17), (12, 22, 11, 20, 15),
        (23, 17, 4, 2, 18)), (24,), fixed=1),
    _around(_FIVE, 21, (21, 4, 12, 6, 16), (22, 15, 1, 4, 0), (23, 11, 16, 9, 0),
        (24, 1, 7, 8, 10), (25, 8, 0, 9, 13), (14, 11, 10, 8, 3)),
)
# fmt: on
"""Neighbour designs, for tables of 3, 4 and 5 seats. `_prime_design` makes others."""
