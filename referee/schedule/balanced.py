"""Schedule a balanced choice of tables, for a budget that is too small for all tables.

In this module a round is a group of matches in which all bots play equally often. Only the last round of a
stage may be shorter. Each stage has these properties:

- After each round all bots have played equally often. After a shorter last round the numbers of matches of two
  bots differ by one at most.
- Every bot has each seat equally often, because a match has all cyclic seatings.
- All pairs of bots meet about equally often.
- Each bot has each other bot as left neighbour about equally often. `choose_orders` searches for such orders.

Stages take turns: the next round is always from the stage with the fewest games so far. If a stage must let
some bots play more often than others, it prefers the bots that play least in the stages before it in the list of
stages. Pairs of bots that meet less often in those stages meet more often in this one (`positions`).

The tables of a stage come from these sources:

1. Known designs (`designs`): first as many complete copies of a neighbour design as the stage has matches for, then
   as many complete copies of a pair design. In a design all pairs meet equally often.
2. The matches that are left take their tables from the first of these sources that has tables for them:

   - the start of the pair design, if the numbers of matches of any two bots differ by one at most there;
   - base blocks on a circle (`cyclic_tables`);
   - a search for single tables (`table_search`).

   In tables from the first two sources, the numbers of meetings of any two pairs differ by one at most.

If the meetings of two pairs differ by more than one in the whole stage, the stage is tried again with fewer copies. If
this fails too, and a copy of a neighbour design fits into the stage, base blocks alone are tried. If all this fails, the
stage gets the tables with the smallest difference.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from heapq import heappop, heapreplace
from itertools import chain, islice

import numpy as np

from referee.records import ScheduledGame
from referee.schedule import BotTable, Match, Stage, check_stages, expand_matches
from referee.schedule.cyclic_orders import choose_orders
from referee.schedule.cyclic_tables import cyclic_tables
from referee.schedule.designs import Design, neighbour_design, pair_design
from referee.schedule.positions import assign_bots, count_meetings
from referee.schedule.table_search import search_tables

_LOOK_AHEAD = 64
"""How many of the remaining tables `_split` compares to select the next table."""


def balanced_tables(bots: int, seats: int, matches: int) -> list[list[BotTable]]:
    """Return the tables of `matches` matches between the bots 0, 1, …, as a list of rounds.

    The bots of each table are in clockwise order. The module's docstring says what a round is.
    """
    even, parts = _choose_parts(bots, seats, matches)
    orders = iter(choose_orders(list(chain.from_iterable(parts))))
    parts = [list(islice(orders, len(part))) for part in parts]
    return [each for part in chain(even, parts) for each in _split(bots, part)]


def _choose_parts(
    bots: int, seats: int, matches: int
) -> tuple[list[list[BotTable]], list[list[BotTable]]]:
    """Return two lists of parts of a stage: parts that keep their clockwise orders, and parts for `choose_orders`.

    The second list follows the first. In each part but the last one, all bots play equally often.
    """
    fits = matches * seats >= bots * (bots - 1)
    neighbours = _tables(neighbour_design(bots, seats) if fits else None)
    pairs = _tables(pair_design(bots, seats))
    least: float = math.inf
    for copies, pair_copies in _copies(matches, len(neighbours), len(pairs)):
        even, parts = [neighbours] * copies, [pairs] * pair_copies
        if others := matches - sum(map(len, even + parts)):
            parts += (
                _start(bots, pairs, others)
                or cyclic_tables(bots, seats, others)
                or search_tables(bots, seats, others)
            )
        if (difference := _difference(bots, parts)) < least:
            least, best = difference, (even, parts)
        if least <= 1:
            return best
    if neighbours and (parts := cyclic_tables(bots, seats, matches) or []):
        return [], parts
    return best


def _tables(design: Design | None) -> list[BotTable]:
    """Return the tables of a design, [] if there is no design."""
    return design.tables() if design else []


def _copies(matches: int, neighbours: int, pairs: int) -> Iterator[tuple[int, int]]:
    """Yield how many copies of the neighbour design and of the pair design to try in a stage, the most copies first.

    Fewer copies leave more matches to a search. Then it is easier to let all pairs meet about equally often.

    Args:
        matches: the number of matches of the stage.
        neighbours: the number of tables of the neighbour design, 0 if there is none.
        pairs: the number of tables of the pair design, 0 if there is none.
    """
    copies, others = divmod(matches, neighbours) if neighbours else (0, matches)
    if pairs and others >= pairs:
        yield copies, others // pairs
    yield copies, 0
    if copies:
        yield copies - 1, 0


def _start(bots: int, pairs: Sequence[BotTable], matches: int) -> list[list[BotTable]]:
    """Return a list with one part: the first `matches` tables of a pair design.

    Return [] if the design has fewer tables, or if a bot plays at least two matches more than another.
    """
    if matches > len(pairs):
        return []
    start = list(pairs[:matches])
    plays = Counter(chain(range(bots), chain.from_iterable(start)))
    return [start] if max(plays.values()) - min(plays.values()) <= 1 else []


def _difference(bots: int, parts: Iterable[Iterable[BotTable]]) -> int:
    """Return the largest number of meetings of a pair minus the smallest number of meetings of a pair."""
    meetings = count_meetings(bots, list(chain.from_iterable(parts)))
    return int(np.ptp(meetings[np.triu_indices(bots, 1)]))


def _split(bots: int, part: Iterable[BotTable]) -> Iterator[list[BotTable]]:
    """Yield the rounds of a part.

    A round ends when all bots have played equally often. Only the last part of a stage may end with a shorter round.
    The next table is one of the next `_LOOK_AHEAD` tables. It is the one whose busiest bot has played least in the part
    so far. Among equal tables, it is the one whose bots together have played least.
    """
    played = [0] * bots
    left = list(part)
    tables: list[BotTable] = []
    while left:
        table = min(
            left[:_LOOK_AHEAD],
            key=lambda table: (
                max(played[bot] for bot in table),
                sum(played[bot] for bot in table),
            ),
        )
        left.remove(table)
        for bot in table:
            played[bot] += 1
        tables.append(table)
        if not left or min(played) == max(played):
            yield tables
            tables = []


def balanced_schedule(
    tournament: str, bots: Sequence[str], stages: Sequence[Stage], *, lanes: int
) -> tuple[ScheduledGame, ...]:
    """Return the schedule of a tournament of balanced stages, in the order of play.

    Args:
        tournament: the name of the tournament, used in ids.
        bots: the names of the bots.
        stages: the stages of the tournament.
        lanes: the number of lanes, at least the number of seats of the largest table.

    Raises ValueError if `check_stages` does.
    """
    check_stages(bots, stages, lanes)
    matches = interleave_rounds(stages, _rounds(len(bots), stages))
    return expand_matches(tournament, bots, stages, matches, lanes=lanes)


def interleave_rounds(
    stages: Sequence[Stage], rounds: Iterable[Iterable[Sequence[BotTable]]]
) -> Iterator[Match]:
    """Yield all matches, round by round. The next round is from the stage with the fewest games so far.

    Args:
        stages: the stages of the tournament.
        rounds: a list of rounds for each stage. A round is a list of tables. The bots of each table are in
            clockwise order.
    """
    left = [deque(enumerate(each, start=1)) for each in rounds]
    waiting = [(0, stage) for stage, more in enumerate(left) if more]
    """A heap with a pair for each stage that has rounds left: the number of its games so far, and the stage."""
    while waiting:
        games, stage = waiting[0]
        number, orders = left[stage].popleft()
        for order in orders:
            yield Match(stage, number, order)
        if left[stage]:
            heapreplace(waiting, (games + len(orders) * stages[stage].seats, stage))
        else:
            heappop(waiting)


def _rounds(bots: int, stages: Sequence[Stage]) -> Iterator[list[list[BotTable]]]:
    """Yield, for each stage, the list of its rounds. The bots of each table are in clockwise order.

    `assign_bots` says which bot has which number in the tables.
    """
    played = [0] * bots
    meetings = np.zeros((bots, bots))
    compute_tables = cache(balanced_tables)  # extensions repeat the stages of a tournament
    for stage in stages:
        rounds = compute_tables(bots, stage.seats, stage.matches)
        tables = list(chain.from_iterable(rounds))
        names = assign_bots(meetings, played, tables)
        renamed = [
            [tuple(names[position] for position in table) for table in each] for each in rounds
        ]
        named = list(chain.from_iterable(renamed))
        for bot in chain.from_iterable(named):
            played[bot] += 1
        meetings += count_meetings(bots, named)
        yield renamed
