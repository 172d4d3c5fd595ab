"""Test whether one number per bot explains which bot ranks higher, or whether some pairs deviate from it.

Bots can be like rock, paper and scissors: a beats b, b beats c, and c beats a. No ratings predict such results. Another
example is a bot whose style suits one opponent only.

Ties are left out, because ratings do not say how often two bots tie. Comparisons with a forfeit are left out too: a
bot that sometimes crashes also loses to weak bots, as if its style suited them. All other comparisons are decided.
`fit.fit` computes skills from the decided comparisons. These skills predict how often each bot ranks higher.

The deviation of a pair in a match is the number of comparisons in which its first bot ranked higher, minus the
predicted number. Each comparison counts with its weight; see `intervals.MatchSums`. The test gives the deviations of
each match a random sign, +1 or -1, and adds them up, many times. It compares the real sums of all pairs with these
random sums. With many matches, each random group of matches has one sign; see `intervals`. It is the sign-flip
test of effective score contributions (Hemerik, Goeman and Finos, "Robust testing in generalized linear models by
sign-flipping score contributions", 2020). All games of a match get the same sign, so they may depend on each other.

The lead of a pair is the skill of its first bot minus that of its second, divided by `sqrt(2) beta`, the standard
deviation of the difference between two performances. The link is the curve that gives the predicted share for each
lead. Here it is the normal distribution function; other links have flatter or steeper ends. Before the test compares
the sums, it removes two parts from them: what slightly different skills would explain, and what another link would
explain.

In the shapes of arrays, n is the number of bots, M of matches, P of pairs with decided comparisons, and B of sign flips.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from referee.ratings.computed_once import ComputedOnce
from referee.ratings.fit import fit, hazard
from referee.ratings.intervals import (
    CONFIDENCE,
    Certainty,
    Estimate,
    MatchSums,
    Resampling,
    quotient,
    sum_over_matches,
)
from referee.ratings.trueskill import Settings
from referee.result_columns import Flags, Floats, Ints

_FLIPS = 1_000
"""Number of sign flips."""
_LINK_DEVIATION = 0.1
"""The test describes another link by adding `factor * lead ** 3` to each lead. The prior of `factor` has this standard
deviation. The factor is about -0.05 if performances have the t distribution with 3 degrees of freedom. Without this
prior, an absurd link could explain even a cycle of three bots, and the test would not find it."""
_RARE = 5
"""If the weaker bot of a pair has fewer expected wins than this, the variance in the results can be too small; see
`Transitivity._enlarge_rare`."""
_NEGLIGIBLE = 1e-6
"""A standard error below this share of a pair's comparisons comes from rounding, and counts as 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviationFigures:
    """How often a bot ranks higher than another one in decided comparisons, and how often the model predicts it.

    The model predicts it from skills that are fitted to the decided comparisons only.
    """

    bot: str
    """The bot of the pair that ranks higher more often than predicted."""
    other: str
    matches: int
    """Number of matches with a decided comparison of the pair."""
    decided: int
    """Number of games in which one of the two bots ranked higher and neither forfeited."""
    share: Estimate
    """Share of the decided comparisons in which `bot` ranked higher; each has the weight 2 / seats."""
    predicted: float
    """The share that the model predicts."""
    sure: bool
    """True if the pair surely deviates. If one number per bot explains the results, the chance that it is True for one or
    more pairs is at most 5 %."""


