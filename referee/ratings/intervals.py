"""Sum up results by match, and compute intervals for figures by resampling the matches.

Matches are independent of each other. The games of one match may not be independent, because they usually share a
deal. A resample of M matches draws M of them, with replacement. If M is above 4,000, the matches are divided into
2,000 random groups, and a resample draws 2,000 groups instead of M matches. Drawing groups is faster, and the
standard errors are as good.

In the shapes of arrays, M is the number of matches, n of bots, P of pairs of bots that met, B of resamples, G of
groups, and F of figures, such as one for each bot or each pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import isnan, sqrt

import numpy as np
from scipy import sparse
from scipy.special import ndtri, stdtr, stdtrit

from referee.ratings.computed_once import ComputedOnce
from referee.result_columns import NOBODY, Flags, Floats, Ints, ResultColumns

CONFIDENCE = 0.95
"""Probability that an interval covers the true value."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and the interval that covers its true value with the probability CONFIDENCE."""

    value: float
    low: float | None
    """The lower end of the interval; None if no games limit the figure from below, or if there are too few matches."""
    high: float | None
    """The upper end of the interval; None if no games limit the figure from above, or if there are too few matches."""

    def negate(self) -> Estimate:
        """Return the estimate of the figure with the opposite sign."""
        low = None if self.high is None else 0.0 - self.high
        high = None if self.low is None else 0.0 - self.low
        return Estimate(0.0 - self.value, low, high)

    def clip(self, least: float, most: float) -> Estimate:
        """Return the estimate with the interval cut to the range from `least` to `most`."""
        low = None if self.low is None else max(least, self.low)
        high = None if self.high is None else min(most, self.high)
        return Estimate(self.value, low, high)


_NEGLIGIBLE = 1e-9
"""If the variance of a share is below this fraction of the variance that independent games would give, it counts as 0,
because it comes only from rounding."""
_SPARSE = 8
"""If `limit` is more than this many times the number of values, `_number_values` sorts the values. Otherwise it counts them
in an array of `limit` items."""

Matrix = sparse.csr_array[np.float64, tuple[int, int]]


@dataclass(frozen=True, slots=True, eq=False)
class MatchSums:
    """Sums over the games of each match."""

    games: Floats
    """(M, n) number of games that each bot played."""
    points: Floats
    """(M, n) sum of the points of each bot."""
    wins: Floats
    """(M, n) number of games in which the bot had rank 1, alone or shared, and did not forfeit."""
    pairs: Ints
    """(P, 2) the bots of each pair, the lower index first."""
    meetings: Matrix
    """(M, P) number of games with both bots."""
    lead: Matrix
    """(M, P) points of the first bot in the games with both bots, minus those of the second."""
    compared: Matrix
    """(M, P) sum of the weights of the meetings. A meeting at a table of k seats has the weight 2 / k.

    A game of k seats has k (k - 1) / 2 meetings, but its ranking tells only as much as k - 1 comparisons. With the
    weight 2 / k the meetings of a game add up to k - 1.
    """
    better: Matrix
    """(M, P) sum of the weights of the meetings in which the first bot ranked higher; a tie counts one half."""
    decided: Matrix
    """(M, P) sum of the weights of the decided meetings: those in which neither bot forfeited and one ranked higher."""
    won: Matrix
    """(M, P) sum of the weights of the decided meetings in which the first bot ranked higher."""
    pair_decided: Ints
    """(P,) number of decided meetings."""
    pair_wins: Ints
    """(P,) number of meetings in which the first bot ranked higher."""
    pair_draws: Ints
    """(P,) number of meetings in which both bots had the same rank."""

    def count_above_and_below(self, among: Flags) -> tuple[Ints, Ints]:
        """Return in how many matches each bot ranked above another bot, and in how many it ranked below another bot.

        A tie counts as above and as below. Both arrays have the shape (n,).

        Args:
            among: (n,) the bots to count. Meetings with other bots are left out.
        """
        inside = np.flatnonzero(among[self.pairs].all(axis=1))
        better, worse = self.better[:, inside], (self.compared - self.better)[:, inside]
        above, below = (better > 0).astype(np.float64), (worse > 0).astype(np.float64)
        first, second = (incidence(bot, len(among)).T for bot in self.pairs[inside].T)
        won, lost = above @ first + below @ second, below @ first + above @ second
        return (won > 0).sum(axis=0), (lost > 0).sum(axis=0)


