"""What each match adds to each bot's account and to each pair's.

The match is the unit of everything that is said of certainty: its games share a deal, so they are
not independent of each other; matches are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import sparse

from referee.ratings.results import MOST_SEATS, NOBODY, Flags, Floats, Ints, Results

_SPARSE = 8
"""Values of which one in so many occurs are quicker counted than sorted."""

Matrix = sparse.csr_array[np.float64, tuple[int, int]]


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums by match: M matches, n bots, P pairs of bots that have met."""

    games: Floats
    """(M, n) games of each bot."""
    points: Floats
    """(M, n)"""
    wins: Floats
    """(M, n) games of rank 1, shared ones included, forfeited ones not."""
    pairs: Ints
    """(P, 2) two bots, the lower index first."""
    meetings: Matrix
    """(M, P) games in which both sat at the table."""
    lead: Matrix
    """(M, P) points of the first less those of the second."""
    compared: Matrix
    """(M, P) meetings, each by its weight: 2 / seats.

    A game of k seats has k (k - 1) / 2 pairs but orders only k bots: k - 1 comparisons' worth.
    """
    better: Matrix
    """(M, P) of `compared`: what the first has won, ties by half."""


def sums(results: Results) -> Sums:
    """Add the games of each match up."""
    matches, bots = results.matches, len(results.bots)
    seated = results.bot != NOBODY
    match = np.broadcast_to(results.match[:, None], seated.shape)[seated]
    bot = results.bot[seated]

    def by_bot(values: Floats | Ints | Flags) -> Floats:
        added: Floats = np.bincount(match * bots + bot, values, matches * bots).astype(np.float64)
        return added.reshape(matches, bots)

    won = (results.rank == 1) & ~results.forfeited
    met = _Pairs(results)
    return Sums(
        games=by_bot(np.ones(len(bot))),
        points=by_bot(results.score[seated]),
        wins=by_bot(won[seated]),
        pairs=met.pairs,
        meetings=met.added(np.ones(len(met.match))),
        lead=met.added(met.lead),
        compared=met.added(met.weight),
        better=met.added(met.weight * met.better),
    )


class _Pairs:
    """The pairs that met, an entry for each of a game."""

    def __init__(self, results: Results) -> None:
        entries = [np.concatenate(each) for each in zip(*_met(results), strict=True)]
        self.match, first, second, self.lead, self.better, self.weight = entries
        swap = first > second
        first, second = np.where(swap, second, first), np.where(swap, first, second)
        self.lead = np.where(swap, -self.lead, self.lead)
        self.better = np.where(swap, 1 - self.better, self.better)
        bots = len(results.bots)
        codes, pair = _numbered(first * bots + second, bots**2)
        self.pairs = np.stack(np.divmod(codes, max(1, bots)), axis=1)
        self._shape = results.matches, len(codes)
        places, self._place = _numbered(
            self.match * len(codes) + pair, self._shape[0] * self._shape[1]
        )
        self._rows, self._columns = np.divmod(places, max(1, len(codes)))

    def added(self, values: Floats | Ints) -> Matrix:
        """Values of the entries, added up by match and pair."""
        added: Floats = np.bincount(self._place, values, len(self._rows)).astype(np.float64)
        return sparse.csr_array((added, (self._rows, self._columns)), shape=self._shape)


def _met(results: Results) -> Iterator[tuple[Ints, Ints, Ints, Ints, Floats, Floats]]:
    """Match, first, second, lead of the first, what it has won and weight, two seats at a time."""
    for one, other in combinations(range(MOST_SEATS), 2):
        at = results.bot[:, other] != NOBODY
        rank_one, rank_other = results.rank[at, one], results.rank[at, other]
        yield (
            results.match[at],
            results.bot[at, one],
            results.bot[at, other],
            results.score[at, one] - results.score[at, other],
            (1 + np.sign(rank_other - rank_one)) / 2,
            2 / results.seats[at],
        )


def _numbered(values: Ints, limit: int) -> tuple[Ints, Ints]:
    """The different ones of values below a limit, ascending, and the number of each value among them."""
    if limit > _SPARSE * len(values):
        return np.unique(values, return_inverse=True)
    present = np.bincount(values, minlength=limit) > 0
    return np.flatnonzero(present), (np.cumsum(present) - 1)[values]
