"""Games as columns: what the statistics reckon with, a row a game and a place a seat."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

MOST_SEATS = 5
"""Of any table; a smaller one leaves the last places empty."""
NOBODY = -1
"""Sits in an empty place."""


class PlayedGame(Protocol):
    """What must be known of a game. Results from the store and from records fit."""

    @property
    def ruleset(self) -> str:
        """Name of the ruleset."""
        ...

    @property
    def match(self) -> Any:
        """Its match: equal for the games of one, and of a kind that can be sorted."""
        ...

    @property
    def bots(self) -> tuple[str, ...]:
        """Who sat where, seat 0 first."""
        ...

    @property
    def scores(self) -> tuple[int, ...]:
        """Points of each seat."""
        ...

    @property
    def ranks(self) -> tuple[int, ...]:
        """Final rank of each seat, 1 the best, equal ranks shared."""
        ...

    @property
    def forfeited(self) -> tuple[int, ...]:
        """The seats that forfeited."""
        ...


class Columns(Protocol):
    """What must be known of G games at tables of at most k seats. What a league has of them fits."""

    @property
    def bots(self) -> tuple[str, ...]:
        """Names of bots, those that played among them."""
        ...

    @property
    def rulesets(self) -> tuple[str, ...]:
        """Names of rulesets."""
        ...

    @property
    def ruleset(self) -> Ints:
        """(G,) an index of `rulesets`."""
        ...

    @property
    def match(self) -> Ints:
        """(G,) a number for each match."""
        ...

    @property
    def bot(self) -> Ints:
        """(G, k) an index of `bots`, or NOBODY."""
        ...

    @property
    def score(self) -> Ints:
        """(G, k) points; 0 in an empty place, as is the next."""
        ...

    @property
    def rank(self) -> Ints:
        """(G, k) final rank."""
        ...

    @property
    def forfeited(self) -> Flags:
        """(G, k) whether the seat did."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """The games of one ruleset. G games, M matches, n bots.

    Their order is no matter, and so is that of the bots: whatever is reckoned from them is the same,
    bit by bit, for the same games.
    """

    bots: tuple[str, ...]
    """n names, in the order of the alphabet."""
    match: Ints
    """(G,) the game's match, from 0 to M - 1."""
    seats: Ints
    """(G,) how many sat at the table."""
    bot: Ints
    """(G, 5) who sat in each seat, an index of `bots`, or NOBODY."""
    score: Ints
    """(G, 5) points; 0 in an empty place."""
    rank: Ints
    """(G, 5) final rank; 0 in an empty place."""
    forfeited: Flags
    """(G, 5)"""

    def __len__(self) -> int:
        return len(self.match)

    @property
    def matches(self) -> int:
        """M."""
        return int(self.match.max()) + 1 if len(self.match) else 0

    @classmethod
    def of(cls, games: Iterable[PlayedGame]) -> dict[str, Results]:
        """Games by their ruleset, in the order of the alphabet."""
        by_ruleset: dict[str, list[PlayedGame]] = {}
        for game in games:
            by_ruleset.setdefault(game.ruleset, []).append(game)
        return {name: _of_one(each) for name, each in sorted(by_ruleset.items())}

    @classmethod
    def of_columns(cls, games: Columns) -> dict[str, Results]:
        """The same of games that come as columns."""
        missing = ((0, 0), (0, MOST_SEATS - games.bot.shape[1]))
        bot = np.pad(games.bot, missing, constant_values=NOBODY)
        score, rank = np.pad(games.score, missing), np.pad(games.rank, missing)
        forfeited = np.pad(games.forfeited, missing)
        found = {}
        for number in np.unique(games.ruleset).tolist():
            own = games.ruleset == number
            found[games.rulesets[number]] = _in_order(
                games.bots,
                match=games.match[own],
                bot=bot[own],
                score=score[own],
                rank=rank[own],
                forfeited=forfeited[own],
            )
        return dict(sorted(found.items()))

    def of_size(self, seats: int) -> Results:
        """Only the games at tables of this size; the bots are the same."""
        return self._chosen(self.seats == seats)

    def first(self, matches: int) -> Results:
        """Only the games of the first so many matches; the bots are the same."""
        return self._chosen(self.match < matches)

    def _chosen(self, games: Flags) -> Results:
        return replace(
            self,
            match=np.unique(self.match[games], return_inverse=True)[1],
            seats=self.seats[games],
            bot=self.bot[games],
            score=self.score[games],
            rank=self.rank[games],
            forfeited=self.forfeited[games],
        )


def _of_one(games: list[PlayedGame]) -> Results:
    """Games of the same ruleset."""
    names = tuple({bot: None for game in games for bot in game.bots})
    places = {bot: place for place, bot in enumerate(names)}
    matches = {key: number for number, key in enumerate(sorted({game.match for game in games}))}
    return _in_order(
        names,
        match=np.array([matches[game.match] for game in games], dtype=np.int64),
        bot=_padded([[places[bot] for bot in game.bots] for game in games], NOBODY),
        score=_padded([game.scores for game in games], 0),
        rank=_padded([game.ranks for game in games], 0),
        forfeited=np.array(
            [[seat in game.forfeited for seat in range(MOST_SEATS)] for game in games], dtype=bool
        ),
    )


def _in_order(
    names: Sequence[str], *, match: Ints, bot: Ints, score: Ints, rank: Ints, forfeited: Flags
) -> Results:
    """Games of the same ruleset, in any order, with all that stands for itself put into one.

    `names` are the bots' by the numbers of `bot`, and maybe of others; matches have any numbers that
    ascend as they should.
    """
    present = sorted(np.unique(bot[bot != NOBODY]).tolist(), key=names.__getitem__)
    numbers = np.full(len(names) + 1, NOBODY)  # NOBODY takes the last place
    numbers[present] = np.arange(len(present))
    bot = numbers[bot]
    order = np.lexsort((*bot.T[::-1], match))  # sums are then rounded alike
    return Results(
        bots=tuple(names[each] for each in present),
        match=np.cumsum(np.diff(match[order], prepend=match[order[:1]]) != 0),
        seats=(bot[order] != NOBODY).sum(axis=1),
        bot=bot[order],
        score=score[order],
        rank=rank[order],
        forfeited=forfeited[order],
    )


def _padded(rows: Iterable[Iterable[int]], empty: int) -> Ints:
    filled = [[*row, *[empty] * MOST_SEATS][:MOST_SEATS] for row in rows]
    return np.array(filled, dtype=np.int64)
