"""Choose the cyclic order of the bots in each match, so that all bots are neighbours about equally often.

Snatching goes clockwise, so the left neighbour of a bot matters. All seatings of a match have the same cyclic
order of bots, and so the same neighbours. A table of k bots has (k-1)! cyclic orders.

The module searches for good orders of many matches at once. For each pair of bots it counts how often the second
bot is the left neighbour of the first bot. The cost is the sum of the squares of these counts; it is smallest
if the counts differ by one at most. A pass goes through the matches. It gives each match the order that makes the cost
lowest, while the orders of all other matches stay. If several orders make it lowest, the search selects one of
them at random, because this leads out of most dead ends. In some passes, a few matches get a random order instead. Of
the orders at the start (if there are any) and the orders after each pass, those with the lowest cost are the result.

The search uses `Random.random` with a fixed seed. Python guarantees the sequence of these numbers, so the
orders are the same on all machines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain, pairwise, permutations
from random import Random

from referee.schedule import BotTable

_ROUND_EFFORT = 30_000
"""The approximate limit on the number of cyclic orders that the search for one round tries."""
_CHOICE_EFFORT = 200_000
"""The same limit for `choose_orders`. For `choose_block_orders` it is divided by the number of bots."""
_LEAST_PASSES = 3
"""The smallest number of passes of a search, whatever the limit on the effort."""
_MOST_PASSES = 60
"""The largest number of passes of a search."""
_CHANCE = 0.05
"""The parameter `chance` of `_Search.run`, in `choose_orders` and `choose_block_orders`."""


@cache
def _orders(seats: int) -> tuple[tuple[int, ...], ...]:
    """Return the cyclic orders of a table, each as positions in the table."""
    return tuple((0, *others) for others in permutations(range(1, seats)))


@cache
def _pairs(seats: int) -> tuple[tuple[int, ...], ...]:
    """Return, for each cyclic order, its pairs of a bot and its left neighbour.

    A pair of the positions i and j is the number i * seats + j.
    """
    return tuple(
        tuple(one * seats + other for one, other in pairwise((*order, 0)))
        for order in _orders(seats)
    )


class RoundOrders:
    """Choose the cyclic orders of a stage in which all tables play, round after round.

    A table uses each of its cyclic orders once before it repeats one. After (k-1)! rounds every bot has had every
    other bot of the table as left neighbour equally often. The orders of a round depend only on earlier rounds,
    so a longer schedule starts with the shorter one.

    Args:
        tables: the tables of each round.
    """

    def __init__(self, tables: Sequence[BotTable]) -> None:
        self._search = _Search(tables)
        self._left: list[list[int]] = [[] for _ in tables]

    def next_round(self) -> list[BotTable]:
        """Return the tables of the next round, each with its bots in clockwise order."""
        if not self._left[0]:
            self._left = [list(each) for each in self._search.all_orders()]
        chosen = self._search.run(self._left, _ROUND_EFFORT)
        for left, order in zip(self._left, chosen, strict=True):
            left.remove(order)
        return self._search.seat(chosen)


def choose_orders(tables: Sequence[BotTable]) -> list[BotTable]:
    """Return the tables of a stage, each with its bots in clockwise order. A table may occur several times.

    The search starts with the orders that the tables have. They stay if the search finds no lower cost.
    """
    if not tables:
        return []
    search = _Search(tables)
    search.start()
    return search.seat(search.run(search.all_orders(), _CHOICE_EFFORT, chance=_CHANCE))


def choose_block_orders(blocks: Sequence[BotTable], bots: int) -> list[BotTable]:
    """Return base blocks of `cyclic_tables`, each in clockwise order.

    If each block is moved by 0, 1, …, `bots` - 1 positions, all bots are neighbours about equally often in the tables.
    """
    search = _BlockSearch(blocks, bots)
    search.start()
    return search.seat(search.run(search.all_orders(), _CHOICE_EFFORT // bots, chance=_CHANCE))


class _Search:
    """Search for the cyclic orders of the lowest cost. The module's docstring describes the search.

    Args:
        tables: the table of each match. All have the same number of seats.
    """

    def __init__(self, tables: Sequence[BotTable]) -> None:
        self._tables = tables
        self._seats = len(tables[0])
        players = set(chain.from_iterable(tables))
        self._bots = 1 + max(players)
        self._kinds = len(players) * (len(players) - 1)
        """How many different pairs of a bot and a left neighbour are possible."""
        self._met = [0] * self._bots**2
        """How often each bot has had each other bot as left neighbour. `_places` gives the positions in this list."""
        self._chosen = [-1] * len(tables)
        """The number of the cyclic order of each match, -1 if it has none yet."""
        self._random = Random(0).random  # noqa: S311 - no secret

    def all_orders(self) -> list[Sequence[int]]:
        """Return the numbers of all cyclic orders, for each match."""
        return [range(len(_orders(self._seats)))] * len(self._tables)

    def seat(self, chosen: Iterable[int]) -> list[BotTable]:
        """Return the tables, each with its bots in the cyclic order of the given number."""
        orders = _orders(self._seats)
        return [
            tuple(table[place] for place in orders[order])
            for table, order in zip(self._tables, chosen, strict=True)
        ]

    def start(self) -> None:
        """Give each match the cyclic order that its table has."""
        self._chosen = [0] * len(self._tables)
        for table in self._tables:
            places = self._places(table)
            for pair in _pairs(self._seats)[0]:
                self._met[places[pair]] += 1

    def run(self, options: Sequence[Sequence[int]], effort: int, *, chance: float = 0) -> list[int]:
        """Return the number of a cyclic order for each match. Then `_met` counts the neighbours in these orders too.

        Args:
            options: the numbers of the cyclic orders that each match may have.
            effort: the approximate number of cyclic orders to try.
            chance: to leave dead ends, every second pass gives a match a random order with some probability. In pass i
                of p, this probability is `chance` * (1 - i / p), so it falls from pass to pass.
        """
        in_turn = sorted(range(len(options)), key=lambda _: self._random())
        passes = effort // sum(map(len, options))
        passes = min(max(passes, _LEAST_PASSES), _MOST_PASSES)
        ideal, least, best, met = self._least_squares(), math.inf, self._chosen, self._met
        for number in range(1 + passes):
            if number:
                falling = chance * (1 - number / passes) if number % 2 == 0 else 0.0
                self._pass(in_turn, options, falling)
            squares = sum(times * times for times in self._met)
            if -1 not in self._chosen and squares < least:
                best, met, least = list(self._chosen), list(self._met), squares
            if least == ideal:
                break
        self._met, self._chosen = met, [-1] * len(options)
        return best

    def _pass(
        self, in_turn: Iterable[int], options: Sequence[Sequence[int]], chance: float
    ) -> None:
        """Choose the order of each match anew, and update `_met`.

        Args:
            in_turn: the numbers of the matches.
            options: see `run`.
            chance: the probability that a match gets a random order and not an order of the lowest cost.
        """
        random, met, chosen = self._random, self._met, self._chosen
        pairs = _pairs(self._seats)
        for match in in_turn:
            table, orders = self._tables[match], options[match]
            places = self._places(table)
            if chosen[match] >= 0:
                for pair in pairs[chosen[match]]:
                    met[places[pair]] -= 1
            if random() < chance:
                order = orders[int(random() * len(orders))]
            else:
                times = [met[place] for place in places]
                costs = [sum([times[pair] for pair in pairs[order]]) for order in orders]
                least = min(costs)
                best = [order for order, cost in zip(orders, costs, strict=True) if cost == least]
                order = best[int(random() * len(best))]
            chosen[match] = order
            for pair in pairs[order]:
                met[places[pair]] += 1

    def _least_squares(self) -> int:
        """Return a lower bound of the cost after a run: the cost if the counts differ by one at most."""
        counted = sum(self._met) + self._chosen.count(-1) * self._seats
        times, more = divmod(counted, self._kinds)
        return (self._kinds - more) * times**2 + more * (times + 1) ** 2

    def _places(self, table: BotTable) -> list[int]:
        """Return the position in `_met` of each pair of bots of a table.

        The index in the returned list is the number of the pair in `_pairs`.
        """
        return [bot * self._bots + other for bot in table for other in table]


class _BlockSearch(_Search):
    """Search for the cyclic orders of base blocks.

    It counts how often each difference between a bot and its left neighbour occurs, not each pair. When the blocks are
    moved around the circle, all pairs of bots with the same difference become neighbours equally often.
    """

    def __init__(self, blocks: Sequence[BotTable], bots: int) -> None:
        super().__init__(blocks)
        self._bots, self._kinds, self._met = bots, bots - 1, [0] * bots

    def _places(self, table: BotTable) -> list[int]:
        """Return the difference of each pair of bots of a block.

        The index in the returned list is the number of the pair in `_pairs`.
        """
        return [(other - bot) % self._bots for bot in table for other in table]
