"""Sum up results by match, and compute intervals for figures by resampling the matches.

The match is the unit of all statements about certainty. The games of a match share a deal, so they are not
independent; matches are. A resample draws as many matches as there are, with replacement. If there are many
thousands, it draws random groups of matches instead: two thousand groups show a deviation just as well.
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
    """A figure and the interval that covers its true value with the probability CONFIDENCE."""

    value: float
    low: float | None
    """None, as `high`, if there are too few data for an interval."""
    high: float | None

    def negate(self) -> Estimate:
        """Return the estimate of the negative figure."""
        if self.low is None or self.high is None:
            return Estimate(0.0 - self.value, None, None)
        return Estimate(0.0 - self.value, 0.0 - self.high, 0.0 - self.low)

    def clip(self, least: float, most: float) -> Estimate:
        """Return the estimate with the interval cut to the possible range of the figure."""
        if self.low is None or self.high is None:
            return self
        return Estimate(self.value, max(least, self.low), min(most, self.high))


_SPARSE = 8
"""If at least one in 8 possible values occurs, counting is faster than sorting."""

Matrix = sparse.csr_array[np.float64, tuple[int, int]]


@dataclass(frozen=True, slots=True, eq=False)
class MatchSums:
    """Sums by match, for M matches, n bots and P pairs of bots that met."""

    games: Floats
    """(M, n) number of games of each bot."""
    points: Floats
    """(M, n) points by the rules."""
    wins: Floats
    """(M, n) games of rank 1, with shared ranks, without forfeits."""
    pairs: Ints
    """(P, 2) the bots of each pair, the lower index first."""
    meetings: Matrix
    """(M, P) number of games with both bots."""
    lead: Matrix
    """(M, P) points of the first bot minus those of the second."""
    compared: Matrix
    """(M, P) meetings, each with the weight 2 / seats.

    A game of k seats has k (k - 1) / 2 pairs but only orders k bots, which is worth k - 1 comparisons.
    """
    better: Matrix
    """(M, P) the part of `compared` in which the first bot ranked higher; a tie is one half."""


def sum_matches(results: ResultColumns) -> MatchSums:
    """Return the sums over the games of each match."""
    matches, bots = results.matches, len(results.bots)
    seated = results.bot != NOBODY
    match = np.broadcast_to(results.match[:, None], seated.shape)[seated]
    bot = results.bot[seated]

    def by_bot(values: Floats | Ints | Flags) -> Floats:
        added: Floats = np.bincount(match * bots + bot, values, matches * bots).astype(np.float64)
        return added.reshape(matches, bots)

    won = (results.rank == 1) & ~results.forfeited
    pairs = _Pairs(results)
    return MatchSums(
        games=by_bot(np.ones(len(bot))),
        points=by_bot(results.score[seated]),
        wins=by_bot(won[seated]),
        pairs=pairs.pairs,
        meetings=pairs.sum_entries(np.ones(len(pairs.match))),
        lead=pairs.sum_entries(pairs.lead),
        compared=pairs.sum_entries(pairs.weight),
        better=pairs.sum_entries(pairs.weight * pairs.better),
    )


class _Pairs:
    """All meetings of two bots: one entry for each pair of seats of each game."""

    def __init__(self, results: ResultColumns) -> None:
        entries = [np.concatenate(each) for each in zip(*_list_meetings(results), strict=True)]
        self.match, first, second, self.lead, self.better, self.weight = entries
        swap = first > second
        first, second = np.where(swap, second, first), np.where(swap, first, second)
        self.lead = np.where(swap, -self.lead, self.lead)
        self.better = np.where(swap, 1 - self.better, self.better)
        bots = len(results.bots)
        codes, pair = _number_values(first * bots + second, bots**2)
        self.pairs = np.stack(np.divmod(codes, max(1, bots)), axis=1)
        self._shape = results.matches, len(codes)
        places, self._place = _number_values(
            self.match * len(codes) + pair, self._shape[0] * self._shape[1]
        )
        self._rows, self._columns = np.divmod(places, max(1, len(codes)))

    def sum_entries(self, values: Floats | Ints) -> Matrix:
        """Return the sums of the entries' values by match and pair."""
        added: Floats = np.bincount(self._place, values, len(self._rows)).astype(np.float64)
        return sparse.csr_array((added, (self._rows, self._columns)), shape=self._shape)


def _list_meetings(
    results: ResultColumns,
) -> Iterator[tuple[Ints, Ints, Ints, Ints, Floats, Floats]]:
    """Yield arrays of the entries of two seats.

    They are match, first bot, second bot, lead of the first in points, its wins (1, 0.5 or 0) and weight.
    """
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


def _number_values(values: Ints, limit: int) -> tuple[Ints, Ints]:
    """Return the distinct values, ascending, and `values` as indexes of them. All are below `limit`."""
    if limit > _SPARSE * len(values):
        return np.unique(values, return_inverse=True)
    present = np.bincount(values, minlength=limit) > 0
    return np.flatnonzero(present), (np.cumsum(present) - 1)[values]


_GROUPS = 2_000
"""Number of groups, used if there are more than twice as many matches."""
_DRAWS = 2_000_000
"""Upper limit of the number of resamples times the number of groups."""
_MAX_RESAMPLES = 2_000
_SEED = 20_050_101
"""Fixed, so that the same results always give the same intervals."""


