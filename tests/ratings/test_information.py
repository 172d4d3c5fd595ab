"""The gain of a match, and what is known before and after it."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import log_ndtr
from simulated import play, tables

from referee.ratings.analysis import Analysis
from referee.ratings.information import Beliefs, PairSums
from referee.ratings.trueskill import Settings
from referee.records import Meetings

SETTINGS = Settings()
SCALE = np.sqrt(2) * SETTINGS.beta
SKILLS = np.array([28.0, 27.0, 25.0, 20.0])


@pytest.fixture
def games():
    """Return the games of four bots: five matches of each two."""
    return play(SKILLS, tables(4, 2, 5), np.random.default_rng(3))


def know(games):
    return Beliefs.from_sums(PairSums.from_results(games.bots, games))


def lead_variances(beliefs):
    """Return the variance of the lead of each pair."""
    c = beliefs.covariance
    return np.array([c[a, a] + c[b, b] - 2 * c[a, b] for a, b in combinations(range(len(c)), 2)])


def test_sums_are_those_of_each_pair_of_the_named_bots(games):
    sums = PairSums.from_results(("bot03", "new", "bot01"), games)
    theirs = Analysis(games).pair("bot03", "bot01")
    better = theirs.wins + theirs.draws / 2
    assert sums.list_meetings() == ((0, 2, theirs.meetings, better),)
    assert (sums + sums).list_meetings() == ((0, 2, 2 * theirs.meetings, 2 * better),)
    again = PairSums.from_meetings(3, sums.list_meetings())
    assert again.list_meetings() == sums.list_meetings()


def test_meetings_at_a_table_of_four_weigh_one_half():
    games = play(SKILLS, np.array([[0, 1, 2, 3]]), np.random.default_rng(1))
    assert PairSums.from_results(games.bots, games).compared.sum() == 2 * 6


def test_covariance_is_the_inverse_of_the_curvature_of_the_log_posterior(games):
    sums = PairSums.from_results(games.bots, games)
    beliefs = know(games)

    def log_posterior(skills):
        value = -np.sum((skills - SETTINGS.mu) ** 2) / 2 / SETTINGS.sigma**2
        for a, b, compared, better in sums.list_meetings():
            lead = (skills[a] - skills[b]) / SCALE
            value += better * log_ndtr(lead) + (compared - better) * log_ndtr(-lead)
        return value

    step = 1e-3
    moves = np.eye(4) * step
    curvature = [
        [
            sum(
                sign * log_posterior(beliefs.skills + first * moves[a] + second * moves[b])
                for first, second, sign in ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
            )
            / (4 * step**2)
            for b in range(4)
        ]
        for a in range(4)
    ]
    assert np.allclose(beliefs.covariance, np.linalg.inv(-np.array(curvature)), rtol=1e-4)


def test_match_makes_its_own_pair_and_every_other_pair_more_certain(games):
    before, after = know(games), know(games).after_match((0, 3))
    fall = lead_variances(before) - lead_variances(after)
    assert fall.argmax() == 2  # the pair of bots 0 and 3
    assert (fall > 0).all()
    assert (after.skills == before.skills).all()


def test_match_of_more_bots_is_the_same_as_matches_of_its_pairs(games):
    whole = know(games).after_match((0, 1, 2)).covariance
    single = know(games)
    for pair in ((0, 1), (0, 2), (1, 2)):
        single = single.after_match(pair)
    assert np.allclose(whole, single.covariance)


def test_uncertainty_after_a_match_is_that_of_a_fit_with_its_expected_result():
    """With equal skills, the expected result of two games is one win each."""
    no_games = Beliefs.from_sums(PairSums.from_meetings(3, ()))
    played = PairSums.from_meetings(3, [Meetings(0, 1, 2, 1)])
    expected = Beliefs.from_sums(played).covariance
    assert np.allclose(no_games.after_match((0, 1)).covariance, expected)


def test_gain_adds_up_how_much_every_other_lead_becomes_more_certain(games):
    before, gains = know(games), know(games).gains()
    leads = [before.skills[a] - before.skills[b] for a, b in combinations(range(4), 2)]
    variances = lead_variances(before)
    exponents = np.square(np.maximum(np.abs(leads) / np.sqrt(variances) - 1, 0)) / 2
    rate = np.exp(exponents.min() - exponents) / np.sqrt(variances)
    for pair in combinations(range(4), 2):
        fall = variances - lead_variances(before.after_match(pair))
        assert gains[pair] == pytest.approx(rate @ fall)


def test_gains_are_symmetric_and_a_bot_gains_nothing_against_itself(games):
    gains = know(games).gains()
    assert np.allclose(gains, gains.T, rtol=1e-12)
    assert (gains.diagonal() == 0).all()
    assert (gains[~np.eye(4, dtype=bool)] > 0).all()


def test_leads_within_one_deviation_do_not_decide_who_plays():
    """Else a bot that did badly by chance would rarely play again. Such gains differ only because a match of unequal bots tells less."""
    deviation = np.sqrt(2)  # of each lead
    close = Beliefs(np.array([25.0, 25, 25, 25 - deviation]), np.eye(4), SETTINGS).gains()
    far = Beliefs(np.array([25.0, 25, 25, 25 - 3 * deviation]), np.eye(4), SETTINGS).gains()
    assert close[0, 3] == pytest.approx(close[0, 1], rel=0.02)
    assert far[0, 3] < 0.8 * far[0, 1]


def test_gain_is_largest_for_neighbours_if_all_are_equally_certain():
    known = Beliefs(np.array([30.0, 26, 25, 20]), np.eye(4), SETTINGS)
    gains = known.gains()
    assert np.unravel_index(gains.argmax(), gains.shape) == (1, 2)


def test_gain_is_largest_for_the_new_bot_if_others_are_well_known():
    known = Beliefs(np.array([30.0, 26, 25, 20]), np.diag([0.5, 0.5, 0.5, 60]), SETTINGS)
    gains = known.gains()
    assert 3 in np.unravel_index(gains.argmax(), gains.shape)
