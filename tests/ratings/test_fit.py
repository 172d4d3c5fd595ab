"""Test that the fit is the most likely one and does not depend on the order of games."""

from __future__ import annotations

import random
from itertools import permutations

import numpy as np
import pytest
from hand_made import game_result
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_ndtr
from simulated import games, play, tables, true_ratings

from referee.ratings.analysis import Analysis
from referee.ratings.fit import find_beaten, fit
from referee.ratings.trueskill import Settings, rate
from referee.result_columns import ResultColumns

SETTINGS = Settings()
SCALE = np.sqrt(2) * SETTINGS.beta


def analysis(played):
    return Analysis(ResultColumns.from_results(played).by_ruleset()["basic"])


def duel(match, winner, loser):
    return game_result((winner, loser), (1, 2), (5, 1), match=match)


@st.composite
def outcomes(draw):
    """Draw pairs of up to five bots, how often each pair met, and how often the first was better."""
    bots = draw(st.integers(2, 5))
    pairs = [(a, b) for a in range(bots) for b in range(a + 1, bots)]
    met = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    times = [draw(st.integers(1, 40)) for _ in met]
    won = [draw(st.integers(0, 2 * time)) / 2 for time in times]
    return bots, np.array(met), np.array([times], dtype=float), np.array([won])


@given(outcomes())
def test_fit_is_the_maximum_of_the_likelihood(outcome):
    """A general optimiser finds the same maximum, and no better one."""
    bots, pairs, times, won = outcome
    priors = np.full((1, bots), SETTINGS.mu)

    def minus_log_likelihood(skills):
        lead = (skills[pairs[:, 0]] - skills[pairs[:, 1]]) / SCALE
        likely = won[0] @ log_ndtr(lead) + (times[0] - won[0]) @ log_ndtr(-lead)
        return ((skills - SETTINGS.mu) ** 2).sum() / (2 * SETTINGS.sigma**2) - likely

    skills = fit(pairs, times, won, priors, SETTINGS)[0]
    found = minimize(minus_log_likelihood, priors[0], method="BFGS", options={"gtol": 1e-7})
    assert minus_log_likelihood(skills) <= found.fun + 1e-9
    assert skills == pytest.approx(found.x, abs=0.01)


def test_many_fits_at_once_equal_separate_fits():
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    times = np.array([[10.0, 10, 10], [4, 0, 7]])
    won = np.array([[7.0, 9, 5.5], [4, 0, 3]])
    priors = np.array([[25.0, 25, 25], [20, 30, 25]])
    both = fit(pairs, times, won, priors, SETTINGS)
    for each in range(2):
        alone = fit(
            pairs,
            times[[each]],
            won[[each]],
            priors[[each]],
            SETTINGS,
            start=np.array([0.0, 50, 9]),
        )
        assert both[each] == pytest.approx(alone[0], abs=1e-6)


def test_bot_that_always_wins_has_a_finite_rating():
    ratings = analysis([duel(match, "a", "b") for match in range(10_000)]).ratings
    assert np.isfinite(ratings).all()
    assert 20 < ratings[0] - ratings[1] < 80


def test_beaten_are_found_over_a_chain_of_bots():
    pairs = np.array([(0, 1), (1, 2), (2, 3), (0, 4)])
    better, worse = np.array([2.0, 1.0, 0.5, 0.0]), np.array([0.0, 0.0, 0.5, 0.0])
    beaten = find_beaten(pairs, better, worse, 5)
    assert {(a, b) for a, b in np.argwhere(beaten).tolist() if a != b} == {
        *((0, 1), (0, 2), (0, 3)),
        *((1, 2), (1, 3)),
        *((2, 3), (3, 2)),  # a tie
    }


def test_tied_bots_get_equal_ratings():
    tied = [game_result(("a", "b", "c"), (1, 1, 1), (3, 3, 3), match=match) for match in range(5)]
    assert analysis(tied).ratings == pytest.approx([25, 25, 25])


def test_of_bots_that_never_met_the_one_with_the_stronger_victim_is_better():
    played = [duel(1, "a", "c"), duel(2, "c", "d"), duel(3, "b", "d")]
    found = analysis(played)
    pair = found.pair("a", "b")
    assert pair.meetings == 0
    assert pair.lead is None
    assert pair.rating_lead.value > 0


@pytest.mark.parametrize("seats", [2, 3, 4, 5])
def test_the_order_of_games_and_of_bots_changes_nothing(seats):
    """For the same games, sequential TrueSkill changes by several sigma."""
    rng = np.random.default_rng(1)
    played = list(games(play(rng.normal(25, 3, 6), tables(6, seats, 3), rng)))
    shuffled = random.Random(1).sample(played, len(played))
    before, after = analysis(played), analysis(shuffled)
    assert (before.ratings == after.ratings).all()
    assert before.bots() == after.bots()
    assert before.pairs() == after.pairs()


def test_sequential_ratings_depend_on_the_order():
    """Otherwise the fit would not be needed."""
    rng = np.random.default_rng(1)
    played = list(games(play(rng.normal(25, 3, 6), tables(6, 4, 10), rng)))
    one, other = (rate(each)["basic"] for each in (played, played[::-1]))
    assert max(abs(one[bot].mu - other[bot].mu) / one[bot].sigma for bot in one) > 0.1


def test_fit_finds_the_strengths_of_simulated_bots():
    rng = np.random.default_rng(2)
    skills = rng.normal(25, 4, 8)
    found = Analysis(play(skills, tables(8, 4, 60), rng))
    assert found.ratings == pytest.approx(true_ratings(skills, found.centre), abs=0.35)


def test_game_of_k_seats_counts_as_k_minus_1_comparisons():
    """So large tables do not count for more than the information they give."""
    order = ("a", "b", "c", "d")
    large = game_result(order, (1, 2, 3, 4), (4, 3, 2, 1), match=1)
    pairs = [duel(n, a, b) for n, (a, b) in enumerate(permutations(order, 2)) if a < b]
    as_large, as_pairs = analysis([large] * 2).ratings, analysis(pairs).ratings
    assert as_large == pytest.approx(as_pairs, abs=1e-6)
