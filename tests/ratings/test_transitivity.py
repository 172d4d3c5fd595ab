"""Test that results which one number per bot cannot explain are found, and that others raise few false alarms."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from hand_made import game_result
from scipy.special import stdtr
from scipy.stats import binom
from simulated import BETA, cycle, games, play, tables

from referee.ratings.analysis import Analysis
from referee.result_columns import ResultColumns

pytestmark = pytest.mark.unmeasured

ALARMS = 0.05
"""The wanted rate of false alarms."""
POWER = 0.95
"""The wanted share of the cycles that are found."""
SHAPES = [(4, 2, 10), (6, 2, 8), (5, 3, 3), (8, 4, 1), (6, 5, 5), (10, 3, 1)]
"""Bots, seats, matches at each table."""


def transitivity(*played):
    return Analysis(ResultColumns.from_results(played).by_ruleset()["basic"]).transitivity


def duels(winner, loser, matches, *, first=0):
    """Return both games of each match, all won by the same bot."""
    return [
        game_result(bots, ranks, match=first + match)
        for match in range(matches)
        for bots, ranks in (((winner, loser), (1, 2)), ((loser, winner), (2, 1)))
    ]


def circle(matches=10):
    """Return the games of three bots: a beats b, b beats c, c beats a."""
    return [
        *duels("a", "b", matches),
        *duels("b", "c", matches, first=100),
        *duels("c", "a", matches, first=200),
    ]


def tournaments(count, shape, *, spread, seed, effects=None, tie=0.0, chosen=False):
    """Yield `Transitivity` of simulated tournaments.

    Args:
        spread: the standard deviation of skills, in standard deviations of a performance.
        chosen: play only a random part of the matches, some pairs much more often than others.
    """
    rng = np.random.default_rng(seed)
    bots, seats, matches = shape
    few = len(tables(bots, seats, 1))
    for _ in range(count):
        seating = tables(*shape)
        if chosen:
            frequency = np.tile(rng.random(few), matches)
            seating = seating[rng.random(len(seating)) < frequency]
        skills = rng.normal(25, spread * BETA, bots)
        yield Analysis(play(skills, seating, rng, effects=effects, tie=tie)).transitivity


def test_circle_of_three_bots_is_found():
    found = transitivity(*circle())
    assert found.p_value < 0.01
    assert found.misleads
    assert {(each.bot, each.other) for each in found.pairs} == {
        ("a", "b"),
        ("b", "c"),
        ("c", "a"),
    }
    for each in found.pairs:
        assert (each.matches, each.decided, each.sure) == (10, 20, True)
        assert each.share.value == 1
        assert each.share.low > each.predicted == pytest.approx(0.5)


def test_order_of_strength_is_no_deviation():
    found = transitivity(
        *duels("a", "b", 10), *duels("b", "c", 10, first=100), *duels("a", "c", 10, first=200)
    )
    assert not found.misleads
    assert not any(each.sure for each in found.pairs)


def test_two_bots_cannot_contradict_their_ratings():
    found = transitivity(*duels("a", "b", 10))
    assert (found.p_value, found.misleads) == (None, False)
    [pair] = found.pairs
    assert (pair.bot, pair.other, pair.sure) == ("a", "b", False)


def test_few_matches_prove_nothing():
    assert not transitivity(*circle(matches=1)).misleads


def test_residuals_are_enlarged_because_the_skills_were_fitted_to_them():
    """Six matches have four more comparisons than there are differences of skill.

    So residuals are 6/4 times as large. Then the sum of six random signs is large enough if at most one of them differs: in
    14 of 64 cases. Without the factor it would be in 2 of 64 cases.
    """
    assert transitivity(*circle(matches=2)).p_value == pytest.approx(14 / 64, abs=0.03)


def test_link_with_flatter_ends_is_no_deviation():
    """Leads become shares by Student's t with two degrees of freedom, not by the normal distribution."""
    matches, played = 150, []
    for worse, better in combinations(range(5), 2):
        wins = round(matches * stdtr(2, 1.2 * (better - worse)))
        played += [
            game_result(
                ("abcde"[better], "abcde"[worse]),
                (1, 2) if number < wins else (2, 1),
                match=len(played) + number,
            )
            for number in range(matches)
        ]
    assert transitivity(*played).p_value > 0.5


