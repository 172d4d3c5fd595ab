"""Schedule a gauntlet: challengers against a field.

The first bots of the tournament are the challengers (`Stage.challengers`), the others are the field. Each
table has one challenger and is filled up from the field, so challengers never meet.

If all tables play, a round is one match of every table: each challenger with each group from the field.
Challengers take turns, each next with the group that has played least.

In a balanced choice, a round is one match of each challenger; the last round may be shorter. Then

- challengers have played equally often after each round, and the field at the end, within one match;
- a challenger meets all bots of the field equally often in a stage, within one match;
- every bot has each seat equally often, because a match has all cyclic seatings.

The quotas guarantee this: first the number of meetings of each challenger with each bot of the field is fixed.
All numbers are equal; the remainder goes round the field, from one challenger to the next. Then the tables are
filled one by one. A bot whose quota equals the number of remaining matches of the challenger must take part.
The other places go to the bots that have played least, then to those with the largest remaining quota, then
to those that have met the rest of the table least. This last criterion is greedy, not a search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from referee.records import ScheduledGame
from referee.schedule import Stage, check_stages, expand_matches
from referee.schedule.balanced import interleave_rounds
from referee.schedule.round_robin import choose_orders, list_tables, whole_rounds

BotTable = tuple[int, ...]

_LOOK_AHEAD = 16
"""Number of waiting tables of a challenger among which its next one in a round is selected."""


def gauntlet(
    tournament: str, bots: Sequence[str], stages: Sequence[Stage], *, lanes: int
) -> tuple[ScheduledGame, ...]:
    """Return the schedule of a tournament, in the order of play.

    Args:
        tournament: the name of the tournament, used in ids.
        bots: the challengers, then the field.
        stages: stages with the same number of challengers; either all or none are balanced.
        lanes: the number of lanes, at least the number of seats of the largest table.

    Raises ValueError as `check_stages`, if the stages differ in kind, and if a table cannot be filled.
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
        raise ValueError(
            "all stages of a gauntlet must have the same challengers, and all or none must be balanced"
        )
    for stage in stages:
        field = bots - stage.challengers
        if stage.challengers < 1:
            raise ValueError("a gauntlet needs at least one challenger")
        if field < stage.seats - 1:
            raise ValueError(f"a field of {field} does not fill {stage.seats - 1} seats")
        if stage.balanced and stage.matches < stage.min_matches(bots):
            raise ValueError(f"in {stage.matches} matches not every bot plays")


def _round(bots: int, stage: Stage) -> Iterator[BotTable]:
    """Yield all tables of a stage. Challengers take turns and start at different groups of the field."""
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
    """Yield the rounds of each stage, with tables in cyclic order."""
    quotas = _Quotas(bots, stages[0].challengers)
    for stage in stages:
        tables = quotas.tables(stage.seats, stage.matches)
        orders = choose_orders(tables)
        yield [
            orders[first : first + stage.challengers]
            for first in range(0, len(orders), stage.challengers)
        ]


class _Quotas:
    """Fix how often each challenger meets each bot of the field, and fill tables accordingly.

    A stage continues where the previous one ended, both in the turns of the challengers and in the field.
    So a stage compensates for what the previous one left uneven.
    """

    def __init__(self, bots: int, challengers: int) -> None:
        self._challengers = challengers
        self._field = range(challengers, bots)
        self._first = 0
        """The challenger of the next match."""
        self._next = 0
        """Position in the field of the bot that gets the next extra match."""
        self._played: Counter[int] = Counter()
        self._met: Counter[tuple[int, int]] = Counter()

    def tables(self, seats: int, matches: int) -> list[BotTable]:
        """Return the tables of a stage in the order of play, each in ascending order."""
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
        """Return how often each bot of the field plays, if one challenger has `places` places for them."""
        times, more = divmod(places, len(self._field))
        quota = dict.fromkeys(self._field, times)
        for number in range(more):
            quota[self._field[(self._next + number) % len(self._field)]] += 1
        self._next = (self._next + more) % len(self._field)
        return quota

    def _fill(self, places: int, quota: dict[int, int], matches: int) -> list[int]:
        """Return the bots of the field for the next match of a challenger with `matches` left."""
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
        """Return the sort key of a waiting bot: the bot with the smallest one plays next."""
        return self._played[bot], -quota[bot], sum(self._met[bot, other] for other in table)
