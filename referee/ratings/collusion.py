"""Estimate how the other bots at the table change a bot's points, and which bots seem to help each other.

Two bots of unlike styles can have unusual results together even if they do not collude. So a pair is a hint at collusion
only if its excess is an outlier among the excesses of all pairs, and is also large.

In the shapes of arrays, M is the number of matches, n of bots, N of ordered pairs of bots, and B of resamples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan

import numpy as np
from scipy import sparse
from scipy.special import stdtrit

from referee.ratings.intervals import (
    CONFIDENCE,
    Certainty,
    Estimate,
    MatchSums,
    Matrix,
    Resampling,
    sum_matches,
    sum_over_matches,
)
from referee.result_columns import NOBODY, Floats, Ints, ResultColumns

_CHUNK = 2_000_000
"""Approximate upper limit of the number of items in an array of resamples, to save memory. If an array for all pairs would be
larger, the pairs are resampled in parts."""
_LEAST = 1e-6
"""A sum of squares below this comes from rounding, and counts as 0."""
_PRACTICAL = 1.5
"""Only an excess above this can be a hint, because a smaller excess can come from styles. The unit is the standard deviation of a
bot's points in a game."""
_TAIL_FREEDOM = 8
"""Large effects of styles may be more frequent than in a normal distribution. So `CollusionFigures.limit` comes from Student's t
with at most this many degrees of freedom. This makes the limit higher, so that fewer hints are wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollusionFigures:
    """The points of a bot with and without another bot at its table."""

    bot: str
    other: str
    matches: int
    """Number of matches in which both bots played."""
    with_other: float
    """Mean points of `bot` per game in the matches with `other`."""
    without_other: float | None
    """Mean points of `bot` per game in its matches without `other`; None if it has none."""
    excess: Estimate
    """Points per game that `bot` gains in the matches with `other`, beyond what `OpponentEffects` predicts.

    `OpponentEffects` predicts points from the strength of a bot and from the effects of its opponents.
    """
    limit: float | None
    """The largest excess that unlike styles can explain, in points per game; None if there are too few other pairs to estimate it.

    It is at least 1.5 standard deviations of a bot's points in a game. If other pairs have large excesses, it is larger.
    """
    suspicious: bool
    """True if the excess is above `limit`, and surely above 1.5 standard deviations of a bot's points in a game.

    "Surely" refers to a one-sided test, whose error of 5 % is divided among all pairs. Suppose that no bots collude, and that
    the effects of styles are random with a standard deviation of 0.5 (in the same unit). Then one or more pairs are
    suspicious with a chance of at most 5 %. `tests/bench/bench_hints.py` measures this chance for these and other styles.
    """


class OpponentEffects:
    """Predict the mean points of a bot in a match by a linear model.

    The prediction is the strength of the bot plus the effects of its opponents. A bot has the same effect on
    every opponent. Strengths and effects are fitted to all matches by least squares.

    Args:
        games: (M, n) the number of games that each bot played in each match.
    """

    def __init__(self, games: Floats) -> None:
        self._games = games
        self.there = (games > 0).astype(np.float64)
        """(M, n) 1 where the bot played, else 0."""
        others = self.there.sum(axis=1, keepdims=True) - 1
        together = self.there.T @ self.there
        matches = np.diag(np.diag(together))
        apart = together - matches
        upon = self.there.T @ (others * self.there) - apart
        equations = np.block([[matches, apart], [apart, upon]])
        self.inverse = np.linalg.pinv(equations, rcond=1e-9, hermitian=True)
        """(2n, 2n) the covariance of strengths and effects, if residuals have the variance 1."""
        free = self.there.sum() - np.linalg.matrix_rank(equations, tol=1e-9, hermitian=True)
        self.enlargement = float(np.sqrt(self.there.sum() / free)) if free > 0 else np.nan
        """The factor by which `scaled_residuals` enlarges residuals, because least squares makes them too small.

        With too few data, the model explains every mean exactly. Then the factor is NaN.
        """

    def means(self, sums: Floats) -> Floats:
        """Return the (M, n) means per game from (M, n) sums per match; 0 where the bot did not play."""
        means: Floats = np.divide(sums, self._games, out=np.zeros_like(sums), where=self._games > 0)
        return means

    def residuals(self, means: Floats) -> Floats:
        """Return the (M, n) residuals of (M, n) means per game: the part that the model does not explain."""
        bots = means.shape[1]
        totals = means.sum(axis=1, keepdims=True)
        known = [means.sum(axis=0), (self.there * (totals - means)).sum(axis=0)]
        effects = self.inverse @ np.concatenate(known)
        own, upon = effects[:bots], effects[bots:]
        left: Floats = self.there * (means - own - (self.there @ upon)[:, None] + upon)
        return left

    def scaled_residuals(self, sums: Floats) -> Floats:
        """Return the (M, n) residuals of (M, n) sums per match, multiplied by `enlargement`.

        With too few data, all values are NaN.
        """
        unexplained: Floats = self._games * self.residuals(self.means(sums)) * self.enlargement
        return unexplained


def collusion_figures(results: ResultColumns) -> tuple[CollusionFigures, ...]:
    """Return the figures of the ordered pairs of bots that met.

    A pair is left out if its excess cannot be distinguished from the strengths and effects of the bots
    (`OpponentEffects`), for example because the two bots met in every match. With too few data for
    `OpponentEffects.scaled_residuals`, all pairs are left out. A large excess is a hint at collusion, not a
    proof, because two styles of play may simply suit each other.
    """
    sums = sum_matches(results)
    pairs = _PairEffects(sums, Resampling.from_matches(results.matches))
    if not len(pairs.bots):
        return ()
    practical = _PRACTICAL * _deviation_in_a_game(results)
    deviations, intervals = np.empty_like(pairs.excess), list[Estimate]()
    for part, drawn in pairs.draw():
        certainty = Certainty(pairs.matches[part])
        deviations[part] = certainty.deviation(drawn)
        intervals += certainty.mean_intervals(pairs.excess[part], drawn)
    lowest = pairs.excess - deviations * _quantiles(Certainty(pairs.matches).freedom)
    limits = np.maximum(pairs.style_limits(), practical)
    suspicious = (pairs.excess > limits) & (lowest > practical)
    columns = zip(
        pairs.bots.tolist(),
        pairs.matches.tolist(),
        *(each.tolist() for each in pairs.means(sums)),
        intervals,
        limits.tolist(),
        suspicious.tolist(),
        strict=True,
    )
    return tuple(
        CollusionFigures(
            bot=results.bots[bot],
            other=results.bots[other],
            matches=int(matches),
            with_other=with_other,
            without_other=None if isnan(without_other) else without_other,
            excess=excess,
            limit=None if isnan(limit) else limit,
            suspicious=hint,
        )
        for (bot, other), matches, with_other, without_other, excess, limit, hint in columns
    )


class _PairEffects:
    """Compute the excess of each ordered pair of bots, by least squares from the residuals of `OpponentEffects`.

    If the excess of a pair cannot be distinguished from the strengths and effects of the bots, the pair is left out. The
    other N pairs are kept.
    """

    def __init__(self, sums: MatchSums, resampling: Resampling) -> None:
        opponents = OpponentEffects(sums.games)
        left = opponents.means(opponents.scaled_residuals(sums.points))
        there = opponents.there
        self.bots = np.concatenate([sums.pairs, sums.pairs[:, ::-1]])
        """(N, 2) the bot of each pair, and the other bot."""
        met = sparse.hstack([sums.meetings, sums.meetings], format="csr")
        met.data[:] = 1
        inputs = _inputs(met, self.bots[:, 0], there)
        explained = inputs @ opponents.inverse
        self.matches: Floats = sum_over_matches(met)
        size = self.matches - np.einsum("ij,ij->i", inputs, explained)
        kept = np.flatnonzero((size > _LEAST) & np.isfinite(left).all())
        self.bots, self.matches, self._met = self.bots[kept], self.matches[kept], met[:, kept]
        """`matches` is (N,) the number of matches with both bots. `_met` is (M, N) 1 where both bots played in the match, else 0."""
        self._explained, self._size = explained[kept], size[kept]
        self._own = self._met.copy()
        match = np.repeat(np.arange(len(there)), np.diff(self._own.indptr))
        self._own.data = left[match, self.bots[self._own.indices, 0]]
        usual = np.concatenate([left, there * (left.sum(axis=1, keepdims=True) - left)], axis=1)
        self._usual, self._resampling = resampling.sums(usual), resampling
        self.excess: Floats = sum_over_matches(self._own) / self._size / opponents.enlargement
        """(N,) points per game."""

    def draw(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the excesses in each resample, multiplied by `enlargement`, for a part of the pairs at a time.

        They are multiplied because least squares makes their spread too small. Each item has two elements: the part as a
        slice of the N pairs, and an array with a row for each resample and a column for each pair of the part.
        """
        pairs = max(1, _CHUNK // self._resampling.draws)
        for begin in range(0, len(self.bots), pairs):
            part = slice(begin, begin + pairs)
            own = self._resampling.sums(self._own[:, part])
            yield part, (own - self._usual @ self._explained[part].T) / self._size[part]

    def style_limits(self) -> Floats:
        """Return the (N,) largest excesses that styles can explain, in points per game; NaN if there are too few other pairs.

        The effects of styles are assumed to be random. The excesses of all pairs count as residuals of a model with a strength
        and an effect for each bot. The limit comes from the test of the externally studentised residual, with an error of 5 %
        for all pairs together. It is multiplied by sqrt(N / degrees of freedom), so that there are fewer hints. If two bots
        collude, their excess can be large in both orders. So the limit of a pair depends on neither of these two excesses.
        """
        bot, other = self.bots.T
        pairs, size = len(bot), self.bots.max(initial=-1) + 1
        pair, cause = np.tile(np.arange(pairs), 2), np.concatenate([bot, size + other])
        causes = sparse.csr_array((np.ones(2 * pairs), (pair, cause)), shape=(pairs, 2 * size))
        free = pairs - np.linalg.matrix_rank((causes.T @ causes).toarray(), hermitian=True)
        if free <= 2:  # noqa: PLR2004 - each limit leaves out two excesses: those of its two bots, in both orders
            return np.full(pairs, np.nan)
        squares = np.zeros((size, size))
        squares[bot, other] = self.excess**2
        own = (squares + squares.T)[bot, other]
        variance = (squares.sum() * free / pairs - own) / (free - 2) * pairs / free
        tail = stdtrit(min(free - 2, _TAIL_FREEDOM), 1 - (1 - CONFIDENCE) / pairs)
        limits: Floats = tail * np.sqrt(np.maximum(variance, 0))
        return limits

    def means(self, sums: MatchSums) -> tuple[Floats, Floats]:
        """Return for each pair the mean points per game of the bot in the matches with the other bot, and in those without it.

        Both arrays are (N,). A value of the second array is NaN if there are no matches without the other bot.
        """
        bot = self.bots[:, 0]
        place = np.arange(len(bot))
        points, games = (
            np.asarray(self._met.T @ each)[place, bot] for each in (sums.points, sums.games)
        )
        other_games = sums.games.sum(axis=0)[bot] - games
        without = (sums.points.sum(axis=0)[bot] - points) / np.where(
            other_games > 0, other_games, np.nan
        )
        return points / games, without


def _inputs(met: Matrix, bot: Ints, there: Floats) -> Floats:
    """Return the (N, 2n) regressors of `OpponentEffects`, summed for each pair over the matches in which both bots played.

    The first n columns belong to the strengths, the others to the effects.
    """
    place = np.arange(len(bot))
    strengths, effects = np.zeros((len(bot), there.shape[1])), np.asarray(met.T @ there)
    strengths[place, bot] = effects[place, bot]
    effects[place, bot] = 0
    return np.concatenate([strengths, effects], axis=1)


def _quantiles(freedom: Floats) -> Floats:
    """Return the (N,) quantiles of Student's t for one-sided tests, with an error of 5 % for all N pairs together.

    A pair without a degree of freedom has NaN.
    """
    tail = (1 - CONFIDENCE) / len(freedom)
    return np.where(freedom > 0, stdtrit(np.maximum(freedom, 1), 1 - tail), np.nan)


def _deviation_in_a_game(results: ResultColumns) -> float:
    """Return the standard deviation of the points of a bot in a game, around the mean of the bot."""
    seated = results.bot != NOBODY
    bot, points = results.bot[seated], results.points[seated].astype(np.float64)
    games = np.bincount(bot)
    means = np.bincount(bot, points) / np.maximum(games, 1)
    return float(np.sqrt(((points - means[bot]) ** 2).mean()))
