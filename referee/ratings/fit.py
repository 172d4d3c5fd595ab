"""Ratings that do not depend on the order of the games: all of them are fitted at once.

The model is TrueSkill's own. Each seat performs as a normal distribution around its skill, with the
deviation `beta`; who performs better ranks higher. So of a pair at the same table the first ranks
higher with the chance Phi((s1 - s2) / (sqrt(2) beta)), whoever else sits there, and skills come from
a normal distribution, the prior. The fit is the set of skills that makes the outcomes of all pairs
most likely under that prior (Thurstone-Mosteller; a tie is half a win), which is unique. It differs
from sequential TrueSkill in what that leaves open: in which order the games are counted.

The pairs of a game are not independent, so the fit says nothing about its own certainty. `resample`
does, by matches.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from referee.ratings.trueskill import Settings
from referee.result_columns import Floats, Ints

_STEPS = 100
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
    """The skills that make the outcomes most likely; many independent fits at once.

    Args:
        pairs: (P, 2) the two bots of each pair, indices of bots.
        compared: (B, P) how often each pair was compared, in each of B fits.
        better: (B, P) how often of that the first was better.
        priors: (B, n) the prior's mean of each bot.
        settings: the prior's deviation, and `beta`.
        start: (n,) where to begin the search; by default, at the priors.
        within: the search ends when no skill moves by more than that.

    Returns: (B, n) skills, in the units of the ratings.

    Raises ArithmeticError when the search does not end; the function is concave, so it does.
    """
    scale = np.sqrt(2) * settings.beta
    limit = 2 * scale  # of a step: far from the solution the function is flat
    precision = settings.sigma**-2
    first, second = pairs[:, 0], pairs[:, 1]
    skills = priors.copy() if start is None else np.broadcast_to(start, priors.shape).copy()
    for _ in range(_STEPS):
        lead = (skills[:, first] - skills[:, second]) / scale
        win, loss = _hazard(lead), _hazard(-lead)
        worse = compared - better
        pull = (better * win - worse * loss) / scale
        bend = (better * win * (win + lead) + worse * loss * (loss - lead)) / scale**2
        slope = precision * (priors - skills) + _spread(first, second, pull, skills.shape[1])
        curvature = _curvature(first, second, bend, skills.shape[1], precision)
        step = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
        skills += np.clip(step, -limit, limit)
        if np.abs(step).max(initial=0.0) <= within:
            return skills
    raise ArithmeticError(f"the ratings have not converged in {_STEPS} steps")


def _hazard(lead: Floats) -> Floats:
    """phi(x) / Phi(x), also where both are next to nothing."""
    hazard: Floats = np.exp(-lead * lead / 2 - _LOG_ROOT_TAU - log_ndtr(lead))
    return hazard


def _spread(first: Ints, second: Ints, pull: Floats, bots: int) -> Floats:
    """(B, n): each pair's pull added to its first and taken from its second."""
    incidence = np.zeros((len(first), bots))
    rows = np.arange(len(first))
    incidence[rows, first], incidence[rows, second] = 1, -1
    return pull @ incidence


def _curvature(first: Ints, second: Ints, bend: Floats, bots: int, precision: float) -> Floats:
    """(B, n, n): minus the second derivatives."""
    curvature = np.zeros((len(bend), bots, bots))
    curvature[:, first, second] = -bend
    curvature[:, second, first] = -bend
    diagonal = np.arange(bots)
    curvature[:, diagonal, diagonal] = precision - curvature.sum(axis=2)
    return curvature
