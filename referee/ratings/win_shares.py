"""Compute intervals for the share of games that each bot wins.

The games of a match may depend on each other, because they usually share a deal. So the variance of a bot's share
differs from the variance that it would have if the games were independent. The design effect (Kish, Survey Sampling,
1965) is the true variance divided by that of independent games. After few matches, the results of one bot are not
enough for a good estimate of its design effect. But the design effect is usually about the same for all bots, because
they play the same kind of matches. So this module uses a weighted mean of two estimates for each bot: one from its own
results, and one from the results of all bots. The more matches the bot played, the more its own estimate counts. For a
bot that won no game or all games, its own estimate is 1.

The design effects of the bots can also be unlike, that is, very different. For example, two nearly identical bots play
many matches. In most matches, the better hand wins both games, so each bot wins one of them. Then the estimate from all
bots is nearly 0, which is wrong for the bots that did not play these matches. So if the own estimates of the bots
differ by more than chance explains, the estimate from all bots counts as at least 1, the design effect of independent
games.

A bot wins more against weak opponents than against strong ones. The schedule fixes the opponents, so these
differences are not random and must not count as variance. The variance is computed only from the differences between
matches against opponents of about the same strength.

In the shapes of arrays, n is the number of bots, and E the number of pairs (match, bot) in which the bot plays.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from referee.ratings.intervals import CONFIDENCE, Estimate, MatchSums, wilson_intervals
from referee.result_columns import Floats, Ints

_COMMON_WEIGHT = 20.0
"""The estimate from all bots counts as much as a bot's own estimate with this many degrees of freedom."""
_PRIOR_WEIGHT = 1.0
"""The estimate from all bots includes a design effect of 1 with this many degrees of freedom. It matters only after very few
matches."""
_UNLIKE = 2.0
"""For each bot, `_combine` computes the squared difference between its own estimate and the estimate from all bots, divided
by the variance of its own estimate. If the mean of these values exceeds this limit, the design effects count as unlike. If all
bots have the same design effect, the mean is about 1. With the limit 2, the intervals of plain round robins are up to 2 %
wider than if the design effects never counted as unlike."""
_NEGLIGIBLE = 1e-6
"""`_estimate_variances` sorts the matches of a bot, and compares the opponents of adjacent matches: their number and their
strength. If the squared differences add up to at most this, they come only from rounding."""


def win_share_intervals(sums: MatchSums) -> list[Estimate]:
    """Return for each bot the share of its games that it won, with Wilson's interval.

    A share of 0 or 1 has an interval too. A share from fewer than two matches has none.
    """
    games = sums.games.sum(axis=0)
    shares = sums.wins.sum(axis=0) / games
    spread = shares * (1 - shares)
    variances, freedom = _estimate_variances(sums, shares)
    # Usually a game has one winner, so the wins of all other bots determine those of the last bot.
    total = freedom.sum() * (1 - 1 / len(shares))
    own = np.divide(variances * games, spread, out=np.ones(len(shares)), where=spread > 0)
    common = _combine(own, freedom, freedom * spread, total)
    effects = (freedom * own + _COMMON_WEIGHT * common) / (freedom + _COMMON_WEIGHT)
    # an estimate for one bot is not more certain than that for all bots together
    effect_freedom = np.minimum(freedom + _COMMON_WEIGHT, total + _PRIOR_WEIGHT)
    quantiles = np.where(freedom > 0, stdtrit(effect_freedom, (1 + CONFIDENCE) / 2), np.nan)
    return wilson_intervals(shares, games / effects, quantiles)


def _combine(own: Floats, freedom: Floats, weights: Floats, total: float) -> float:
    """Return the design effect from all bots: at least 1 if the design effects of the bots are unlike.

    Args:
        own: (n,) the estimates of each bot.
        freedom: (n,) their degrees of freedom.
        weights: (n,) how much each estimate counts.
        total: the degrees of freedom of all estimates together.
    """
    if not weights.any():
        return 1.0
    common = float(
        (total * np.average(own, weights=weights) + _PRIOR_WEIGHT) / (total + _PRIOR_WEIGHT)
    )
    # an estimate with f degrees of freedom has a variance of about 2 common**2 / f
    distances = freedom * (own / common - 1) ** 2 / 2
    are_unlike = distances[weights > 0].mean() > _UNLIKE
    return max(1.0, common) if are_unlike else common


def _estimate_variances(sums: MatchSums, shares: Floats) -> tuple[Floats, Floats]:
    """Return the (n,) variances of the shares, given the opponents, and the (n,) degrees of freedom of these estimates.

    The surplus of a bot in a match is the number of games that it won, minus its share times the number of games that it
    played in the match. The matches of a bot are sorted by the number and the strength of the opponents. Adjacent matches
    then have similar opponents. The variance of the surplus is estimated as half of the mean squared difference between
    the surpluses of adjacent matches (von Neumann, Distribution of the ratio of the mean square successive difference to
    the variance, Annals of Mathematical Statistics 12, 1941). If all matches have equally many and equally strong
    opponents, the sample variance is used, because it is more exact.
    """
    match, bot = np.nonzero(sums.games)
    seats, strength = _describe_opponents(sums, match, bot)
    order = np.lexsort((strength, seats, bot))
    match, bot, seats, strength = match[order], bot[order], seats[order], strength[order]
    surplus = sums.wins[match, bot] - shares[bot] * sums.games[match, bot]
    same_bot = bot[1:] == bot[:-1]

    def add_differences(values: Floats) -> Floats:
        squares = np.diff(values)[same_bot] ** 2
        return np.bincount(bot[1:][same_bot], squares, len(shares)).astype(np.float64)

    matches = np.bincount(bot, minlength=len(shares)).astype(np.float64)
    steps = np.maximum(matches - 1, 1)
    opponents_differ = add_differences(seats) + add_differences(strength) > _NEGLIGIBLE
    sample_variance = np.bincount(bot, surplus**2, minlength=len(shares)) / steps
    match_variance = np.where(
        opponents_differ, add_differences(surplus) / (2 * steps), sample_variance
    )
    # Most surpluses occur in two adjacent differences, so these differences are not independent. Therefore the estimate
    # from differences has fewer degrees of freedom than the sample variance (von Neumann).
    freedom = np.where(opponents_differ, 2 * steps**2 / (3 * steps - 1), steps)
    variances = matches * match_variance / sums.games.sum(axis=0) ** 2
    return variances, np.where(matches > 1, freedom, 0.0)


def _describe_opponents(sums: MatchSums, match: Ints, bot: Ints) -> tuple[Floats, Floats]:
    """Return the (E,) number of seats of each match, and the (E,) sum of the opponents' mean points per game."""
    plays = (sums.games > 0).astype(np.float64)
    points = sums.points.sum(axis=0) / sums.games.sum(axis=0)
    return plays.sum(axis=1)[match], (plays @ points)[match] - points[bot]
