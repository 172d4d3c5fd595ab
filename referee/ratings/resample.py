"""How sure a figure is: reckoned again and again from matches drawn anew, with replacement.

Matches are drawn, never games: the games of a match share a deal. Of many thousands, groups are drawn that
are put together by lot; to know a deviation from two thousand of them is as good.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan

import numpy as np
from scipy import sparse
from scipy.special import ndtri, stdtr, stdtrit

from referee.ratings.estimate import CONFIDENCE, Estimate
from referee.ratings.results import Floats, Ints
from referee.ratings.sums import Matrix

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
    def of(cls, matches: int) -> Resampling:
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

    def around(self, values: Floats, drawn: Floats) -> list[Estimate]:
        """Intervals of means: (F,) values, with as much on either side."""
        margins = self.deviation(drawn) * self._quantiles()
        return _estimates(values, values - margins, values + margins)

    def skewed(self, values: Floats, drawn: Floats) -> list[Estimate]:
        """Intervals of (F,) values whose drawings may go farther to one side: by percentiles."""
        tails = (1 - CONFIDENCE) / 2
        low, high = np.quantile(drawn, [tails, 1 - tails], axis=0)
        wider = self._quantiles() / ndtri(1 - tails) * self._shrunk()
        return _estimates(values, values - (values - low) * wider, values + (high - values) * wider)

    def shares(self, values: Floats, drawn: Floats, counts: Floats) -> list[Estimate]:
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