@dataclass(frozen=True, slots=True, eq=False)
class Resampling:
    """B resamples of M matches in G groups. Each resample draws G groups with replacement."""

    group: Ints
    """(M,) the group of each match."""
    counts: Floats
    """(G, B) how often each group is in each resample."""

    @classmethod
    def from_matches(cls, matches: int) -> Resampling:
        """Return the resamples, which depend only on the number of matches."""
        rng = np.random.default_rng(_SEED)
        group = np.arange(matches)
        if matches > 2 * _GROUPS:
            group = rng.permutation(matches) % _GROUPS
        groups = int(group.max(initial=-1)) + 1
        counts = np.empty((groups, min(_MAX_RESAMPLES, _DRAWS // max(1, groups))))
        for column in counts.T:  # a view, filled in place
            drawn = rng.integers(groups, size=groups, dtype=np.int32)
            column[:] = np.bincount(drawn, minlength=groups)
        return cls(group, counts)

    @property
    def draws(self) -> int:
        """The number B of resamples."""
        return int(self.counts.shape[1])

    def sums(self, values: Floats | Matrix, resamples: slice = slice(None)) -> Floats:
        """Return the (B, F) sums of (M, F) values of the matches, for all or some of the resamples."""
        grouped = values if len(self.group) == len(self.counts) else self._members @ values
        return np.asarray((grouped.T @ self.counts[:, resamples]).T)

    def means(self, values: Floats) -> Floats:
        """Return the (B, F) means of (M, F) values of the matches."""
        return self.sums(values) / self.sums(np.ones((len(values), 1)))

    @property
    def _members(self) -> Matrix:
        """(G, M) 1 where a match belongs to a group."""
        matches = len(self.group)
        shape = len(self.counts), matches
        return sparse.csr_array((np.ones(matches), (self.group, np.arange(matches))), shape=shape)


@dataclass(frozen=True, slots=True, eq=False)
class Certainty:
    """Compute intervals of F figures, from their values in all resamples."""

    matches: Floats
    """(F,) number of matches that contribute to each figure."""

    @property
    def freedom(self) -> Floats:
        """(F,) the degrees of freedom."""
        return self.matches - 1

    def deviation(self, drawn: Floats) -> Floats:
        """Return the (F,) standard errors from (B, F) resampled figures; NaN without a degree of freedom."""
        there = np.isfinite(drawn)
        count = there.sum(axis=0)
        mean = np.where(there, drawn, 0).sum(axis=0) / np.maximum(count, 1)
        squares = np.where(there, (drawn - mean) ** 2, 0).sum(axis=0)
        variance = np.where(count > 1, squares / np.maximum(count - 1, 1), np.nan)
        deviation: Floats = np.sqrt(variance) * self._enlarge()
        return deviation

    def mean_intervals(self, values: Floats, drawn: Floats) -> list[Estimate]:
        """Return intervals of (F,) means, with equal margins on both sides."""
        margins = self.deviation(drawn) * self._quantiles()
        return _make_estimates(values, values - margins, values + margins)

    def percentile_intervals(self, values: Floats, drawn: Floats) -> list[Estimate]:
        """Return intervals of (F,) values with a skewed distribution, by percentiles."""
        tails = (1 - CONFIDENCE) / 2
        low, high = np.quantile(drawn, [tails, 1 - tails], axis=0)
        wider = self._quantiles() / ndtri(1 - tails) * self._enlarge()
        return _make_estimates(
            values, values - (values - low) * wider, values + (high - values) * wider
        )

    def share_intervals(self, values: Floats, drawn: Floats, counts: Floats) -> list[Estimate]:
        """Return Wilson intervals of (F,) shares of `counts` games; they know that 0 of 5 is not "never".

        Wilson's formula assumes independent games, which these are not. So `counts` is replaced by the number
        of independent games that would give the deviation of the resamples.
        """
        spread = values * (1 - values)
        deviation = self.deviation(drawn)
        usable = (spread > 0) & (deviation > 0)
        least = np.where(np.isfinite(deviation), counts, self.matches)
        worth = np.where(usable, spread / np.where(usable, deviation, 1) ** 2, least)
        extra = self._quantiles() ** 2 / worth
        middle = (values + extra / 2) / (1 + extra)
        margins = np.sqrt(spread * extra + extra**2 / 4) / (1 + extra)
        return _make_estimates(values, middle - margins, middle + margins)

    def chance(self, lead: float, drawn: Floats) -> float | None:
        """Return the probability that a lead, the only figure, is above 0; None without data."""
        [freedom], [deviation] = self.freedom, self.deviation(drawn)
        return float(stdtr(freedom, lead / deviation)) if freedom > 0 else None

    def _quantiles(self) -> Floats:
        """(F,) quantiles of Student's t, because the deviations are estimates too; NaN without data."""
        quantiles = stdtrit(np.maximum(self.freedom, 1), (1 + CONFIDENCE) / 2)
        return np.where(self.freedom > 0, quantiles, np.nan)

    def _enlarge(self) -> Floats:
        """(F,) factors that compensate for a resample of n of n matches, which makes deviations too small."""
        known = self.freedom > 0
        return np.sqrt(self.matches / np.where(known, self.freedom, np.nan))


def _make_estimates(values: Floats, lows: Floats, highs: Floats) -> list[Estimate]:
    rows = np.stack([values, lows, highs], axis=1).tolist()
    return [
        Estimate(value, None, None) if isnan(low) else Estimate(value, low, high)
        for value, low, high in rows
    ]
