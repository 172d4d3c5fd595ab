"""Gauntlet: new bots against a field. Every table has one challenger and fills up with the field.

The first bots of the tournament are the challengers (`Stage.challengers`), the others the field.
Challengers never meet.

**Whole rounds.** A round is one match of every table: of each challenger with each k-1 of the field.
Challengers take turns, each next with those of the field who have played least.

**A balanced choice**, where not every table can play. A round is one match of each challenger; the
last one may be shorter. What holds:

- challengers have played equally often after each round, within one match at the end; so has the
  field at the end; over all stages, too;
- a challenger meets all of the field equally often in a stage, within one match;
- every bot has each seat equally often, since a match has all cyclic seatings.

That is so because how often each challenger meets each of the field is laid down first: all of them
equally often, and what is left over goes round the field in turn, from one challenger to the next.
Tables are then filled one by one. Who has to meet the challenger in all matches it has left, must sit
there; the other places go to those who have played least, then to those who have more matches with
the challenger before them, then to those who have met the rest of the table least. This last point
is as even as that gets; it is not searched for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from referee.records import ScheduledGame
from referee.schedule.balanced import interleave_rounds
from referee.schedule.round_robin import choose_orders, list_tables, whole_rounds
from referee.schedule.stages import Stage, check_stages, expand_matches

Table = tuple[int, ...]

_LOOK_AHEAD = 16
"""Tables of a challenger among which its next one in a whole round is chosen."""


def gauntlet(
    tournament: str, bots: Sequence[str], stages: Sequence[Stage], *, lanes: int
) -> tuple[ScheduledGame, ...]:
    """The schedule of a tournament, in the order of play; it depends on nothing but the arguments.

    Args:
        tournament: its name, of which ids are made.
        bots: the challengers, then the field.
        stages: all of them with the same challengers, all of them balanced or none.
        lanes: at least as many as the largest table has seats.

    Raises ValueError as `check_stages` does, for stages that differ, and where a table cannot be
    filled.
    """
    check_stages(bots, stages, lanes)
    _check(len(bots), stages)
    if stages[0].balanced:
        matches = interleave_rounds(stages, _choices(len(bots), stages))
    else:
        matches = whole_rounds(stages, [list(_round(len(bots), stage)) for stage in stages])
    return expand_matches(tournament, bots, matches, lanes=lanes)


def _check(bots: int, stages: Sequence[Stage]) -> None:
    kinds = {(stage.challengers, stage.balanced) for stage in stages}
    if len(kinds) != 1:
        raise ValueError("the stages of a gauntlet have the same challengers, and all or no tables")
    for stage in stages:
        field = bots - stage.challengers
        if stage.challengers < 1:
            raise ValueError("a gauntlet has challengers")
        if field < stage.seats - 1:
            raise ValueError(f"a field of {field} does not fill {stage.seats - 1} seats")
        if stage.balanced and stage.matches < stage.min_matches(bots):
            raise ValueError(f"in {stage.matches} matches not every bot plays")


def _round(bots: int, stage: Stage) -> Iterator[Table]:
    """All tables of a stage, challengers in turn; they begin at different places of the same order."""
    first = stage.challengers
    groups = [
        tuple(first + bot for bot in group) for group in list_tables(bots - first, stage.seats - 1)
    ]
    apart = len(groups) / first
    left = [groups[(at := int(number * apart)) :] + groups[:at] for number in range(first)]
    played = [0] * bots

    def share(group: Table) -> tuple[int, int]:
        return max(played[bot] for bot in group), sum(played[bot] for bot in group)

    for _ in groups:
        for challenger in range(first):
            waiting = left[challenger][:_LOOK_AHEAD]
            place = min(range(len(waiting)), key=lambda number: share(waiting[number]))
            group = left[challenger].pop(place)
            for bot in group:
                played[bot] += 1
            yield (challenger, *group)


def _choices(bots: int, stages: Sequence[Stage]) -> Iterator[list[list[Table]]]:
    """The rounds of each stage, their tables as cyclic orders."""
    quotas = _Quotas(bots, stages[0].challengers)
    for stage in stages:
        tables = quotas.tables(stage.seats, stage.matches)
        orders = choose_orders(tables)
        yield [
            orders[first : first + stage.challengers]
            for first in range(0, len(orders), stage.challengers)
        ]


class _Quotas:
    """Lays down how often a challenger meets each of the field, and fills tables by that.

    What one stage leaves uneven, the next makes up for: it goes on, with the challengers and in
    the field, where that ended.
    """

    def __init__(self, bots: int, challengers: int) -> None:
        self._challengers = challengers
        self._field = range(challengers, bots)
        self._first = 0
        """The challenger whose turn it is."""
        self._next = 0
        """Place in the field that is next to have one match more than others."""
        self._played: Counter[int] = Counter()
        self._met: Counter[tuple[int, int]] = Counter()

    def tables(self, seats: int, matches: int) -> list[Table]:
        """The tables of a stage in the order of play, each as ascending numbers."""
        in_turn = [
            (self._first + number) % self._challengers for number in range(self._challengers)
        ]
        turns = [in_turn[number % self._challengers] for number in range(matches)]
        self._first = (self._first + matches) % self._challengers
        left = Counter(turns)
        quotas = {bot: self._quota(left[bot] * (seats - 1)) for bot in in_turn}
        tables = []
        for challenger in turns:
            table = self._fill(seats - 1, quotas[challenger], left[challenger])
            left[challenger] -= 1
            tables.append((challenger, *sorted(table)))
        return tables

    def _quota(self, places: int) -> dict[int, int]:
        """How often each of the field sits in so many places at the tables of one challenger."""
        times, more = divmod(places, len(self._field))
        quota = dict.fromkeys(self._field, times)
        for number in range(more):
            quota[self._field[(self._next + number) % len(self._field)]] += 1
        self._next = (self._next + more) % len(self._field)
        return quota

    def _fill(self, places: int, quota: dict[int, int], matches: int) -> list[int]:
        """Those of the field who sit at the next of so many matches of a challenger."""
        table = [bot for bot in self._field if quota[bot] == matches]
        while len(table) < places:
            waiting = [bot for bot in self._field if quota[bot] and bot not in table]
            table.append(min(waiting, key=lambda bot: self._rank(bot, quota, table)))
        for place, bot in enumerate(table):
            quota[bot] -= 1
            self._played[bot] += 1
            for other in table[:place]:
                self._met[bot, other] += 1
                self._met[other, bot] += 1
        return table

    def _rank(self, bot: int, quota: dict[int, int], table: list[int]) -> tuple[int, int, int]:
        return self._played[bot], -quota[bot], sum(self._met[bot, other] for other in table)
