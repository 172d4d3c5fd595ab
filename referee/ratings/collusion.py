"""What a bot's result at a table owes to the others who sit there, and who helps whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from referee.ratings.intervals import CONFIDENCE, Certainty, Estimate, Resampling, sum_matches
from referee.result_columns import Floats, ResultColumns

_LEAST = 1e-6
"""Of what is a bot's company alone: less is rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollusionFigures:
    """How a bot fares when another one sits at its table."""

    bot: str
    other: str
    matches: int
    """In which both played."""
    with_other: float
    """Mean points of the bot in these."""
    without_other: float | None
    """Mean points of the bot in its other matches; None: there is none."""
    excess: Estimate
    """How many points more the bot makes in its company than it should.

    That is: than its own strength and what the other does to everybody explain.
    """
    suspicious: bool
    """The excess is above 0, even for the largest of so many (with a chance of error of 5 % in all)."""


class OpponentEffects:
    """Who sat at which table, and what that explains.

    The mean of a bot in a match is taken for a number of its own plus one for each of the others, what
    these do to anybody; both by least squares over all matches.

    Args:
        games: (M, n) how many games of each of M matches each of n bots played; 0: it was not there.
    """

    def __init__(self, games: Floats) -> None:
        self._games = games
        self.there = (games > 0).astype(np.float64)
        """(M, n) 1 where the bot played."""
        others = self.there.sum(axis=1, keepdims=True) - 1
        together = self.there.T @ self.there
        matches = np.diag(np.diag(together))
        apart = together - matches
        upon = self.there.T @ (others * self.there) - apart
        equations = np.block([[matches, apart], [apart, upon]])
        self._inverse = np.linalg.pinv(equations, rcond=1e-9, hermitian=True)
        self._free = self.there.sum() - np.linalg.matrix_rank(equations, tol=1e-9, hermitian=True)

    def means(self, sums: Floats) -> Floats:
        """(M, n) the mean of a game, of sums over a match; 0 where the bot did not play."""
        means: Floats = np.divide(sums, self._games, out=np.zeros_like(sums), where=self._games > 0)
        return means

    def residuals(self, means: Floats) -> Floats:
        """(M, n) what is left of means when the company at the table is accounted for."""
        bots = means.shape[1]
        totals = means.sum(axis=1, keepdims=True)
        known = [means.sum(axis=0), (self.there * (totals - means)).sum(axis=0)]
        effects = self._inverse @ np.concatenate(known)
        own, upon = effects[:bots], effects[bots:]
        left: Floats = self.there * (means - own - (self.there @ upon)[:, None] + upon)
        return left

    def scaled_residuals(self, sums: Floats) -> Floats:
        """(M, n) the same of sums over a match, as large as it is in matches that are still to come.

        (What was fitted to a match leaves less of it.) NaN where all was needed for the fit.
        """
        if self._free <= 0:
            return np.full_like(sums, np.nan)
        larger = np.sqrt(self.there.sum() / self._free)
        unexplained: Floats = self._games * self.residuals(self.means(sums)) * larger
        return unexplained


def collusion_figures(results: ResultColumns) -> tuple[CollusionFigures, ...]:
    """Of every ordered pair that has met, where its effect can be told from others'.

    A hint of collusion by play, no proof: bots may simply suit each other.
    """
    helped = _Helped(results)
    bots = range(len(results.bots))
    pairs = [(bot, other) for bot in bots for other in bots if bot != other]
    return tuple(
        figures for bot, other in pairs if (figures := helped.figures(bot, other, len(pairs)))
    )


class _Helped:
    """Who helps whom: for a pair, what its meetings leave unexplained, by least squares again."""

    def __init__(self, results: ResultColumns) -> None:
        self._bots = results.bots
        self._games = sum_matches(results)
        self._opponents = OpponentEffects(self._games.games)
        self._left = self._opponents.means(self._opponents.scaled_residuals(self._games.points))
        self._resampling = Resampling.from_matches(results.matches)

    def figures(self, bot: int, other: int, pairs: int) -> CollusionFigures | None:
        """Of one of so many ordered pairs; None where nothing can be told."""
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

    def _mean(self, bot: int, chosen: Floats) -> float:
        """Points in a game of a bot, in some of its matches."""
        points, games = self._games.points[:, bot], self._games.games[:, bot]
        return float((points * chosen).sum() / (games * chosen).sum())
