"""Say which match tells most about the order of the bots.

A ladder asks this before each match. The order of two bots is uncertain if little is known about them, or if their skills are close. A match
of these bots makes the lead of one over the other more certain. It also tells something about other pairs: if
much is known about one of the two bots, the leads of the other one over all bots become more certain.

What is known is written as a normal distribution of all skills (`Beliefs`). Let a pair of bots have the expected lead d with the standard
deviation s. The mistake of the pair is the size of its true lead if the order is wrong, else 0. Its expected value is
s phi(d / s) - |d| Phi(-|d| / s); Phi and phi are the normal distribution function and its density. A match lowers the
variance s². If s² falls a little, the expected mistake falls by the change times phi(d / s) / (2 s).

The gain of a match is the sum, over all pairs, of the fall of s² times the weight phi(z) / s. Here z is how far |d| / s
is above `_NOT_YET_APART`, but at least 0. With z = |d| / s, a bot that did badly at first would rarely play again
and could not correct this, so the intervals would cover the true value too rarely: among equal bots, in 85 % of the cases instead of 93 %.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from referee.ratings.fit import covariance, fit, hazard
from referee.ratings.intervals import sum_matches
from referee.ratings.trueskill import Settings
from referee.records import Meetings
from referee.result_columns import Floats, ResultColumns

_COMPARISONS = 2
"""The sum of the weights of all meetings of two bots in a match: k games at a table of k seats, with the weight 2 / k each."""
_NOT_YET_APART = 1.0
"""An expected lead of at most this many standard deviations does not lower the gain of a match. With 2, intervals cover the
true value in 94 % of the cases, but a ladder needs about as many games as a round robin until its order is right."""


@dataclass(frozen=True, slots=True, eq=False)
class PairSums:
    """What the games tell about each pair of n bots. Only the places above the diagonal are used."""

    compared: Floats
    """(n, n) `Meetings.compared` of the bots of row and column."""
    better: Floats
    """(n, n) `Meetings.better` of the bots of row and column."""

    @classmethod
    def from_meetings(cls, bots: int, meetings: Iterable[Meetings]) -> PairSums:
        """Return the sums of n bots. Pairs that are not listed have not met."""
        compared, better = np.zeros((2, bots, bots))
        for first, second, met, won in meetings:
            compared[first, second], better[first, second] = met, won
        return cls(compared, better)

    @classmethod
    def from_results(cls, bots: Sequence[str], results: ResultColumns) -> PairSums:
        """Return the sums of the games of one ruleset. Meetings with bots that are not in `bots` are left out."""
        sums = sum_matches(results)
        number = {bot: place for place, bot in enumerate(bots)}
        places = [number.get(bot) for bot in results.bots]
        met = np.asarray(sums.compared.sum(axis=0)).tolist()
        won = np.asarray(sums.better.sum(axis=0)).tolist()
        meetings = []
        for (left, right), compared, better in zip(sums.pairs.tolist(), met, won, strict=True):
            first, second = places[left], places[right]
            if first is not None and second is not None:
                meetings.append(
                    Meetings(first, second, compared, better)
                    if first < second
                    else Meetings(second, first, compared, compared - better)
                )
        return cls.from_meetings(len(bots), meetings)

    def list_meetings(self) -> tuple[Meetings, ...]:
        """Return the meetings of all pairs that have met."""
        return tuple(
            Meetings(
                first,
                second,
                float(self.compared[first, second]),
                float(self.better[first, second]),
            )
            for first, second in np.argwhere(self.compared > 0).tolist()
        )

    def __add__(self, other: PairSums) -> PairSums:
        return PairSums(self.compared + other.compared, self.better + other.better)


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """What is known about the skills of n bots: a normal distribution."""

    skills: Floats
    """(n,) the expected skill of each bot, in the units of ratings."""
    covariance: Floats
    """(n, n) the covariance of the skills."""
    settings: Settings

    @classmethod
    def from_sums(cls, sums: PairSums, settings: Settings | None = None) -> Beliefs:
        """Return what the games tell about the bots. The skills are the fit. Raises ArithmeticError if it does not converge."""
        settings = settings or Settings()
        pairs = np.argwhere(sums.compared > 0)
        compared, better = (each[tuple(pairs.T)] for each in (sums.compared, sums.better))
        priors = np.full((1, len(sums.compared)), settings.mu)
        skills = fit(pairs, compared[None], better[None], priors, settings)[0]
        return cls(skills, covariance(pairs, compared, better, skills, settings), settings)

    def gains(self) -> Floats:
        """Return the (n, n) gains: for each two bots the gain of their match; 0 for a bot with itself.

        The unit can differ between calls, so compare only gains of the same call.

        Let C be the covariance. Let a be the vector of a pair: 1 for its first bot, -1 for its second, else 0. Let c be this
        vector for the two bots of the match. Let I be the Fisher information of the match about the lead of these two.
        The match lowers the variance of a pair's lead, a' C a, by (a' C c)² / (1 / I + c' C c). With the weight w for each
        pair, the sum over all pairs is c' C L C c / (1 / I + c' C c), where L is the sum of all w a a'. The weight w is
        phi(z) / s, multiplied by a number that is the same for all pairs of a call.
        """
        lead = self.skills[:, None] - self.skills
        variance = _lead_variances(self.covariance)
        np.fill_diagonal(variance, 1)  # avoids a division by 0; a bot has no lead over itself
        apart = np.maximum(np.abs(lead) / np.sqrt(variance) - _NOT_YET_APART, 0)
        exponent = apart**2 / 2
        np.fill_diagonal(exponent, np.inf)
        # without the subtraction, all weights could be rounded to 0
        weight = np.exp(exponent.min() - exponent) / np.sqrt(variance)
        laplacian = np.diag(weight.sum(axis=0)) - weight
        fall = _lead_variances(self.covariance @ laplacian @ self.covariance)
        information = self._information(lead)
        gains: Floats = fall * information / (1 + information * variance)
        np.fill_diagonal(gains, 0)
        return gains

    def after_match(self, table: Sequence[int]) -> Beliefs:
        """Return what will be known when the bots of a table have played a match. The expected skills stay as they are."""
        changed = self.covariance
        for first, second in combinations(table, 2):
            column = changed[:, first] - changed[:, second]
            information = self._information(self.skills[first] - self.skills[second])
            variance = column[first] - column[second]
            share = information / (1 + information * variance)
            changed = changed - np.outer(column, column) * share
        return Beliefs(self.skills, changed, self.settings)

    def _information(self, lead: Floats) -> Floats:
        """Return the Fisher information of a match about each lead."""
        scale = np.sqrt(2) * self.settings.beta
        information: Floats = _COMPARISONS * hazard(lead / scale) * hazard(-lead / scale) / scale**2
        return information


def _lead_variances(matrix: Floats) -> Floats:
    """Return a' M a for the vector a of each pair: 1 for the bot of the row and -1 for the bot of the column, else 0. M is symmetric."""
    diagonal = matrix.diagonal()
    return diagonal[:, None] + diagonal - 2 * matrix
