"""Schedule a round robin: in every round, every table of bots plays one match.

If the tables of a stage have k seats, every set of k bots is a table. A round is one match at every table of
a stage. The next table of a round is one whose bots have played least so far, and the stages take
turns, round by round. So at any time during the tournament all bots have played about equally often.

The next match at the same table gets another cyclic order, see `cyclic_orders`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, combinations

from referee.records import ScheduledGame
from referee.schedule import BotTable, Match, Stage, check_stages, expand_matches
from referee.schedule.cyclic_orders import RoundOrders


def list_tables(bots: int, seats: int) -> Iterator[BotTable]:
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


def whole_rounds(stages: Sequence[Stage], tables: Sequence[Sequence[BotTable]]) -> Iterator[Match]:
    """Yield all matches: the first round of each stage, then the second round of each stage, and so on.

    Args:
        stages: the stages of the tournament.
        tables: for each stage, all its tables in the order of play in a round.
    """
    orders = [RoundOrders(each) for each in tables]
    for round_number in range(1, max(stage.matches for stage in stages) + 1):
        for number, stage in enumerate(stages):
            if round_number <= stage.matches:
                for order in orders[number].next_round():
                    yield Match(number, round_number, order)