class Transitivity:
    """The test over all pairs of a ruleset, and the deviation of each pair.

    Args:
        bots: the names of the bots.
        sums: the results, by match.
        settings: the constants of the rating.
    """

    def __init__(self, bots: Sequence[str], sums: MatchSums, settings: Settings) -> None:
        decisive = np.flatnonzero(sum_over_matches(sums.decided) > 0)
        self._bots = bots
        self._pairs = sums.pairs[decisive]
        self._decided, self._won = sums.decided[:, decisive], sums.won[:, decisive]
        self._games = sums.pair_decided[decisive].astype(np.float64)
        self._model = _Model(
            self._pairs,
            sum_over_matches(self._decided),
            sum_over_matches(self._won),
            len(bots),
            settings,
        )
        self._comparisons = int((sums.games > 0).sum()) - len(sums.games)
        """Upper limit of the number of independent comparisons. A match of k bots counts as k - 1 of them."""

    @ComputedOnce
    def p_value(self) -> float | None:
        """Probability of deviations at least as large as the real ones, if one number per bot explains the results.

        None if there are too few results, or if the pairs with decided comparisons form no cycle, such as a-b, b-c and c-a.
        Without a cycle, skills can explain any result.
        """
        if not len(self._flipped):
            return None
        # This is a score test. With these weights it is most sensitive to random deviations of the leads that
        # are about equally large for all pairs.
        weights = self._model.score_weight**2
        found = (self._model.deviations**2 * weights).sum()
        drawn = (self._flipped**2 * weights).sum(axis=1)
        return float((1 + (drawn >= found).sum()) / (1 + len(drawn)))

    @property
    def misleads(self) -> bool:
        """True if one number per bot surely does not explain the results.

        If one number per bot does explain them, the chance that this is True is at most 5 %.
        """
        return self.p_value is not None and self.p_value <= 1 - CONFIDENCE

    @ComputedOnce
    def pairs(self) -> tuple[DeviationFigures, ...]:
        """The pairs with decided comparisons, sorted by deviation in standard errors, the largest first."""
        decided, won = sum_over_matches(self._decided), sum_over_matches(self._won)
        matches = (self._decided > 0).sum(axis=0).astype(np.float64)
        resampling = Resampling.from_matches(self._decided.shape[0])
        drawn = quotient(resampling.sums(self._won), resampling.sums(self._decided))
        shares = Certainty(matches).share_intervals(won / decided, drawn, self._games)
        figures = []
        for place in np.argsort(-self._standardised, kind="stable").tolist():
            bot, other = self._pairs[place].tolist()
            share, predicted = shares[place], float(self._model.expected[place])
            if share.value < predicted:
                bot, other, share, predicted = other, bot, _opposite(share), 1 - predicted
            figures.append(
                DeviationFigures(
                    bot=self._bots[bot],
                    other=self._bots[other],
                    matches=int(matches[place]),
                    decided=int(self._games[place]),
                    share=share,
                    predicted=predicted,
                    sure=bool(self._sure[place]),
                )
            )
        return tuple(figures)

    @ComputedOnce
    def _sure(self) -> Flags:
        """(P,) `DeviationFigures.sure`.

        A pair must meet two conditions. The test over all pairs is significant, and in at least 95 % of the draws with
        random signs, the deviations of all pairs are smaller than the real deviation of this pair. These deviations are
        measured in standard errors.
        """
        if not self.misleads:
            return np.zeros(len(self._pairs), dtype=bool)
        largest = self._standardise(self._flipped).max(axis=1)
        sure: Flags = self._standardised > np.quantile(largest, CONFIDENCE, method="higher")
        return sure

    @ComputedOnce
    def _standardised(self) -> Floats:
        """(P,) the absolute deviation of each pair, in standard errors.

        It is 0 if no test is possible, or if the standard error counts as 0.
        """
        return self._standardise(self._model.deviations)

    def _standardise(self, deviations: Floats) -> Floats:
        errors = np.sqrt((self._flipped**2).sum(axis=0) / max(1, len(self._flipped)))
        known = errors > _NEGLIGIBLE * self._model.decided
        standardised: Floats = np.abs(deviations) * known / np.where(known, errors, 1)
        return standardised

    @ComputedOnce
    def _flipped(self) -> Floats:
        """(B, P) like `_Model.deviations`, but enlarged, and with a random sign for each match or group; B is 0 if no test is possible."""
        degrees_left = self._comparisons - self._model.rank
        if degrees_left <= 0 or len(self._pairs) <= self._model.rank:
            return np.zeros((0, len(self._pairs)))
        flips = Resampling.flip_signs(self._decided.shape[0], _FLIPS)
        residuals = flips.sums(self._won) - flips.sums(self._decided) * self._model.expected
        residuals *= self._enlarge_rare((residuals**2).mean(axis=0))
        # Residuals are smaller than the errors of the results, because the skills were fitted to the same results. So they
        # are enlarged by the ratio comparisons / degrees_left. The square root of the ratio would be enough, but the ratio
        # itself makes the test more careful when there are few matches.
        return self._model.unexplained(residuals) * self._comparisons / degrees_left

    def _enlarge_rare(self, variances: Floats) -> Floats:
        """Return (P,) factors for the residuals of each pair, from their (P,) variances with random signs.

        If a bot always wins, all residuals of the pair are equal and small, and their variance says nothing. So a pair whose
        weaker bot has few expected wins gets the variance of independent comparisons, if this variance is larger. For other
        pairs, and if the variance is 0, the factor is 1.
        """
        share = self._model.expected
        rare = self._model.decided * np.minimum(share, 1 - share) < _RARE
        independent = self._model.decided * share * (1 - share)
        larger = rare & (independent > variances) & (variances > 0)
        return np.sqrt(np.where(larger, independent / np.where(larger, variances, 1), 1))


