"""In which order the tables of a round are played: nobody waits for long while others play.

Who sits next to whom: the cyclic order of a table's bots, varied from round to round.

Snatching goes clockwise, so it matters who sits on one's left. The seatings of a match rotate a
cyclic order and keep its neighbours; other neighbours come with the next match of the table.

Round robin: every table of k bots, in rounds.

- A **table** is a set of k of the n bots; a stage has all C(n,k) of them.
- A **round** is one match of every table of a stage, next always a table of those who have played
  least so far. A tournament's stages take turns, round by round. So standings mean something at any
  time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, combinations, pairwise, permutations
from random import Random

from referee.records import ScheduledGame
from referee.schedule.stages import Match, Stage, check_stages, expand_matches


def list_tables(bots: int, seats: int) -> Iterator[tuple[int, ...]]:
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


_EFFORT = 300_000
"""Cyclic orders that are tried, more or less, to make neighbours even."""
_MOST_PASSES = 200
_FIRST_CHANCE = 0.05
"""Of an order to be chosen at random, in the first passes that do so: every other one does."""


class SeatingOrders:
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


def choose_orders(tables: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The clockwise orders of all matches of one stage, seen together, neighbours as even as can be.

    Beginning with what `SeatingOrders` chooses, the order of each match is chosen anew, given all the
    others, again and again; some at random, fewer each time, so that it does not end too early. The
    best of what was found counts: that with the least sum of squares over all ordered pairs.
    """
    neighbours = SeatingOrders()
    orders = [neighbours.seat(table) for table in tables]
    met = Counter(pair for order in orders for pair in _pairs(order))
    best, least, ideal = list(orders), _squares(met), _least_squares(tables)
    random = Random(0).random  # noqa: S311 - no secret; a sequence that Python guarantees
    passes = 1 + _EFFORT // sum(math.factorial(len(table) - 1) for table in tables)
    for number in range(min(passes, _MOST_PASSES)):
        if least == ideal:
            break
        chance = _FIRST_CHANCE * (1 - number / passes) if number % 2 else 0.0
        _choose_anew(orders, met, chance, random)
        if (squares := _squares(met)) < least:
            best, least = list(orders), squares
    return best


def _choose_anew(
    orders: list[tuple[int, ...]],
    met: Counter[tuple[int, int]],
    chance: float,
    random: Callable[[], float],
) -> None:
    """Choose each order anew: with a chance any of them, else the best or one of the best."""
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
    """What `_squares` would be if no ordered pair came more than once oftener than another."""
    bots = len(set(chain.from_iterable(tables)))
    pairs = bots * (bots - 1)
    times, more = divmod(sum(map(len, tables)), pairs)
    return (pairs - more) * times**2 + more * (times + 1) ** 2


def _pairs(order: Sequence[int]) -> list[tuple[int, int]]:
    """Each bot with the one on its left."""
    return list(pairwise((*order, order[0])))


def round_robin(
    tournament: str, bots: Sequence[str], stages: Sequence[Stage], *, lanes: int
) -> tuple[ScheduledGame, ...]:
    """The schedule of a tournament, in the order of play.

    It depends on nothing but the arguments. When matches are added to the stages that have most of
    them, the longer schedule begins with the shorter one, and ids stay what they were.

    Raises ValueError as `check_stages` does.
    """
    check_stages(bots, stages, lanes)
    tables = [list(list_tables(len(bots), stage.seats)) for stage in stages]
    return expand_matches(tournament, bots, whole_rounds(stages, tables), lanes=lanes)


def whole_rounds(
    stages: Sequence[Stage], tables: Sequence[Sequence[tuple[int, ...]]]
) -> Iterator[Match]:
    """The matches of stages that have all these tables in each of their rounds, in this order."""
    neighbours = [SeatingOrders() for _ in stages]
    for round_number in range(max(stage.matches for stage in stages)):
        for number, stage in enumerate(stages):
            if round_number < stage.matches:
                for table in tables[number]:
                    yield Match(number, round_number, neighbours[number].seat(table))
