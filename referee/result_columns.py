"""Hold the results of many games as numpy arrays, for statistics.

Creating a `GameResult` takes a microsecond or two. A league can have a hundred thousand games, so the store
fills arrays without creating `GameResult`s, and the ratings compute with these arrays.

In the shapes below, G is the number of games and S the number of seats of the largest table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from referee.records import GameResult

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
T = TypeVar("T")

NOBODY = -1
"""The value in `ResultColumns.bot` for a missing seat, and in `ResultColumns.machine` for a game without a machine. In a
game with k seats, the seats from number k to the last column are missing."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ResultColumns:
    """The results of G games: one row for each game, one column for each seat."""

    bots: tuple[str, ...]
    """`name@version` of each bot. Some of these bots may have played none of the games."""
    rulesets: tuple[str, ...]
    """Names of rulesets."""
    ruleset: Ints
    """(G,) the ruleset of each game, as an index of `rulesets`."""
    match: Ints
    """(G,) the match of each game, as a number. Games of one match have the same number."""
    bot: Ints
    """(G, S) the bot of each seat, as an index of `bots`; NOBODY for a missing seat."""
    score: Ints
    """(G, S) points by the rules; 0 for a missing seat."""
    rank: Ints
    """(G, S) final rank, 1 the best; 0 for a missing seat."""
    forfeited: Flags
    """(G, S) True where the seat forfeited."""
    strikes: Ints
    """(G, S) number of strikes. A `GameResult` has no strikes, so `from_results` sets 0."""
    machine: Ints
    """(G,) the `StoredMachine.key` of the machine that played the game. A `GameResult` has no machine, so `from_results` sets NOBODY."""
    fresh_deal: Flags
    """(G,) True if the game has a deal of its own (`Deals.FRESH`), False if all games of its match have the same deal. A `GameResult`
    does not tell this, so `from_results` sets False."""

    def __len__(self) -> int:
        return len(self.match)

    @property
    def seats(self) -> Ints:
        """(G,) the number of seats of each game."""
        seats: Ints = (self.bot != NOBODY).sum(axis=1)
        return seats

    @property
    def points(self) -> Ints:
        """(G, S) like `score`, but a seat that forfeited gets the lowest score of its game, however well its stand-in played."""
        seated = np.where(self.bot == NOBODY, np.iinfo(np.int64).max, self.score)
        points: Ints = np.where(self.forfeited, seated.min(axis=1, keepdims=True), self.score)
        return points

    @property
    def matches(self) -> int:
        """The number of matches. It is right only if `match` counts from 0 without gaps, as after `by_ruleset` or `of_size`."""
        return int(self.match.max()) + 1 if len(self) else 0

    @classmethod
    def from_results(cls, results: Iterable[GameResult]) -> ResultColumns:
        """Return the columns of `results`, with the games in the same order and all strikes 0."""
        results = list(results)
        bots = _number({bot: None for result in results for bot in result.bots})
        rulesets = _number({result.ruleset: None for result in results})
        matches = _number(sorted({result.match_key for result in results}))
        rank = _pad([result.ranks for result in results], 0)
        forfeited = np.zeros_like(rank, dtype=bool)
        for game, result in enumerate(results):
            forfeited[game, list(result.forfeited)] = True
        return cls(
            bots=tuple(bots),
            rulesets=tuple(rulesets),
            ruleset=np.array([rulesets[result.ruleset] for result in results], dtype=np.int64),
            match=np.array([matches[result.match_key] for result in results], dtype=np.int64),
            bot=_pad([[bots[bot] for bot in result.bots] for result in results], NOBODY),
            score=_pad([result.scores for result in results], 0),
            rank=rank,
            forfeited=forfeited,
            strikes=np.zeros_like(rank),
            machine=np.full(len(results), NOBODY),
            fresh_deal=np.zeros(len(results), dtype=bool),
        )

    def select(self, games: Flags | Ints | slice) -> ResultColumns:
        """Return only the rows that `games` selects.

        `games` is a mask, an array of row numbers, or a slice. `bots` and `rulesets` do not change, and matches keep their numbers.
        """
        columns = {field.name for field in fields(self)} - {"bots", "rulesets"}
        return replace(self, **{column: getattr(self, column)[games] for column in columns})

    def by_ruleset(self) -> dict[str, ResultColumns]:
        """Map the name of each ruleset to its games. The names are sorted.

        `bots` then has only the bots that played with the ruleset, sorted by name. Matches are numbered from 0
        without gaps. Games are sorted by match, then by the bots of the seats. So the order in which games were
        stored changes no statistic, not even by a rounding error.
        """
        found = {}
        for number in np.unique(self.ruleset).tolist():
            games = self.select(self.ruleset == number)
            found[self.rulesets[number]] = _normalise(games)
        return dict(sorted(found.items()))

    def of_size(self, seats: int) -> ResultColumns:
        """Return the games with `seats` seats. Their matches are numbered anew, from 0 without gaps."""
        sized = self.select(self.seats == seats)
        return replace(sized, match=np.unique(sized.match, return_inverse=True)[1])


def _number(values: Iterable[T]) -> dict[T, int]:
    """Map each value to its position in `values`."""
    return {value: position for position, value in enumerate(values)}


def _pad(rows: Sequence[Sequence[int]], empty: int) -> Ints:
    """Return the rows as one array; rows shorter than the longest are filled with `empty`."""
    width = max(map(len, rows), default=1)
    padded = [[*row, *[empty] * (width - len(row))] for row in rows]
    return np.array(padded, dtype=np.int64).reshape(-1, width)


def _normalise(games: ResultColumns) -> ResultColumns:
    """Return the games of one ruleset as `by_ruleset` describes."""
    played = np.unique(games.bot[games.bot != NOBODY]).tolist()
    played.sort(key=games.bots.__getitem__)
    numbers = np.full(len(games.bots) + 1, NOBODY)  # the last item is for NOBODY, which is -1
    numbers[played] = np.arange(len(played))
    bot = numbers[games.bot]
    order = np.lexsort((*bot.T[::-1], games.match))
    match = games.match[order]
    return replace(
        games.select(order),
        bots=tuple(games.bots[number] for number in played),
        match=np.cumsum(np.diff(match, prepend=match[:1]) != 0),
        bot=bot[order],
    )
