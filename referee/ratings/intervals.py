"""A figure, and how sure it is.

What each match adds to each bot's account and to each pair's.

The match is the unit of everything that is said of certainty: its games share a deal, so they are
not independent of each other; matches are.

How sure a figure is: reckoned again and again from matches drawn anew, with replacement.

Matches are drawn, never games: the games of a match share a deal. Of many thousands, groups are drawn that
are put together by lot; to know a deviation from two thousand of them is as good.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import isnan

import numpy as np
from scipy import sparse
from scipy.special import ndtri, stdtr, stdtrit

from referee.result_columns import NOBODY, Flags, Floats, Ints, ResultColumns

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and the interval that covers the truth with the chance CONFIDENCE."""

    value: float
    low: float | None
    """None, and so is `high`: too little is known for an interval."""
    high: float | None

    def negate(self) -> Estimate:
        """The same of the figure with the other sign."""
        if self.low is None or self.high is None:
            return Estimate(0.0 - self.value, None, None)
        return Estimate(0.0 - self.value, 0.0 - self.high, 0.0 - self.low)

    def clip(self, least: float, most: float) -> Estimate:
        """The same of a figure that cannot lie elsewhere."""
        if self.low is None or self.high is None:
            return self
        return Estimate(self.value, max(least, self.low), min(most, self.high))


_SPARSE = 8
"""Values of which one in so many occurs are quicker counted than sorted."""

Matrix = sparse.csr_array[np.float64, tuple[int, int]]


@dataclass(frozen=True, slots=True, eq=False)
class MatchSums:
    """MatchSums by match: M matches, n bots, P pairs of bots that have met."""

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


