"""Which tables play where not all of them can: a choice in which all pairs meet equally often.

A first choice is made bot by bot, next always one who has played least; it fixes how often each bot
plays in each round. Then bots of two matches of a round change places, as often as that makes the
meetings no less even: the sum over all pairs of the square of their meetings must not grow. It is
least when no pair has met more than once oftener than another. Changes that keep the sum are made
too, which leads out of most dead ends. Where a walk of some length does not lead there, it goes on
with rounds of double length, which leave more freedom, until a round is the whole choice. There is
not always such a choice, and where there is, the walk may miss it.

The walk's steps are chosen by a generator with a fixed seed and a sequence that Python guarantees
(`Random.random`), so that the same comes out everywhere.

A round robin that is too large for its budget: of its tables, a balanced choice.

What holds for the whole of a stage, and what comes as near to it as a search gets:

- all bots have played equally often after each **round**, after the last one within one match;
- every bot has each seat equally often, since a match has all cyclic seatings;
- all pairs meet equally often, within one match where the search finds that (`choice`);
- everybody sits to the right of everybody else equally often, as near as can be (`neighbours`).

Stages take turns by rounds, next always the one that has had the fewest games. Where all bots cannot
play equally often in a stage, the next stage makes up for it.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations
from random import Random

from referee.records import ScheduledGame
from referee.schedule.round_robin import choose_orders
from referee.schedule.stages import Match, Stage, check_stages, expand_matches

Table = tuple[int, ...]

_STEPS = 200_000
"""Of a walk with rounds of one length."""
_LONGEST = 32
"""Rounds are at most so many times as long as they must be for all to play equally often."""
_CHECK_EVERY = 1_000
"""Steps after which it is seen whether the walk is at its end."""
_LOOK_AHEAD = 64
"""Tables of a round among which the next one is chosen."""


def balanced_tables(bots: int, seats: int, matches: int) -> list[list[Table]]:
    """A number of tables of the bots 0, 1, …, in rounds, each table as ascending numbers.

    After each round but the last all bots have played equally often, after the last one they differ
    by one match at most. The last round may be shorter than the others.
    """
    choice = _Choice(bots, seats)
    for _ in range(matches):
        choice.add()
    random = Random(0).random  # noqa: S311 - no secret
    length = shortest = bots // math.gcd(bots, seats)
    choice.walk(length, random)
    least, best_length, tables = choice.difference(), length, choice.copy()
    while length < min(matches, _LONGEST * shortest) and least > 1:
        length *= 2
        choice.walk(length, random)
        if choice.difference() < least:
            least, best_length, tables = choice.difference(), length, choice.copy()
    return [
        list(_in_turn(bots, tables[first : first + best_length]))
        for first in range(0, matches, best_length)
    ]


class _Choice:
    def __init__(self, bots: int, seats: int) -> None:
        self._tables: list[list[int]] = []
        self._seats = seats
        self._played = [0] * bots
        self._met = [[0] * bots for _ in range(bots)]

    def add(self) -> None:
        """Add a table of bots who have played least, and of those, who have met least."""
        table: list[int] = []
        least = min(self._played)
        for level in (least, least + 1):
            missing = self._seats - len(table)
            waiting = [bot for bot, played in enumerate(self._played) if played == level]
            if len(waiting) <= missing:
                table += waiting
                continue
            met = {bot: sum(self._met[bot][other] for other in table) for bot in waiting}
            for _ in range(missing):
                chosen = min(met, key=met.__getitem__)
                del met[chosen]
                table.append(chosen)
                for bot in met:
                    met[bot] += self._met[bot][chosen]
            break
        for bot in table:
            self._played[bot] += 1
        for one, other in combinations(table, 2):
            self._meet(one, other, 1)
        self._tables.append(table)

    def difference(self) -> int:
        """How much oftener than another a pair has met, at most."""
        meetings = [met for bot, others in enumerate(self._met) for met in others[:bot]]
        return max(meetings) - min(meetings)

    def copy(self) -> list[Table]:
        """The tables as they are now, each as ascending numbers."""
        return [tuple(sorted(table)) for table in self._tables]

    def walk(self, length: int, random: Callable[[], float]) -> None:
        """Let bots of two matches in the same round of this length change places, many times."""
        if length == 1:
            return
        for step in range(_STEPS):
            if step % _CHECK_EVERY == 0 and self.difference() <= 1:
                return
            number = int(random() * len(self._tables))
            first = number - number % length
            size = min(length, len(self._tables) - first)
            table, other = self._tables[number], self._tables[first + int(random() * size)]
            place, other_place = int(random() * self._seats), int(random() * self._seats)
            if table[place] not in other and other[other_place] not in table:
                self._change(table, place, other, other_place)

    def _change(self, table: list[int], place: int, other: list[int], other_place: int) -> None:
        """Change the bots in two places of two tables, if that makes the meetings no less even."""
        bot, guest = table[place], other[other_place]
        met_bot, met_guest = self._met[bot], self._met[guest]
        left = [each for each in table if each != bot and each not in other]
        joined = [each for each in other if each != guest and each not in table]
        grows = sum(met_guest[each] - met_bot[each] + 1 for each in left)
        grows += sum(met_bot[each] - met_guest[each] + 1 for each in joined)
        if grows > 0:
            return
        for each in left:
            self._meet(bot, each, -1)
            self._meet(guest, each, 1)
        for each in joined:
            self._meet(guest, each, -1)
            self._meet(bot, each, 1)
        table[place], other[other_place] = guest, bot

    def _meet(self, one: int, other: int, times: int) -> None:
        self._met[one][other] += times
        self._met[other][one] += times


def _in_turn(bots: int, tables: list[Table]) -> Iterator[Table]:
    """The tables of a round, next always one of those who have played least in it."""
    played = [0] * bots
    left = list(tables)
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
        yield table


def balanced_schedule(
    tournament: str, bots: Sequence[str], stages: Sequence[Stage], *, lanes: int
) -> tuple[ScheduledGame, ...]:
    """The schedule of a tournament, in the order of play; it depends on nothing but the arguments.

    Raises ValueError as `check_stages` does.
    """
    check_stages(bots, stages, lanes)
    matches = interleave_rounds(stages, _rounds(len(bots), stages))
    return expand_matches(tournament, bots, matches, lanes=lanes)


def interleave_rounds(
    stages: Sequence[Stage], rounds: Iterable[Iterable[Sequence[Table]]]
) -> Iterator[Match]:
    """The matches of the rounds of each stage, whose tables are cyclic orders.

    The next round is always one of the stage that has had the fewest games.
    """
    left = [deque(enumerate(each)) for each in rounds]
    games = [0] * len(stages)
    while any(left):
        waiting = [stage for stage, more in enumerate(left) if more]
        stage = min(waiting, key=games.__getitem__)
        number, orders = left[stage].popleft()
        games[stage] += len(orders) * stages[stage].seats
        for order in orders:
            yield Match(stage, number, order)


def _rounds(bots: int, stages: Sequence[Stage]) -> Iterator[list[list[Table]]]:
    """The rounds of each stage, their tables as cyclic orders."""
    played = Counter(range(bots))
    played.subtract(range(bots))
    for stage in stages:
        rounds = balanced_tables(bots, stage.seats, stage.matches)
        plays = Counter(chain.from_iterable(chain.from_iterable(rounds)))
        most_first = sorted(range(bots), key=lambda bot: -plays[bot])
        names = dict(zip(most_first, sorted(range(bots), key=played.__getitem__), strict=True))
        for bot, name in names.items():
            played[name] += plays[bot]
        tables = [tuple(sorted(names[bot] for bot in table)) for each in rounds for table in each]
        orders = iter(choose_orders(tables))
        yield [[next(orders) for _ in each] for each in rounds]