def sum_matches(results: ResultColumns) -> MatchSums:
    """Return the sums for `results`, which must be the games of one ruleset from `ResultColumns.by_ruleset`."""
    matches, bots = results.matches, len(results.bots)
    seated = results.bot != NOBODY
    match = np.broadcast_to(results.match[:, None], seated.shape)[seated]
    bot = results.bot[seated]

    def by_bot(values: Floats | Ints | Flags) -> Floats:
        added: Floats = np.bincount(match * bots + bot, values, matches * bots).astype(np.float64)
        return added.reshape(matches, bots)

    won = (results.rank == 1) & ~results.forfeited
    pairs = _Pairs(results)
    tied = pairs.better == 0.5  # noqa: PLR2004 - how `better` writes a tie
    decided = ~tied & ~pairs.forfeited
    return MatchSums(
        games=by_bot(np.ones(len(bot))),
        points=by_bot(results.points[seated]),
        wins=by_bot(won[seated]),
        pairs=pairs.pairs,
        meetings=pairs.sum_entries(np.ones(len(pairs.match))),
        lead=pairs.sum_entries(pairs.lead),
        compared=pairs.sum_entries(pairs.weight),
        better=pairs.sum_entries(pairs.weight * pairs.better),
        decided=pairs.sum_entries(pairs.weight * decided),
        won=pairs.sum_entries(pairs.weight * (decided & (pairs.better == 1))),
        pair_decided=pairs.count(decided),
        pair_wins=pairs.count(pairs.better == 1),
        pair_draws=pairs.count(tied),
    )


def sum_over_matches(sums: Matrix) -> Floats:
    """Return the (P,) sums over all matches of an (M, P) matrix."""
    return np.asarray(sums.sum(axis=0)).reshape(-1)


def quotient(part: Floats, whole: Floats) -> Floats:
    """Return `part` divided by `whole`, and NaN where `whole` is 0."""
    return part / np.where(whole > 0, whole, np.nan)


def incidence(group: Ints, groups: int) -> Matrix:
    """Return the matrix that has a row for each group and a column for each item: 1 where the item belongs to the group, else 0.

    Args:
        group: the group of each item, a number below `groups`.
        groups: the number of groups.
    """
    items = len(group)
    return sparse.csr_array((np.ones(items), (group, np.arange(items))), shape=(groups, items))


class _Pairs:
    """All meetings of two bots: one entry for each pair of seats of each game."""

    def __init__(self, results: ResultColumns) -> None:
        entries = [np.concatenate(each) for each in zip(*_list_meetings(results), strict=True)]
        self.match, first, second, self.lead, self.better, self.weight, self.forfeited = entries
        swap = first > second
        first, second = np.where(swap, second, first), np.where(swap, first, second)
        self.lead = np.where(swap, -self.lead, self.lead)
        self.better = np.where(swap, 1 - self.better, self.better)
        bots = len(results.bots)
        codes, pair = _number_values(first * bots + second, bots**2)
        self.pairs = np.stack(np.divmod(codes, max(1, bots)), axis=1)
        self._pair = pair
        self._shape = results.matches, len(codes)
        places, self._place = _number_values(
            self.match * len(codes) + pair, self._shape[0] * self._shape[1]
        )
        self._rows, self._columns = np.divmod(places, max(1, len(codes)))

    def count(self, entries: Flags) -> Ints:
        """Return the (P,) number of the selected entries of each pair."""
        return np.bincount(self._pair[entries], minlength=len(self.pairs))

    def sum_entries(self, values: Floats | Ints) -> Matrix:
        """Return the (M, P) sums of `values`, which has one value for each entry."""
        added: Floats = np.bincount(self._place, values, len(self._rows)).astype(np.float64)
        return sparse.csr_array((added, (self._rows, self._columns)), shape=self._shape)


