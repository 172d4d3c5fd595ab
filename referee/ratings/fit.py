"""Fit skills to all games at once, so that the order of the games does not matter.

The model is that of TrueSkill. The performance of a seat is normally distributed around the skill of its bot, with
the deviation `beta`; a better performance ranks higher. So of two seats at a table, the first one ranks higher
with the probability Phi((s1 - s2) / (sqrt(2) beta)), whoever else plays. The prior of the skills is a normal
distribution. The fit is the unique set of skills that makes the outcomes of all pairs most likely under this prior
(Thurstone-Mosteller; a tie is half a win).

The pairs of a game are not independent, so the fit does not tell its own uncertainty; `intervals` does.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from referee.ratings.trueskill import Settings
from referee.result_columns import Floats, Ints

_STEPS = 100
"""The most steps of the search."""
_LOG_ROOT_TAU = float(np.log(2 * np.pi) / 2)


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
        pairs: (P, 2) the two bots of each pair, as indexes of the n bots.
        compared: (B, P) how often each pair was compared, in each fit.
        better: (B, P) how often the first bot of the pair was better; a tie is one half.
        priors: (B, n) the mean of the prior for each bot.
        settings: the deviation of the prior, and `beta`.
        start: (n,) skills at which the search starts; the priors if omitted.
        within: the search ends when no skill changes by more than this.

    Returns: (B, n) skills in the units of ratings.

    Raises ArithmeticError if the search does not converge. It always should, because the function is concave.
    """
    scale = np.sqrt(2) * settings.beta
    limit = 2 * scale  # limits a step: far from the solution the function is flat
    precision = settings.sigma**-2
    first, second = pairs[:, 0], pairs[:, 1]
    skills = priors.copy() if start is None else np.broadcast_to(start, priors.shape).copy()
    for _ in range(_STEPS):
        lead = (skills[:, first] - skills[:, second]) / scale
        win, loss = _hazard(lead), _hazard(-lead)
        worse = compared - better
        pull = (better * win - worse * loss) / scale
        bend = (better * win * (win + lead) + worse * loss * (loss - lead)) / scale**2
        slope = precision * (priors - skills) + _sum_pulls(first, second, pull, skills.shape[1])
        curvature = _curvature(first, second, bend, skills.shape[1], precision)
        step = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
        skills += np.clip(step, -limit, limit)
        if np.abs(step).max(initial=0.0) <= within:
            return skills
    raise ArithmeticError(f"the ratings have not converged in {_STEPS} steps")


def _hazard(lead: Floats) -> Floats:
    """Return phi(x) / Phi(x), also where both are nearly 0."""
    hazard: Floats = np.exp(-lead * lead / 2 - _LOG_ROOT_TAU - log_ndtr(lead))
    return hazard


def _sum_pulls(first: Ints, second: Ints, pull: Floats, bots: int) -> Floats:
    """Return (B, n) sums for the bots: a pair adds its pull to its first bot and subtracts it from its second."""
    incidence = np.zeros((len(first), bots))
    rows = np.arange(len(first))
    incidence[rows, first], incidence[rows, second] = 1, -1
    return pull @ incidence


def _curvature(first: Ints, second: Ints, bend: Floats, bots: int, precision: float) -> Floats:
    """Return the (B, n, n) negative second derivatives."""
    curvature = np.zeros((len(bend), bots, bots))
    curvature[:, first, second] = -bend
    curvature[:, second, first] = -bend
    diagonal = np.arange(bots)
    curvature[:, diagonal, diagonal] = precision - curvature.sum(axis=2)
    return curvature
