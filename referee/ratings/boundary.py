"""Compute how sure each look must be, so that all looks together give a wrong verdict with a fixed probability.

A verdict is tested at several looks, and each test can be wrong. The looks share the allowed error in the way of Lan and
DeMets (Discrete sequential boundaries for clinical trials, Biometrika 70, 1983): after half of the rounds, half of the error
is spent. A look may spend more than its share on its own test. The reason is that tests depend on each other: if a later test is wrong,
an earlier one often was wrong too, and only the first wrong one counts. The recursion of Armitage, McPherson and Rowe
(Repeated significance tests on accumulating data, JRSS A 132, 1969) computes how much more.

The model: the lead of a bot, divided by its standard error, is normally distributed. If the true lead is 0, it has the
mean 0 and the deviation 1, and its values at two looks with the data s and t > s have the correlation sqrt(s / t). The data
need not grow with the rounds: after a look, open pairs may play more games in a round than before.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import ceil, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from referee.result_columns import Floats

_LOWEST, _HIGHEST = -8.0, 38.0
"""Bounds are searched between these leads, in standard errors. A lead below -8 has the probability 1e-15."""
_LEAST_GROWTH = 1.01
"""The data of a look count as at least this many times those of the look before. More growth makes the bounds stricter."""
_LEAST_NODES = 64
"""The least number of nodes of an integral; with 64 the relative error of a result is below 1e-6."""


@lru_cache(maxsize=256)
def allowed_errors(
    looks: tuple[int, ...], error: float, data: tuple[float, ...] | None = None
) -> tuple[float, ...]:
    """Return the allowed probability of a wrong verdict for the test at each look, as far as `data` goes.

    If the true lead of a bot is 0, the probability that at least one of these tests finds it ahead is at most `error`.

    Args:
        looks: the number of rounds before each look, ascending. The last look is after all rounds.
        error: the allowed probability of a wrong verdict at any look, above 0 and at most 0.5.
        data: how much is known about the lead at each look so far, in any unit; if omitted, it grows with the rounds.
    """
    known = [float(amount) for amount in (looks if data is None else data)]
    for number in range(1, len(known)):
        known[number] = max(known[number], known[number - 1] * _LEAST_GROWTH)
    bounds: list[float] = []
    finest = sqrt(min(1 - before / amount for before, amount in pairwise((0.0, *known))))
    leads, weights = np.zeros(1), np.ones(1)  # before the first round, the lead is 0
    for (before, amount), (last, rounds) in zip(
        pairwise((0.0, *known)), pairwise((0, *looks)), strict=False
    ):
        leads *= sqrt(before / amount)  # in the standard errors of this look
        deviation = sqrt((amount - before) / amount)
        bound = _find_bound(leads, weights, deviation, error * (rounds - last) / looks[-1])
        nodes, sizes = _place_nodes(bound, finest)
        weights = sizes * (_density((nodes[:, None] - leads) / deviation) @ weights) / deviation
        leads = nodes
        bounds.append(bound)
    return tuple(ndtr([-bound for bound in bounds]).tolist())


def _find_bound(leads: Floats, weights: Floats, deviation: float, spent: float) -> float:
    """Return the bound that the lead exceeds with the probability `spent`.

    Args:
        leads: possible leads at the look before, in the standard errors of this look.
        weights: for each lead, the probability that the bot has this lead and that no look has found the bot ahead.
        deviation: the standard deviation of the change by these games.
        spent: the part of the error for this look.
    """

    def excess(bound: float) -> float:
        return float(ndtr((leads - bound) / deviation) @ weights) - spent

    return float(brentq(excess, _LOWEST, _HIGHEST, xtol=1e-10))


def _place_nodes(bound: float, finest: float) -> tuple[Floats, Floats]:
    """Return the nodes and the weights of an integral over all leads below `bound`, by the rule of Gauss and Legendre.

    The nodes are closer than `finest`, the least standard deviation by which a lead changes from one look to the next.
    """
    width = bound - _LOWEST
    nodes, sizes = np.polynomial.legendre.leggauss(max(_LEAST_NODES, ceil(2 * width / finest)))
    return _LOWEST + width * (nodes + 1) / 2, sizes * width / 2


def _density(values: Floats) -> Floats:
    """Return the density of the standard normal distribution."""
    density: Floats = np.exp(-values * values / 2) / sqrt(2 * np.pi)
    return density
