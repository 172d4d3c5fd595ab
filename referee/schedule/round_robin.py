"""Schedule a round robin, in which every bot meets every other, or a gauntlet, in which challengers meet a field.

**Round robin.** If the tables of a stage have k seats, every set of k bots is a table. A round is one match at every table
of a stage. Bots are added to the next table of a round one by one. Bots that have played least in the round so far come
first (`list_tables`). The stages take turns, round by round. So at any time during the tournament all bots
have played about equally often.

A table uses each of its cyclic orders once before it uses one again; see `cyclic_orders`.

**Gauntlet.** The first bots of the tournament are the challengers (`Stage.challengers`), the others are the field. Each
table has one challenger; the other seats are for bots of the field. So two challengers never meet.

If all tables play, a round has one match of each challenger with each group of bots from the field. Each challenger has
a list of the groups that it has not met yet in the round. Challengers take turns. The next match of a challenger is with
one of the next `_LOOK_AHEAD` groups in its list: the one whose bots have played least.

In a balanced choice, a round has one match of each challenger; the last round may be shorter. The schedule has
these properties:

- In a stage, the numbers of matches of two challengers differ by one at most.
- At the end, the numbers of matches of two bots of the field differ by one at most.
- In a stage, the numbers of meetings of one challenger with two bots of the field differ by one at most.
- Every bot has each seat equally often, because a match has all cyclic seatings.

Quotas guarantee the second and the third property. A quota is the number of meetings of one challenger with
one bot of the field in one stage. The quotas of a challenger add up to the number of seats for the field at
all its tables. If this sum is a multiple of the size of the field, the quotas are equal. If not, some bots of
the field get one extra meeting. Bots with the fewest extra meetings in all stages so far come first. Among these, bots
with the fewest extra meetings in this stage come first. Among equal bots, those come first that this challenger has met
least in the stages before.

Then the tables are filled one by one. A bot must take part if its remaining quota equals the number of
remaining matches of the challenger. The other places go to bots that have played least. Among bots that
have played equally often, the bot with the largest remaining quota gets the place. If the quotas are equal
too, the place goes to the bot with the fewest meetings with the bots already at the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, combinations

from referee.errors import count_text
from referee.records import ScheduledGame
from referee.schedule import BotTable, Match, Stage, check_stages, expand_matches
from referee.schedule.balanced import interleave_rounds
from referee.schedule.cyclic_orders import RoundOrders, choose_orders

_LOOK_AHEAD = 16
"""How many of the remaining groups `_gauntlet_round` compares to select the next group for a challenger."""


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
    """For each set of bots, the number of tables that contain the whole set and are still to be yielded."""
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

    If only stages with the largest number of matches get more matches, the longer schedule starts with the shorter one.

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


def gauntlet(
    tournament: str, bots: Sequence[str], stages: Sequence[Stage], *, lanes: int
) -> tuple[ScheduledGame, ...]:
    """Return the schedule of a tournament, in the order of play.

    Args:
        tournament: the name of the tournament, used in ids.
        bots: the names of the bots: first the challengers, then the field.
        stages: the stages. They must have the same number of challengers, and either all or none are balanced.
        lanes: the number of lanes, at least the number of seats of the largest table.

    Raises ValueError if `check_stages` or `_check_gauntlet` does.
    """
    check_stages(bots, stages, lanes)
    _check_gauntlet(len(bots), stages)
    if stages[0].balanced:
        matches = interleave_rounds(stages, _choices(len(bots), stages))
    else:
        matches = whole_rounds(
            stages, [list(_gauntlet_round(len(bots), stage)) for stage in stages]
        )
    return expand_matches(tournament, bots, stages, matches, lanes=lanes)


def _check_gauntlet(bots: int, stages: Sequence[Stage]) -> None:
    """Raise ValueError if `bots` bots cannot play a gauntlet of these stages.

    The stages must have the same number of challengers, at least one. Either all or none must be balanced. The
    field must fill all seats of a table but one, and each bot must get at least one match in each stage. The error about
    too few matches names a number that is enough for every stage, because an extension adds the same number to all stages.
    """
    kinds = {(stage.challengers, stage.balanced) for stage in stages}
    if len(kinds) != 1:
        raise ValueError(
            "all stages of a gauntlet must have the same challengers, and all or none must be balanced;"
            " play different stages as tournaments of their own"
        )
    for stage in stages:
        field = bots - stage.challengers
        if stage.challengers < 1:
            raise ValueError("a gauntlet needs at least one challenger; add a challenger")
        if field < stage.seats - 1:
            raise ValueError(
                f"a field of {field} does not fill {count_text(stage.seats - 1, 'seat')};"
                " add bots to the field or choose smaller tables"
            )
        if stage.balanced and stage.matches < stage.min_matches(bots):
            least = max(each.min_matches(bots) for each in stages)
            raise ValueError(
                f"in {count_text(stage.matches, 'match')} not every bot plays; play at least {least} matches"
            )


def _gauntlet_round(bots: int, stage: Stage) -> Iterator[BotTable]:
    """Yield all tables of a stage, for a stage that is not balanced.

    Challengers take turns. They begin at positions that are spread evenly over the list of groups, so that they do
    not all meet the same groups first.
    """
    first = stage.challengers
    groups = [
        tuple(first + bot for bot in group) for group in list_tables(bots - first, stage.seats - 1)
    ]
    apart = len(groups) / first
    left = [groups[(at := int(number * apart)) :] + groups[:at] for number in range(first)]
    played = [0] * bots

    def share(group: BotTable) -> tuple[int, int]:
        return max(played[bot] for bot in group), sum(played[bot] for bot in group)

    for _ in groups:
        for challenger in range(first):
            waiting = left[challenger][:_LOOK_AHEAD]
            place = min(range(len(waiting)), key=lambda number: share(waiting[number]))
            group = left[challenger].pop(place)
            for bot in group:
                played[bot] += 1
            yield (challenger, *group)


def _choices(bots: int, stages: Sequence[Stage]) -> Iterator[list[list[BotTable]]]:
    """Yield, for each balanced stage, the list of its rounds. The bots of each table are in clockwise order."""
    quotas = _Quotas(bots, stages[0].challengers)
    for stage in stages:
        tables = quotas.tables(stage.seats, stage.matches)
        orders = choose_orders(tables)
        yield [
            orders[first : first + stage.challengers]
            for first in range(0, len(orders), stage.challengers)
        ]


class _Quotas:
    """Make the tables of balanced stages from quotas. The module's docstring explains quotas.

    If the last round of a stage is shorter, the next stage begins with the first challenger that has no match
    in the shorter round. Extra meetings are added up over all stages. So bots of the field that get fewer of them in one
    stage are the first to get some in the next stage.
    """

    def __init__(self, bots: int, challengers: int) -> None:
        self._challengers = challengers
        self._field = range(challengers, bots)
        self._first = 0
        """The challenger of the first match of the next stage."""
        self._extra: Counter[int] = Counter()
        """How many extra meetings each bot of the field has had in all stages."""
        self._played: Counter[int] = Counter()
        self._met: Counter[tuple[int, int]] = Counter()

    def tables(self, seats: int, matches: int) -> list[BotTable]:
        """Return the tables of the next stage in the order of play, each with its bots in ascending order."""
        turns = [(self._first + number) % self._challengers for number in range(matches)]
        self._first = (self._first + matches) % self._challengers
        left = Counter(turns)
        extra = Counter[int]()
        quotas = {
            challenger: self._quota(challenger, times * (seats - 1), extra)
            for challenger, times in left.items()
        }
        tables = []
        for challenger in turns:
            table = self._fill(seats - 1, quotas[challenger], left[challenger])
            for bot in table:
                self._met[challenger, bot] += 1
            left[challenger] -= 1
            tables.append((challenger, *sorted(table)))
        return tables

    def _quota(self, challenger: int, places: int, extra: Counter[int]) -> dict[int, int]:
        """Return how often a challenger meets each bot of the field in a stage.

        Args:
            challenger: the challenger.
            places: the number of places for bots of the field at all the challenger's tables together.
            extra: how many extra meetings each bot of the field has had in this stage. The function adds the extra
                meetings with this challenger.
        """
        times, more = divmod(places, len(self._field))
        quota = dict.fromkeys(self._field, times)
        in_turn = sorted(
            self._field, key=lambda bot: (self._extra[bot], extra[bot], self._met[challenger, bot])
        )
        for bot in in_turn[:more]:
            quota[bot] += 1
            extra[bot] += 1
            self._extra[bot] += 1
        return quota

    def _fill(self, places: int, quota: dict[int, int], matches: int) -> list[int]:
        """Return the bots of the field for the next match of a challenger.

        Args:
            places: the number of bots to return.
            quota: the remaining quota of each bot of the field with the challenger.
            matches: the number of the challenger's remaining matches, the next one included.
        """
        table = [bot for bot in self._field if quota[bot] == matches]
        while len(table) < places:
            table.append(self._next_bot(quota, table))
        for place, bot in enumerate(table):
            quota[bot] -= 1
            self._played[bot] += 1
            for other in table[:place]:
                self._met[bot, other] += 1
                self._met[other, bot] += 1
        return table

    def _next_bot(self, quota: dict[int, int], table: list[int]) -> int:
        """Return the bot of the field for the next place at a table.

        It is the bot that has played least. Among bots that have played equally often, it is the one with the largest
        remaining quota. Among bots that are equal in this too, it is the one that has met the bots of the table least.
        """
        ranks = {
            bot: (self._played[bot], -quota[bot])
            for bot in self._field
            if quota[bot] and bot not in table
        }
        least = min(ranks.values())
        # counting meetings takes long, and is needed only for equal bots
        equal = [bot for bot, rank in ranks.items() if rank == least]
        return min(equal, key=lambda bot: sum(self._met[bot, other] for other in table))
