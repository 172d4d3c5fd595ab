"""Estimate how the other bots at the table change a bot's points, and which bots seem to help each other.

In the shapes of arrays, M is the number of matches and n the number of bots.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from referee.ratings.intervals import CONFIDENCE, Certainty, Estimate, Resampling, sum_matches
from referee.result_columns import Floats, ResultColumns

_LEAST = 1e-6
"""A sum of squares below this comes from rounding, and counts as 0."""


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
    suspicious: bool
    """True if the excess is surely above 0.

    If no bots collude, the chance that one or more pairs are suspicious is at most 5 %.
    """


class OpponentEffects:
    """A linear model of the mean points (or wins) of a bot in a match.

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
        self._inverse = np.linalg.pinv(equations, rcond=1e-9, hermitian=True)
        self._free = self.there.sum() - np.linalg.matrix_rank(equations, tol=1e-9, hermitian=True)

    def means(self, sums: Floats) -> Floats:
        """Return the (M, n) means per game from (M, n) sums per match; 0 where the bot did not play."""
        means: Floats = np.divide(sums, self._games, out=np.zeros_like(sums), where=self._games > 0)
        return means

    def residuals(self, means: Floats) -> Floats:
        """Return the (M, n) residuals of (M, n) means per game: the part that the model does not explain."""
        bots = means.shape[1]
        totals = means.sum(axis=1, keepdims=True)
        known = [means.sum(axis=0), (self.there * (totals - means)).sum(axis=0)]
        effects = self._inverse @ np.concatenate(known)
        own, upon = effects[:bots], effects[bots:]
        left: Floats = self.there * (means - own - (self.there @ upon)[:, None] + upon)
        return left

    def scaled_residuals(self, sums: Floats) -> Floats:
        """Return the (M, n) residuals of (M, n) sums per match, enlarged to the size expected in new matches.

        The enlargement is needed because least squares make the residuals of the fitted data too small. With
        too few data the model fits every mean exactly; then all values are NaN.
        """
        if self._free <= 0:
            return np.full_like(sums, np.nan)
        larger = np.sqrt(self.there.sum() / self._free)
        unexplained: Floats = self._games * self.residuals(self.means(sums)) * larger
        return unexplained


def collusion_figures(results: ResultColumns) -> tuple[CollusionFigures, ...]:
    """Return the figures of the ordered pairs of bots that met.

    A pair is left out if `OpponentEffects` cannot distinguish an excess of the pair from the strengths and effects
    of its bots, for example because the two bots met in every match. With too few data for
    `OpponentEffects.scaled_residuals`, all pairs are left out. A positive excess is a hint at collusion, not a
    proof: two styles of play may simply fit together.
    """
    effects_of_pairs = _PairEffects(results)
    bots = range(len(results.bots))
    pairs = [(bot, other) for bot in bots for other in bots if bot != other]
    return tuple(
        figures
        for bot, other in pairs
        if (figures := effects_of_pairs.figures(bot, other, len(pairs)))
    )


class _PairEffects:
    """Estimate the excess of each pair, by least squares over the residuals of `OpponentEffects`."""

    def __init__(self, results: ResultColumns) -> None:
        self._bots = results.bots
        self._games = sum_matches(results)
        self._opponents = OpponentEffects(self._games.games)
        self._left = self._opponents.means(self._opponents.scaled_residuals(self._games.points))
        self._resampling = Resampling.from_matches(results.matches)

    def figures(self, bot: int, other: int, pairs: int) -> CollusionFigures | None:
        """Return the figures of a pair; None if the pair is left out, see `collusion_figures`.

        Args:
            bot: index of the bot.
            other: index of the other bot.
            pairs: the number of ordered pairs. The 5 % in `CollusionFigures.suspicious` are divided among them.
        """
        there = self._opponents.there
        both = there[:, bot] * there[:, other]
        meeting = np.zeros_like(there)
        meeting[:, bot] = both
        own = self._opponents.residuals(meeting)
        size = float((own**2).sum())
        if size < _LEAST or not np.isfinite(self._left).all():
            return None
        by_match = (own * self._left).sum(axis=1) / size
        drawn = self._resampling.sums(by_match[:, None])
        certainty = Certainty(np.array([both.sum()]))
        [excess] = certainty.mean_intervals(np.array([by_match.sum()]), drawn)
        chance = certainty.chance(excess.value, drawn)
        alone = there[:, bot] - both
        return CollusionFigures(
            bot=self._bots[bot],
            other=self._bots[other],
            matches=int(both.sum()),
            with_other=self._mean(bot, both),
            without_other=self._mean(bot, alone) if alone.any() else None,
            excess=excess,
            suspicious=chance is not None and 1 - chance < (1 - CONFIDENCE) / pairs,
        )

    def _mean(self, bot: int, mask: Floats) -> float:
        """Return the mean points per game of a bot in the matches where the (M,) `mask` is 1."""
        points, games = self._games.points[:, bot], self._games.games[:, bot]
        return float((points * mask).sum() / (games * mask).sum())