def sum_matches(results: ResultColumns) -> MatchSums:
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
    return MatchSums(
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

    def __init__(self, results: ResultColumns) -> None:
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


def _met(results: ResultColumns) -> Iterator[tuple[Ints, Ints, Ints, Ints, Floats, Floats]]:
    """Match, first, second, lead of the first, what it has won and weight, two seats at a time."""
    seats = results.seats
    for one, other in combinations(range(results.bot.shape[1]), 2):
        at = results.bot[:, other] != NOBODY
        rank_one, rank_other = results.rank[at, one], results.rank[at, other]
        yield (
            results.match[at],
            results.bot[at, one],
            results.bot[at, other],
            results.score[at, one] - results.score[at, other],
            (1 + np.sign(rank_other - rank_one)) / 2,
            2 / seats[at],
        )


def _numbered(values: Ints, limit: int) -> tuple[Ints, Ints]:
    """The different ones of values below a limit, ascending, and the number of each value among them."""
    if limit > _SPARSE * len(values):
        return np.unique(values, return_inverse=True)
    present = np.bincount(values, minlength=limit) > 0
    return np.flatnonzero(present), (np.cumsum(present) - 1)[values]


_GROUPS = 2_000
"""More matches than twice that are drawn in so many groups."""
_DRAWS = 2_000_000
_MOST = 2_000
_SEED = 20_050_101
"""The same results give the same intervals, today and tomorrow."""


@dataclass(frozen=True, slots=True, eq=False)
class Resampling:
    """B drawings of M matches, each as many of G groups."""

    group: Ints
    """(M,) of each match."""
    counts: Floats
    """(G, B) how often each group was drawn."""

    @classmethod
    def from_matches(cls, matches: int) -> Resampling:
        """Draw: the same for the same number of matches."""
        rng = np.random.default_rng(_SEED)
        group = np.arange(matches)
        if matches > 2 * _GROUPS:
            group = rng.permutation(matches) % _GROUPS
        groups = int(group.max(initial=-1)) + 1
        counts = np.empty((groups, min(_MOST, _DRAWS // max(1, groups))))
        for drawing in counts.T:  # a column, filled in place
            drawn = rng.integers(groups, size=groups, dtype=np.int32)
            drawing[:] = np.bincount(drawn, minlength=groups)
        return cls(group, counts)

    @property
    def draws(self) -> int:
        """B."""
        return int(self.counts.shape[1])

    def sums(self, values: Floats | Matrix, drawings: slice = slice(None)) -> Floats:
        """(B, F) what each drawing, or each of some, adds up to of (M, F) values of the matches."""
        grouped = values if len(self.group) == len(self.counts) else self._members @ values
        return np.asarray((grouped.T @ self.counts[:, drawings]).T)

    def means(self, values: Floats) -> Floats:
        """(B, F) the mean of (M, F) values in each drawing."""
        return self.sums(values) / self.sums(np.ones((len(values), 1)))

    @property
    def _members(self) -> Matrix:
        """(G, M) 1 where a match is of the group."""
        matches = len(self.group)
        shape = len(self.counts), matches
        return sparse.csr_array((np.ones(matches), (self.group, np.arange(matches))), shape=shape)


@dataclass(frozen=True, slots=True, eq=False)
class Certainty:
    """How well F figures are known that are made of some of the matches."""

    matches: Floats
    """(F,) how many enter each."""

    @property
    def freedom(self) -> Floats:
        """(F,) degrees of freedom."""
        return self.matches - 1

    def deviation(self, drawn: Floats) -> Floats:
        """(F,) standard errors, of (B, F) drawn figures: NaN where there is no degree of freedom."""
        there = np.isfinite(drawn)
        count = there.sum(axis=0)
        mean = np.where(there, drawn, 0).sum(axis=0) / np.maximum(count, 1)
        squares = np.where(there, (drawn - mean) ** 2, 0).sum(axis=0)
        variance = np.where(count > 1, squares / np.maximum(count - 1, 1), np.nan)
        deviation: Floats = np.sqrt(variance) * self._shrunk()
        return deviation

    def mean_intervals(self, values: Floats, drawn: Floats) -> list[Estimate]:
        """Intervals of means: (F,) values, with as much on either side."""
        margins = self.deviation(drawn) * self._quantiles()
        return _estimates(values, values - margins, values + margins)

    def percentile_intervals(self, values: Floats, drawn: Floats) -> list[Estimate]:
        """Intervals of (F,) values whose drawings may go farther to one side: by percentiles."""
        tails = (1 - CONFIDENCE) / 2
        low, high = np.quantile(drawn, [tails, 1 - tails], axis=0)
        wider = self._quantiles() / ndtri(1 - tails) * self._shrunk()
        return _estimates(values, values - (values - low) * wider, values + (high - values) * wider)

    def share_intervals(self, values: Floats, drawn: Floats, counts: Floats) -> list[Estimate]:
        """Intervals of (F,) shares of so many: Wilson's, which know that 0 of 5 is not "never".

        What that takes for independent is not; the drawings tell how many independent ones would be
        worth as much.
        """
        spread = values * (1 - values)
        deviation = self.deviation(drawn)
        usable = (spread > 0) & (deviation > 0)
        least = np.where(np.isfinite(deviation), counts, self.matches)
        worth = np.where(usable, spread / np.where(usable, deviation, 1) ** 2, least)
        extra = self._quantiles() ** 2 / worth
        middle = (values + extra / 2) / (1 + extra)
        margins = np.sqrt(spread * extra + extra**2 / 4) / (1 + extra)
        return _estimates(values, middle - margins, middle + margins)

    def chance(self, lead: float, drawn: Floats) -> float | None:
        """How sure it is that a lead, the only figure here, is above 0; None: nothing is known."""
        [freedom], [deviation] = self.freedom, self.deviation(drawn)
        return float(stdtr(freedom, lead / deviation)) if freedom > 0 else None

    def _quantiles(self) -> Floats:
        """(F,) Student's t, since deviations are estimates too; NaN where nothing is known."""
        quantiles = stdtrit(np.maximum(self.freedom, 1), (1 + CONFIDENCE) / 2)
        return np.where(self.freedom > 0, quantiles, np.nan)

    def _shrunk(self) -> Floats:
        """(F,) drawing n of n matches shrinks deviations; this makes up for it."""
        known = self.freedom > 0
        return np.sqrt(self.matches / np.where(known, self.freedom, np.nan))


def _estimates(values: Floats, lows: Floats, highs: Floats) -> list[Estimate]:
    rows = np.stack([values, lows, highs], axis=1).tolist()
    return [
        Estimate(value, None, None) if isnan(low) else Estimate(value, low, high)
        for value, low, high in rows
    ]
