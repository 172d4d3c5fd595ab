"""Test the allowed errors of looks against published values and against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

from referee.ratings.boundary import allowed_errors
from referee.ratings.stopping import look_rounds


def test_one_look_spends_the_whole_error():
    assert allowed_errors((1,), 0.05) == pytest.approx([0.05])
    assert allowed_errors((60,), 0.001) == pytest.approx([0.001])


def test_five_looks_have_the_bounds_that_are_published_for_even_spending():
    # Lan and DeMets 1983, table 1, column of the spending function in proportion to time; one side, 0.025
    bounds = -ndtri(allowed_errors((1, 2, 3, 4, 5), 0.025))
    assert bounds == pytest.approx([2.58, 2.49, 2.41, 2.34, 2.28], abs=0.006)


@pytest.mark.parametrize("error", [0.05, 0.005])
def test_looks_spend_the_error_together(error):
    looks = tuple(look_rounds(60))
    rng = np.random.default_rng(1)
    rounds = rng.normal(size=(50_000, 60)).cumsum(axis=1)[:, np.array(looks) - 1]
    wrong = (rounds / np.sqrt(looks) > -ndtri(allowed_errors(looks, error))).any(axis=1)
    assert wrong.mean() == pytest.approx(error, abs=4 * np.sqrt(error / 50_000))


@pytest.mark.parametrize("error", [0.05, 0.005])
def test_looks_spend_no_more_if_an_open_pair_plays_more_games_after_the_fifth(error):
    looks = tuple(look_rounds(20))
    data = np.array([look + 49 * max(0, look - 5) for look in looks], dtype=float)
    rng = np.random.default_rng(1)
    steps = rng.normal(size=(50_000, len(looks))) * np.sqrt(np.diff(data, prepend=0))
    leads = steps.cumsum(axis=1) / np.sqrt(data)
    allowed = [allowed_errors(looks, error, tuple(data[: at + 1]))[-1] for at in range(len(looks))]
    wrong = (leads > -ndtri(allowed)).any(axis=1).mean()
    assert wrong == pytest.approx(error, abs=4 * np.sqrt(error / 50_000))
    by_rounds = (leads > -ndtri(allowed_errors(looks, error))).any(axis=1).mean()
    assert by_rounds > wrong, "the data must count, not the rounds"


def test_look_without_new_data_has_a_bound():
    assert all(0 < each < 0.05 for each in allowed_errors((1, 2, 3), 0.05, (1.0, 1.0, 1.0)))


@pytest.mark.parametrize("rounds", [2, 60, 10_000, 1_000_000])
def test_later_looks_need_less_certainty_but_more_than_a_single_test(rounds):
    looks = tuple(look_rounds(rounds))
    errors = allowed_errors(looks, 0.05)
    assert errors[0] == pytest.approx(0.05 / rounds)
    assert list(errors) == sorted(errors)
    assert 0.05 / len(looks) < errors[-1] < 0.05
    assert sum(errors) > 0.05, "a later test may be wrong together with an earlier one"