def _list_meetings(
    results: ResultColumns,
) -> Iterator[tuple[Ints, Ints, Ints, Ints, Floats, Floats, Flags]]:
    """Yield for each pair of seats seven arrays, with one item for each game that has both seats.

    The arrays are: the match; the bot on the first seat; the bot on the second seat; the points of the first bot
    minus those of the second; 1 if the first bot ranked higher, 0.5 for a tie, else 0; the weight 2 / k; whether one of
    the two bots forfeited.
    """
    seats, points = results.seats, results.points
    for one, other in combinations(range(results.bot.shape[1]), 2):
        at = results.bot[:, other] != NOBODY
        rank_one, rank_other = results.rank[at, one], results.rank[at, other]
        yield (
            results.match[at],
            results.bot[at, one],
            results.bot[at, other],
            points[at, one] - points[at, other],
            (1 + np.sign(rank_other - rank_one)) / 2,
            2 / seats[at],
            results.forfeited[at, one] | results.forfeited[at, other],
        )


def _number_values(values: Ints, limit: int) -> tuple[Ints, Ints]:
    """Return the distinct values, ascending, and for each value its index among them.

    All values must be at least 0 and below `limit`.
    """
    if limit > _SPARSE * len(values):
        return np.unique(values, return_inverse=True)
    present = np.bincount(values, minlength=limit) > 0
    return np.flatnonzero(present), (np.cumsum(present) - 1)[values]


_GROUPS = 2_000
"""Number of groups if there are more than 4,000 matches. Else each match is a group of its own."""
_DRAWS = 2_000_000
"""The number of resamples, multiplied by the number of groups, is at most this."""
_MAX_RESAMPLES = 2_000
_SEED = 20_050_101
"""Fixed, so that the same results always give the same intervals."""