class _Model:
    """The skills that explain the decided comparisons best, and what other skills or another link would explain.

    Args:
        pairs: (P, 2) the bots of each pair.
        decided: (P,) the sums of the weights of the decided comparisons.
        won: (P,) the sums of the weights of those in which the first bot ranked higher.
        bots: the number n of bots.
        settings: the constants of the rating.
    """

    def __init__(
        self, pairs: Ints, decided: Floats, won: Floats, bots: int, settings: Settings
    ) -> None:
        self.decided = decided
        priors = np.full((1, bots), settings.mu)
        [skills] = fit(pairs, decided[None], won[None], priors, settings)
        scale = np.sqrt(2) * settings.beta
        first, second = pairs.T
        lead = (skills[first] - skills[second]) / scale
        self.expected: Floats = ndtr(lead)
        """(P,) the predicted share of the first bot."""
        self.score_weight: Floats = hazard(lead) + hazard(-lead)
        """(P,) phi / (Phi (1 - Phi)) for the lead of each pair.

        This factor, times the number of comparisons that the first bot won beyond the expected number, is the derivative
        of the log-likelihood with respect to the lead."""
        rows = np.arange(len(pairs))
        # how the lead of each pair changes with the skill of each bot, and with the factor of the link
        design = np.zeros((len(pairs), bots + 1))
        design[rows, first], design[rows, second] = 1 / scale, -1 / scale
        design[:, bots] = lead**3
        self._scores = self.score_weight[:, None] * design
        """(P, n + 1) factors like `score_weight`, but for the derivative with respect to each skill. The last column is for the factor
        of the link."""
        density = self.score_weight * self.expected * ndtr(-lead)
        self._response = (decided * density)[:, None] * design
        """(P, n + 1) the derivative of the expected number of won comparisons with respect to each skill. The last column is for the
        factor of the link."""
        information = self._scores.T @ self._response
        precisions = np.full(bots + 1, settings.sigma**-2)
        precisions[bots] = _LINK_DEVIATION**-2
        information[np.diag_indices(bots + 1)] += precisions
        self._inverse = np.linalg.pinv(information, rcond=1e-9, hermitian=True)
        self.rank = int(np.linalg.matrix_rank(design[:, :bots]))
        """The number of independent differences of skill."""
        self.deviations = self.unexplained((won - decided * self.expected)[None])[0]
        """(P,) comparisons that the first bot won beyond the expected number, without the part that `unexplained` removes."""

    def unexplained(self, residuals: Floats) -> Floats:
        """Return (B, P) residuals without the part that other skills or another link would explain.

        One step of Newton's method estimates this part.
        """
        left: Floats = residuals - residuals @ self._scores @ self._inverse @ self._response.T
        return left


def _opposite(share: Estimate) -> Estimate:
    """Return the share of the other bot."""
    low = None if share.high is None else 1 - share.high
    high = None if share.low is None else 1 - share.low
    return Estimate(1 - share.value, low, high)
