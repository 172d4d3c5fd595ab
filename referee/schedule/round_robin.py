"""Schedule a round robin: every table of k bots, in rounds, with varied neighbours.

A table is a set of k of the n bots; a stage has all C(n, k) of them. A round is one match of every table of a
stage. The next table is always one whose bots have played least so far, and the stages take turns round by
round, so that the standings mean something at any time.

Snatching goes clockwise, so it matters who sits to the left. All seatings of a match have the same cyclic
order of bots, and so the same neighbours. The next match of the table gets another cyclic order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, combinations, pairwise, permutations
from random import Random

from referee.records import ScheduledGame
from referee.schedule import Match, Stage, check_stages, expand_matches


def list_tables(bots: int, seats: int) -> Iterator[tuple[int, ...]]:
    """Yield each table of `seats` of the bots 0, 1, … once, in ascending order.

    A table is built bot by bot. The next bot is the one that has played least so far (of equals, the one with
    the lowest number) and still has an unused table with the bots before it. So no bot is ever more than
    `seats` matches ahead of another, and usually one or two.
    """
    left = Counter(
        chain.from_iterable(
            _subsets(frozenset(table)) for table in combinations(range(bots), seats)
        )
    )
    """For each set of bots: the number of unused tables that contain all of them."""
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
    """Yield all subsets of a table, including the empty set and the table itself."""
    for size in range(len(table) + 1):
        yield from map(frozenset, combinations(table, size))


_EFFORT = 300_000
"""Approximate number of cyclic orders to try for even neighbours."""
_MOST_PASSES = 200
_FIRST_CHANCE = 0.05
"""Chance of a random order in the first passes. Only every other pass uses random orders."""


class SeatingOrders:
    """Select the cyclic orders of all tables of one stage, match after match.

    A table uses all (k-1)! cyclic orders of its k bots before one is repeated. Then every bot has had every
    other one of the table as left neighbour equally often. Among the unused orders, the next one is the order
    that keeps neighbours most even over all tables. Only earlier matches count, so a longer schedule starts
    like a shorter one.
    """

    def __init__(self) -> None:
        self._left: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        self._met: Counter[tuple[int, int]] = Counter()

    def seat(self, table: tuple[int, ...]) -> tuple[int, ...]:
        """Return the bots of a table in the clockwise order of its next match."""
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


def choose_orders(tables: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the clockwise orders of all matches of one stage, with neighbours as even as possible.

    The search starts with the orders of `SeatingOrders`. Each pass selects the best order of each match, given
    all others. Every other pass selects some orders at random, fewer each time, to leave local optima. The
    result is the state with the smallest sum of squares over all ordered pairs.
    """
    neighbours = SeatingOrders()
    orders = [neighbours.seat(table) for table in tables]
    met = Counter(pair for order in orders for pair in _pairs(order))
    best, least, ideal = list(orders), _squares(met), _least_squares(tables)
    random = Random(0).random  # noqa: S311 - no secret; Python guarantees the sequence
    passes = 1 + _EFFORT // sum(math.factorial(len(table) - 1) for table in tables)
    for number in range(min(passes, _MOST_PASSES)):
        if least == ideal:
            break
        chance = _FIRST_CHANCE * (1 - number / passes) if number % 2 else 0.0
        _replace_orders(orders, met, chance, random)
        if (squares := _squares(met)) < least:
            best, least = list(orders), squares
    return best


def _replace_orders(
    orders: list[tuple[int, ...]],
    met: Counter[tuple[int, int]],
    chance: float,
    random: Callable[[], float],
) -> None:
    """Replace each order: with the probability `chance` by a random order, else by one of the best orders."""
    for match, (first, *others) in enumerate(orders):
        met.subtract(_pairs(orders[match]))
        choice = [(first, *each) for each in permutations(others)]
        if random() < chance:
            orders[match] = choice[int(random() * len(choice))]
        else:
            costs = [(sum(met[pair] for pair in _pairs(each)), random()) for each in choice]
            orders[match] = choice[costs.index(min(costs))]
        met.update(_pairs(orders[match]))


def _squares(met: Counter[tuple[int, int]]) -> int:
    return sum(times * times for times in met.values())


def _least_squares(tables: Sequence[tuple[int, ...]]) -> int:
    """Return a lower bound of `_squares`: its value if no two ordered pairs differ by more than one."""
    bots = len(set(chain.from_iterable(tables)))
    pairs = bots * (bots - 1)
    times, more = divmod(sum(map(len, tables)), pairs)
    return (pairs - more) * times**2 + more * (times + 1) ** 2


def _pairs(order: Sequence[int]) -> list[tuple[int, int]]:
    """Return each bot of a clockwise order with the bot's left neighbour."""
    return list(pairwise((*order, order[0])))


def round_robin(
    tournament: str, bots: Sequence[str], stages: Sequence[Stage], *, lanes: int
) -> tuple[ScheduledGame, ...]:
    """Return the schedule of a tournament, in the order of play.

    If only the stages with the most matches get more, the longer schedule starts with the shorter one, and
    ids stay the same. Raises ValueError as `check_stages`.
    """
    check_stages(bots, stages, lanes)
    tables = [list(list_tables(len(bots), stage.seats)) for stage in stages]
    return expand_matches(tournament, bots, whole_rounds(stages, tables), lanes=lanes)


def whole_rounds(
    stages: Sequence[Stage], tables: Sequence[Sequence[tuple[int, ...]]]
) -> Iterator[Match]:
    """Yield the matches of stages round by round; each round has all `tables` of its stage, in the order given."""
    neighbours = [SeatingOrders() for _ in stages]
    for round_number in range(max(stage.matches for stage in stages)):
        for number, stage in enumerate(stages):
            if round_number < stage.matches:
                for table in tables[number]:
                    yield Match(number, round_number, neighbours[number].seat(table))