def test_ties_are_left_out():
    ties = [
        game_result(bots, (1, 1), match=300 + number)
        for number, bots in enumerate(permutations("abc", 2))
    ]
    with_ties, without = transitivity(*circle(), *ties), transitivity(*circle())
    assert [each.decided for each in with_ties.pairs] == [20, 20, 20]
    assert [each.share for each in with_ties.pairs] == [each.share for each in without.pairs]
    only_ties = transitivity(*ties)
    assert (only_ties.p_value, only_ties.pairs) == (None, ())


def test_ties_by_chance_between_unequal_bots_are_no_deviation():
    """If a tie counted half, the share of a strong bot would be lower than any rating says."""
    rng = np.random.default_rng(5)
    results = play(np.linspace(10, 40, 6), tables(6, 2, 30), rng)
    tied = rng.random(len(results)) < 0.3
    some_ties = replace(results, rank=np.where(tied[:, None], 1, results.rank))
    assert not Analysis(some_ties).transitivity.misleads


def test_forfeits_are_left_out():
    forfeits = [
        game_result(bots, (1, 2), match=300 + number, forfeited=(1,))
        for number, bots in enumerate(permutations("abc", 2))
    ]
    with_forfeits, without = transitivity(*circle(), *forfeits), transitivity(*circle())
    assert [(each.matches, each.decided) for each in with_forfeits.pairs] == [(10, 20)] * 3
    assert with_forfeits.p_value == without.p_value


@pytest.mark.parametrize("seed", range(3))
def test_strong_bot_that_often_crashes_is_no_deviation(seed):
    rng = np.random.default_rng(seed)
    results = play(np.array([35.0, 30, 25, 25, 20, 15]), tables(6, 2, 60), rng)
    crashed = (results.bot == 0) & (rng.random((len(results), 1)) < 0.3)
    rank = np.where(crashed.any(axis=1, keepdims=True), 1 + crashed, results.rank)
    forfeited = replace(results, rank=rank, forfeited=crashed)
    assert not Analysis(forfeited).transitivity.misleads


@pytest.mark.extended("measures large schedules and long statistics")
@pytest.mark.parametrize("spread", [0.4, 2.0])
def test_false_alarms_are_rare_if_one_number_explains_all(spread):
    """Half of the tournaments have ties, and half of them are unbalanced."""
    found = [
        each.misleads
        for seed, shape in enumerate(SHAPES)
        for tie in (0, BETA / 2)
        for chosen in (False, True)
        for each in tournaments(8, shape, spread=spread, seed=seed, tie=tie, chosen=chosen)
    ]
    assert sum(found) <= binom.ppf(0.99, len(found), ALARMS)


@pytest.mark.parametrize("spread", [0.4, 1.0, 2.0])
def test_cycle_of_one_deviation_of_a_performance_is_found(spread):
    found = [
        each.misleads
        for each in tournaments(20, (6, 2, 30), spread=spread, seed=1, effects=cycle(6, BETA))
    ]
    assert sum(found) >= binom.ppf(0.01, len(found), POWER)


def test_named_pairs_are_those_of_the_cycle():
    [found] = tournaments(1, (6, 2, 30), spread=0.4, seed=2, effects=cycle(6, BETA))
    named = [(int(each.bot[3:]), int(each.other[3:])) for each in found.pairs if each.sure]
    assert len(named) >= 3
    assert all((bot + 1) % 6 == other for bot, other in named)
    for each in found.pairs:
        assert each.share.value >= each.predicted
        assert 0 <= each.share.low < each.share.value < each.share.high <= 1


def test_order_of_games_does_not_matter():
    results = list(games(play(np.full(5, 25.0), tables(5, 3, 3), np.random.default_rng(1))))
    assert transitivity(*results).pairs == transitivity(*results[::-1]).pairs
