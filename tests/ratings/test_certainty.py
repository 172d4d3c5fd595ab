"""Test the intervals and chances that `Certainty` computes from resamples: few matches make a figure less certain."""

from math import atan, pi, sqrt

import numpy as np
import pytest

from referee.ratings.intervals import Certainty, Estimate, wilson_intervals

DRAWN = np.array([[-1.0], [1.0]] * 1000)
"""A figure in the resamples, with the standard deviation 1."""
ZERO = np.zeros(1)
T = {2: 12.706, 3: 4.303, 5: 2.776}
"""By number of matches m: the 97.5 % quantile of Student's t with m - 1 degrees of freedom, from published tables."""


def certainty(matches):
    return Certainty(np.array([float(matches)]))


@pytest.mark.parametrize("matches", T)
def test_spread_of_the_resamples_is_enlarged_after_few_matches(matches):
    larger = sqrt(matches / (matches - 1))
    assert certainty(matches).deviation(DRAWN) == pytest.approx(larger, rel=1e-3)
    [interval] = certainty(matches).mean_intervals(ZERO, DRAWN)
    assert interval.high == -interval.low == pytest.approx(T[matches] * larger, rel=1e-3)
    [interval] = certainty(matches).percentile_intervals(ZERO, DRAWN)
    assert interval.high == -interval.low == pytest.approx(T[matches] / 1.96 * larger, rel=1e-3)


def test_spread_of_the_resamples_is_right_after_very_many_matches():
    assert certainty(1e9).deviation(DRAWN) == pytest.approx(1, rel=1e-3)
    [interval] = certainty(1e9).percentile_intervals(ZERO, DRAWN)
    assert interval.high == pytest.approx(1, rel=1e-3)


def test_percentile_interval_is_at_least_as_wide_as_the_least_variance_makes_it():
    for least, margin in ((0.1, T[5] / 1.96 * sqrt(5 / 4)), (4.0, T[5] * 2)):
        [interval] = certainty(5).percentile_intervals(ZERO, DRAWN, np.array([least]))
        assert interval.high == -interval.low == pytest.approx(margin, rel=1e-3)


def test_chance_of_two_matches_has_one_degree_of_freedom():
    """With one degree of freedom, Student's t is the Cauchy distribution."""
    chance = certainty(2).chance(3.0, DRAWN)
    assert chance == pytest.approx(0.5 + atan(3 / sqrt(2)) / pi, rel=1e-3)


def test_one_match_gives_no_chance_and_no_interval():
    alone = certainty(1)
    assert alone.chance(3.0, DRAWN) is None
    assert alone.mean_intervals(ZERO, DRAWN) == [Estimate(0.0, None, None)]
    assert alone.percentile_intervals(ZERO, DRAWN) == [Estimate(0.0, None, None)]


@pytest.mark.parametrize("games", [40.0, 400.0])
def test_share_has_the_interval_of_as_many_independent_games_as_its_spread_shows(games):
    half, deviation = np.array([0.5]), 0.05
    [found] = certainty(5).share_intervals(half, half + deviation * DRAWN, np.array([games]))
    independent = 0.25 / (deviation * sqrt(5 / 4)) ** 2
    [wanted] = wilson_intervals(half, np.array([independent]), np.array([T[5]]))
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), rel=1e-3)


def test_share_that_is_equal_in_each_match_has_the_interval_of_its_games():
    """The resamples differ only by a rounding error."""
    half, games = np.array([0.5]), np.array([40.0])
    [found] = certainty(5).share_intervals(half, half + 1e-12 * DRAWN, games)
    [wanted] = wilson_intervals(half, games, np.array([T[5]]))
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), rel=1e-3)