@dataclass(frozen=True, eq=False)
class Resampling:
    """B resamples of M matches in G groups.

    Each resample of `from_matches` draws G groups, with replacement. Each resample of `flip_signs` contains every group once.
    """

    group: Ints
    """(M,) the group of each match."""
    counts: Floats
    """(G, B) how often each group is in each resample. In resamples of `flip_signs`, the sign of the group: 1 or -1."""

    @classmethod
    def from_matches(cls, matches: int) -> Resampling:
        """Return the resamples of M = `matches` matches. They depend only on `matches`."""
        rng = np.random.default_rng(_SEED)
        group, groups = _group(matches, rng)
        counts = np.empty((groups, min(_MAX_RESAMPLES, _DRAWS // max(1, groups))))
        for column in counts.T:  # a view, filled in place
            drawn = rng.integers(groups, size=groups, dtype=np.int32)
            column[:] = np.bincount(drawn, minlength=groups)
        return cls(group, counts)

    @classmethod
    def flip_signs(cls, matches: int, flips: int) -> Resampling:
        """Return B = `flips` resamples in which every group has a random sign.

        For each group, `sums` adds the values of its matches, or subtracts them, as the sign says.
        """
        rng = np.random.default_rng(_SEED)
        group, groups = _group(matches, rng)
        return cls(group, rng.choice([-1.0, 1.0], size=(groups, flips)))

    @property
    def draws(self) -> int:
        """The number B of resamples."""
        return int(self.counts.shape[1])

    def sums(self, values: Floats | Matrix, resamples: slice = slice(None)) -> Floats:
        """Return the (B, F) sums of (M, F) values over the matches of each resample.

        If `resamples` selects only some of the resamples, B is the number of selected ones.
        """
        grouped = values if len(self.group) == len(self.counts) else self._members @ values
        return np.asarray((grouped.T @ self.counts[:, resamples]).T)

    def means(self, values: Floats) -> Floats:
        """Return the (B, F) means of (M, F) values over the matches of each resample."""
        return self.sums(values) / self.sums(np.ones((len(values), 1)))

    @ComputedOnce
    def _members(self) -> Matrix:
        """(G, M) 1 where the match belongs to the group, else 0."""
        return incidence(self.group, len(self.counts))


def _group(matches: int, rng: np.random.Generator) -> tuple[Ints, int]:
    """Return the (M,) random group of each match, and the number of groups."""
    group = np.arange(matches)
    if matches > 2 * _GROUPS:
        group = rng.permutation(matches) % _GROUPS
    return group, int(group.max(initial=-1)) + 1


@dataclass(frozen=True, slots=True, eq=False)
class Certainty:
    """Compute intervals of F figures. A figure from one match or less gets no interval.

    In all methods, `drawn` is (B, F) the value of each figure in each resample. All methods except
    `percentile_intervals` use only the spread of `drawn`. For these methods, all items of `drawn` for one figure may be
    shifted by the same constant.
    """

    matches: Floats
    """(F,) number of matches from which each figure comes."""

    @property
    def freedom(self) -> Floats:
        """(F,) the degrees of freedom of each figure: its matches minus 1."""
        return self.matches - 1

    def deviation(self, drawn: Floats) -> Floats:
        """Return the (F,) standard errors of the figures.

        A standard error is NaN if the figure comes from one match or less, or if fewer than two resamples have a
        value for it.
        """
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

    def percentile_intervals(
        self, values: Floats, drawn: Floats, least: Floats | float = 0.0
    ) -> list[Estimate]:
        """Return intervals of (F,) values with a skewed distribution, from the percentiles of `drawn`.

        `least` is the least variance of each figure: (F,), or one number for all figures. Each end is at least as far from
        the value as the end of the symmetric interval for this variance.
        """
        tails = (1 - CONFIDENCE) / 2
        low, high = np.quantile(drawn, [tails, 1 - tails], axis=0)
        wider = self._quantiles() / ndtri(1 - tails) * self._enlarge()
        margin = self._quantiles() * np.sqrt(least)
        lows = np.minimum(values - (values - low) * wider, values - margin)
        highs = np.maximum(values + (high - values) * wider, values + margin)
        return _make_estimates(values, lows, highs)

    def share_intervals(self, values: Floats, drawn: Floats, counts: Floats) -> list[Estimate]:
        """Return Wilson's intervals of (F,) shares. A share of 0 or 1 has an interval too.

        Wilson's formula assumes independent games, but the games of one match may depend on each other. Therefore the formula
        does not get the number of games that were played. It gets the number of independent games that would have the
        standard error of the resamples.

        Args:
            values: the shares.
            drawn: see `Certainty`.
            counts: (F,) the number of games of each share. The formula gets this number if the share is 0 or 1, or the
                same in each match. The standard error is then 0, apart from rounding errors. If the standard error is
                NaN, the formula gets the number of matches.
        """
        spread = values * (1 - values)
        variance = self.deviation(drawn) ** 2
        usable = (spread > 0) & (variance > _NEGLIGIBLE * spread / counts)
        least = np.where(np.isfinite(variance), counts, self.matches)
        worth = np.where(usable, spread / np.where(usable, variance, 1), least)
        return wilson_intervals(values, worth, self._quantiles())

    def chance(self, lead: float, drawn: Floats, further: float = 0.0) -> float | None:
        """Return the probability that the true value of the only figure (F = 1) is above 0.

        Return None if the figure comes from one match or less.

        Args:
            lead: the figure.
            drawn: (B, 1) the figure in the resamples.
            further: a variance of the figure that the resamples do not show; it is added to theirs.
        """
        [freedom], [deviation] = self.freedom, np.hypot(self.deviation(drawn), sqrt(further))
        return float(stdtr(freedom, lead / deviation)) if freedom > 0 else None

    def _quantiles(self) -> Floats:
        """Return the (F,) quantiles of Student's t for CONFIDENCE; NaN for one match or less."""
        quantiles = stdtrit(np.maximum(self.freedom, 1), (1 + CONFIDENCE) / 2)
        return np.where(self.freedom > 0, quantiles, np.nan)

    def _enlarge(self) -> Floats:
        """Return the (F,) factors by which the spread of resamples is too small.

        The factor is sqrt(m / (m - 1)) for a figure from m matches, and NaN if m is below 2.
        """
        return np.sqrt(quotient(self.matches, self.freedom))


def wilson_intervals(shares: Floats, games: Floats, quantiles: Floats) -> list[Estimate]:
    """Return Wilson's interval of each share.

    Args:
        shares: (F,) the shares.
        games: (F,) the number of independent games that would give each share its uncertainty. The numbers need not be
            whole.
        quantiles: (F,) the half width of each interval in standard errors; NaN for no interval.
    """
    extra = quantiles**2 / games
    middle = (shares + extra / 2) / (1 + extra)
    margins = np.sqrt(shares * (1 - shares) * extra + extra**2 / 4) / (1 + extra)
    return _make_estimates(shares, middle - margins, middle + margins)


def _make_estimates(values: Floats, lows: Floats, highs: Floats) -> list[Estimate]:
    """Return an estimate for each value, without an interval where `lows` is NaN."""
    rows = np.stack([values, lows, highs], axis=1).tolist()
    return [
        Estimate(value, None, None) if isnan(low) else Estimate(value, low, high)
        for value, low, high in rows
    ]
