"""Schedule a round robin: in every round, every table of bots plays one match.

If the tables of a stage have k seats, every set of k bots is a table. A round is one match at every table of
a stage. The next table of a round is one whose bots have played least so far, and the stages take
turns, round by round. So at any time during the tournament all bots have played about equally often.

Snatching goes clockwise, so the left neighbour of a bot matters. All seatings of a match have the same cyclic
order of bots, and so the same neighbours. The next match at the same table gets another cyclic order.
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
    """Yield every table of `seats` bots once. The bots are numbers from 0, in ascending order.

    A table is filled bot by bot, beginning with the bot that has played least so far. Among bots that have
    played equally often, the bot with the lowest number comes first. A bot is skipped if every table with this
    bot and the bots already selected has been yielded. No bot is ever more than `seats` matches ahead of
    another.
    """
    left = Counter(
        chain.from_iterable(
            _subsets(frozenset(table)) for table in combinations(range(bots), seats)
        )
    )
    """For each set of bots: how many tables that contain the whole set have not been yielded yet."""
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
"""The approximate limit on the number of cyclic orders that `choose_orders` tries."""
_MOST_PASSES = 200
"""The largest number of passes of `choose_orders`."""
_FIRST_CHANCE = 0.05
"""The probability that a match gets a random order in the first passes of `choose_orders`."""


class SeatingOrders:
    """Select the cyclic orders of all tables of one stage, match after match.

    A table of k bots uses each of its (k-1)! cyclic orders once before it repeats one. After (k-1)! matches every
    bot has had every other bot of the table as left neighbour equally often. The next order is the unused order whose
    neighbours have been neighbours least often so far, at all tables. The selection depends only on earlier
    matches, so a longer schedule starts with the shorter one.
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
        """Return how often the neighbours of an order have been neighbours in earlier matches."""
        return sum(self._met[pair] for pair in _pairs(order))


def choose_orders(tables: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the clockwise order of the bots in each match of a stage. A search makes the cost low.

    Count for each pair of bots how often the second bot is the left neighbour of the first bot. The cost is
    the sum of the squares of these counts. The search starts with the orders of `SeatingOrders`. A pass goes
    through the matches and gives each match the order of the lowest cost, while the orders of all other matches
    stay. In every second pass some matches get a random order instead, to leave local optima. The number of
    random orders falls from pass to pass. The result has the lowest cost found at the start or after a pass.

    Args:
        tables: the table of each match.
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
    """Make one pass of `choose_orders`: select a new order for each match, and update `orders` and `met`.

    Args:
        orders: the clockwise order of each match.
        met: how often each bot has each other bot as left neighbour.
        chance: the probability that a match gets a random order and not an order of the lowest cost.
        random: returns a random number that is at least 0 and less than 1.
    """
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
    """Return the cost, as `choose_orders` defines it."""
    return sum(times * times for times in met.values())


def _least_squares(tables: Sequence[tuple[int, ...]]) -> int:
    """Return a lower bound of `_squares`: the cost if the frequencies of neighbours differ by one at most."""
    bots = len(set(chain.from_iterable(tables)))
    pairs = bots * (bots - 1)
    times, more = divmod(sum(map(len, tables)), pairs)
    return (pairs - more) * times**2 + more * (times + 1) ** 2


def _pairs(order: Sequence[int]) -> list[tuple[int, int]]:
    """Return pairs of a bot and its left neighbour, one pair for each bot of a clockwise order."""
    return list(pairwise((*order, order[0])))


def round_robin(
    tournament: str, bots: Sequence[str], stages: Sequence[Stage], *, lanes: int
) -> tuple[ScheduledGame, ...]:
    """Return the schedule of a tournament, in the order of play.

    If only the stages with the most matches get more matches, the old schedule is the start of the new one.

    Args:
        tournament: the name of the tournament, used in ids.
        bots: the names of the bots.
        stages: the stages of the tournament.
        lanes: the number of lanes, at least the number of seats of the largest table.

    Raises ValueError if `check_stages` does.
    """
    check_stages(bots, stages, lanes)
    tables = [list(list_tables(len(bots), stage.seats)) for stage in stages]
    return expand_matches(tournament, bots, stages, whole_rounds(stages, tables), lanes=lanes)


def whole_rounds(
    stages: Sequence[Stage], tables: Sequence[Sequence[tuple[int, ...]]]
) -> Iterator[Match]:
    """Yield all matches: the first round of each stage, then the second round of each stage, and so on.

    Args:
        stages: the stages of the tournament.
        tables: for each stage, all its tables in the order of play in a round.
    """
    neighbours = [SeatingOrders() for _ in stages]
    for round_number in range(1, max(stage.matches for stage in stages) + 1):
        for number, stage in enumerate(stages):
            if round_number <= stage.matches:
                for table in tables[number]:
                    yield Match(number, round_number, neighbours[number].seat(table))
