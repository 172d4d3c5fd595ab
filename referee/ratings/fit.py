"""Fit skills to all games at once, so that the order of the games does not matter.

The model is that of TrueSkill. The performance of a seat is normally distributed around the skill of its bot, with
the deviation `beta`; a better performance ranks higher. Let s1 and s2 be the skills of two bots at a table, and
Phi the normal distribution function. Then the first bot ranks higher with the probability
Phi((s1 - s2) / (sqrt(2) beta)), whatever other bots play. This is the model of Thurstone and Mosteller; a tie counts as
half a win. The prior of each skill is a normal distribution too. The fit is the set of skills with the highest
posterior probability. There is exactly one, because the log posterior (the logarithm of that probability) is
strictly concave.

The posterior does not show how uncertain a fit is, because the pairs of one game are not independent.
`intervals.py` measures the uncertainty by resampling.

In the shapes of arrays, B is the number of fits, n of bots, and P of pairs of bots.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from referee.ratings.trueskill import Settings
from referee.result_columns import Flags, Floats, Ints

_STEPS = 100
"""Upper limit of the number of steps of Newton's method."""
_LOG_ROOT_TAU = float(np.log(2 * np.pi) / 2)
"""ln(sqrt(2 pi)), from the normal density."""


def fit(
    pairs: Ints,
    compared: Floats,
    better: Floats,
    priors: Floats,
    settings: Settings,
    *,
    start: Floats | None = None,
    within: float = 1e-9,
) -> Floats:
    """Return the most likely skills of B independent fits, by Newton's method.

    Args:
        pairs: (P, 2) the two bots of each pair, as indexes from 0 to n - 1.
        compared: (B, P) sum of the weights of the meetings of each pair, as in `intervals.MatchSums`.
        better: (B, P) sum of the weights of the meetings in which the first bot ranked higher; a tie counts one half.
        priors: (B, n) the mean of the prior for each bot.
        settings: `sigma` is the deviation of the prior, `beta` that of a performance. No other setting is used.
        start: (n,) skills at which the search starts; `priors` if omitted.
        within: the search ends after a step that changes no skill by more than this.

    Returns: (B, n) skills in the units of ratings.

    Raises ArithmeticError if the search has not ended after 100 steps. This is not expected.
    """
    scale = np.sqrt(2) * settings.beta
    # Newton's method can jump too far where the log posterior has little curvature, so steps are limited.
    limit = 2 * scale
    precision = settings.sigma**-2
    first, second = pairs[:, 0], pairs[:, 1]
    rows, bots = np.arange(len(pairs)), priors.shape[1]
    signs = np.zeros(
        (len(pairs), bots)
    )  # 1 for the first bot of each pair, -1 for the second, 0 for others
    signs[rows, first], signs[rows, second] = 1, -1
    skills = priors.copy() if start is None else np.broadcast_to(start, priors.shape).copy()
    for _ in range(_STEPS):
        lead = (skills[:, first] - skills[:, second]) / scale
        pull, bend = _derive(lead, compared, better, scale)
        slope = precision * (priors - skills) + pull @ signs
        curvature = _curvature(first, second, bend, bots, precision)
        step = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
        skills += np.clip(step, -limit, limit)
        if np.abs(step).max(initial=0.0) <= within:
            return skills
    raise ArithmeticError(f"the fit has not converged in {_STEPS} steps")


def covariance(
    pairs: Ints, compared: Floats, better: Floats, skills: Floats, settings: Settings
) -> Floats:
    """Return the (n, n) covariance of the skills of a fit, by Laplace's approximation.

    This approximation is a normal distribution with its maximum at the fit. There, its logarithm has the same curvature as
    the log posterior. The approximation treats the games of a match as independent, but they may depend on each other. So
    use it to compare uncertainties. To state how uncertain a fit is, use `intervals.py`.

    Args:
        pairs: (P, 2) as for `fit`.
        compared: (P,) sum of the weights of the meetings of each pair.
        better: (P,) sum of the weights of the meetings in which the first bot ranked higher.
        skills: (n,) the fit.
        settings: as for `fit`.
    """
    scale = np.sqrt(2) * settings.beta
    first, second = pairs[:, 0], pairs[:, 1]
    lead = (skills[first] - skills[second]) / scale
    _, bend = _derive(lead, compared, better, scale)
    inverse: Floats = np.linalg.inv(
        _curvature(first, second, bend[None], len(skills), settings.sigma**-2)[0]
    )
    return inverse


def find_beaten(pairs: Ints, better: Floats, worse: Floats, bots: int) -> Flags:
    """Return the (n, n) array that is True where the row's bot beat the column's bot, directly or over a chain of bots.

    A bot beat another one directly if it ranked above it or tied with it at least once. A bot beat another one over a
    chain if each bot of the chain beat the next one directly. A chain can also lead from a bot back to itself. If bot x
    beat bot y neither directly nor over a chain, only the prior limits how far x can be behind y; the games do not.

    Args:
        pairs: (P, 2) as for `fit`.
        better: (P,) sum of the weights of the meetings in which the first bot ranked higher; a tie counts one half.
        worse: (P,) the same for the second bot.
        bots: the number n of bots.
    """
    beaten = np.zeros((bots, bots), dtype=np.float32)
    first, second = pairs[:, 0], pairs[:, 1]
    beaten[first, second], beaten[second, first] = better > 0, worse > 0
    for _ in range(bots.bit_length()):  # each pass doubles the length of the chains that are found
        beaten = np.minimum(beaten + beaten @ beaten, 1)
    return beaten > 0


def hazard(lead: Floats) -> Floats:
    """Return phi(x) / Phi(x), the normal density divided by the distribution function, for x = `lead`.

    The quotient is computed from the logarithms of both, because their difference is accurate even where both are nearly 0.
    """
    hazard: Floats = np.exp(-lead * lead / 2 - _LOG_ROOT_TAU - log_ndtr(lead))
    return hazard


def _derive(lead: Floats, compared: Floats, better: Floats, scale: float) -> tuple[Floats, Floats]:
    """Return the first and the second derivatives of the log likelihood with respect to the lead of each pair.

    The second derivatives have the sign reversed. The derivatives are with respect to the lead in the units of ratings.

    Args:
        lead: the skill of the first bot of each pair minus the skill of the second, divided by `scale`.
        compared: sum of the weights of the meetings of each pair.
        better: sum of the weights of the meetings in which the first bot ranked higher.
        scale: sqrt(2) beta.
    """
    win, loss, worse = hazard(lead), hazard(-lead), compared - better
    pull = (better * win - worse * loss) / scale
    bend = (better * win * (win + lead) + worse * loss * (loss - lead)) / scale**2
    return pull, bend


def _curvature(first: Ints, second: Ints, bend: Floats, bots: int, precision: float) -> Floats:
    """Return the (B, n, n) second derivatives of the log posterior, with the sign reversed.

    Args:
        first: (P,) the first bot of each pair.
        second: (P,) the second bot of each pair.
        bend: (B, P) the second derivatives of the log likelihood with respect to the lead of each pair, with the sign reversed.
        bots: the number n of bots.
        precision: 1 / sigma² of the prior.
    """
    curvature = np.zeros((len(bend), bots, bots))
    curvature[:, first, second] = -bend
    curvature[:, second, first] = -bend
    diagonal = np.arange(bots)
    curvature[:, diagonal, diagonal] = precision - curvature.sum(axis=2)
    return curvature
