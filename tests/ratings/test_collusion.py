"""Test that hints at collusion are rare if nobody colludes, and which help is found."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom
from simulated import BETA, play, styles, tables

from referee.ratings import collusion
from referee.ratings.collusion import (
    _deviation_in_a_game,
    _PairEffects,
    _quantiles,
    collusion_figures,
)

pytestmark = pytest.mark.unmeasured

SHAPES = [(5, 3, 6), (6, 4, 10), (8, 4, 3), (6, 2, 30)]
"""Bots, seats, matches at each table."""


def simulated(bots=6):
    rng = np.random.default_rng(4)
    return play(rng.normal(25, 3, bots), tables(bots, 4, 20), rng)


def with_help(results, points, *, every=1):
    """Return the same games with more points for bot 0 in the games with bot 1; only in one of `every` matches."""
    helper = ((results.bot == 1).any(axis=1) & (results.match % every == 0))[:, None]
    more = points * (helper & (results.bot == 0))
    return replace(results, score=results.score + more.astype(np.int64))


def hints(results):
    return [(each.bot, each.other) for each in collusion_figures(results) if each.suspicious]


def tournaments(count, shape, *, style, common=1.0, help_by=0.0, seed=1):
    """Yield the hints of simulated tournaments in which bot 1 helps bot 0 by `help_by` standard deviations of points.

    `style` and `common` are the arguments `deviation` and `common` of `simulated.styles`.
    """
    rng = np.random.default_rng(seed)
    bots, seats, _ = shape
    for _ in range(count):
        effects, unit = styles(bots, seats, rng, deviation=style, common=common)
        effects[0, 1] += help_by * unit
        yield hints(play(rng.normal(25, BETA / 2, bots), tables(*shape), rng, effects=effects))


def test_independent_bots_are_not_suspected():
    found = collusion_figures(simulated())
    assert len(found) == 30
    assert not any(each.suspicious for each in found)
    assert np.mean([each.excess.low < 0 < each.excess.high for each in found]) > 0.8


def test_helped_bot_is_found():
    """Only that bot is found: not its helper, and not the bots that meet both."""
    results = with_help(simulated(), 20)
    assert hints(results) == [("bot00", "bot01")]
    [pair] = [each for each in collusion_figures(results) if each.suspicious]
    assert pair.excess.low <= 20 <= pair.excess.high
    assert pair.with_other > pair.without_other
    assert pair.limit < pair.excess.value


def test_means_are_those_of_the_games_with_and_without_the_other_bot():
    results = simulated()
    for pair in collusion_figures(results):
        bot, other = results.bots.index(pair.bot), results.bots.index(pair.other)
        together = (results.bot == other).any(axis=1)[:, None]
        own = results.bot == bot
        assert pair.with_other == pytest.approx(results.points[own & together].mean())
        assert pair.without_other == pytest.approx(results.points[own & ~together].mean())


def test_help_that_styles_explain_is_no_hint():
    """The excess is surely above 0, but smaller than 1.5 standard deviations of a bot's points in a game."""
    results = with_help(simulated(), 4)
    [pair] = [
        each for each in collusion_figures(results) if (each.bot, each.other) == ("bot00", "bot01")
    ]
    assert pair.excess.low > 0
    assert pair.excess.high < pair.limit
    assert not pair.suspicious


def test_excess_that_is_not_surely_above_the_practical_limit_is_no_hint():
    """If bot 1 helps only in every second match, the excess is less certain."""
    results = with_help(simulated(), 40, every=2)
    [pair] = [
        each for each in collusion_figures(results) if (each.bot, each.other) == ("bot00", "bot01")
    ]
    assert pair.excess.low < pair.limit < pair.excess.value
    assert not pair.suspicious


def test_help_above_the_excess_of_all_styles_but_below_the_practical_limit_is_no_hint():
    results = with_help(simulated(), 11)
    [pair] = [
        each for each in collusion_figures(results) if (each.bot, each.other) == ("bot00", "bot01")
    ]
    assert pair.limit == pytest.approx(1.5 * _deviation_in_a_game(results))
    assert 1.2 * _deviation_in_a_game(results) < pair.excess.low
    assert pair.excess.value < pair.limit
    assert not pair.suspicious


def test_limit_of_a_pair_comes_from_the_excesses_of_the_other_bots():
    """The excesses of all pairs of five bots are 1, except for one of 2."""
    bots = np.array(list(permutations(range(5), 2)))
    excess = np.ones(len(bots))
    excess[0] = 2
    limits = _PairEffects.style_limits(SimpleNamespace(bots=bots, excess=excess))
    # 20 excesses with the sum of squares 23 have 20 - 9 degrees of freedom, and 9 without the two bots themselves;
    # 3.833 is the quantile 1 - 0.05 / 20 of Student's t with 8 degrees of freedom
    for pair, own in (((0, 1), 5), ((1, 0), 5), ((3, 4), 2)):
        variance = (23 * 11 / 20 - own) / 9 * 20 / 11
        [at] = np.flatnonzero((bots == pair).all(axis=1))
        assert limits[at] == pytest.approx(3.833 * np.sqrt(variance), rel=1e-3)


def test_pairs_share_the_error_of_the_test_against_the_practical_limit():
    # the quantile 1 - 0.05 / 10 of Student's t with 9 degrees of freedom
    assert _quantiles(np.full(10, 9.0)) == pytest.approx(3.250, rel=1e-3)


def test_pairs_that_are_resampled_in_parts_have_the_same_figures(monkeypatch):
    together = collusion_figures(simulated())
    monkeypatch.setattr(collusion, "_CHUNK", 7 * 2_000)  # seven pairs at a time
    for part, whole in zip(collusion_figures(simulated()), together, strict=True):
        assert part.excess.low == pytest.approx(whole.excess.low)
        assert part.excess.high == pytest.approx(whole.excess.high)
        assert (part.limit, part.suspicious) == (whole.limit, whole.suspicious)


def test_a_large_excess_among_many_is_no_hint():
    """Each of six bots gains as much with the next one as a helped bot."""
    rng = np.random.default_rng(3)
    effects = np.zeros((6, 6))
    effects[np.arange(6), (np.arange(6) + 1) % 6] = 3 * BETA
    assert hints(play(np.full(6, 25.0), tables(6, 4, 20), rng, effects=effects)) == []


def test_a_weak_bot_helps_everybody_and_is_not_suspected():
    rng = np.random.default_rng(6)
    skills = np.array([25.0, 25, 25, 25, 25, 5])
    assert hints(play(skills, tables(6, 4, 20), rng)) == []


def test_points_of_a_stand_in_do_not_count():
    results = simulated()
    stands_in = np.zeros(results.bot.shape, dtype=bool)
    stands_in[:, 0] = True
    won_by_it = replace(results, score=np.where(stands_in, 30, 0), forfeited=stands_in)
    assert _deviation_in_a_game(won_by_it) == 0
    assert _deviation_in_a_game(replace(won_by_it, forfeited=np.zeros_like(stands_in))) > 8


def test_collusion_is_unknown_if_all_bots_always_meet():
    assert collusion_figures(simulated(bots=4)) == ()


def test_styles_of_three_bots_cannot_be_known():
    """Three bots have six excesses, and a strength and an effect each: too few to say what styles explain."""
    results = play(np.full(3, 25.0), tables(3, 2, 20), np.random.default_rng(1))
    found = collusion_figures(results)
    assert {each.limit for each in found} == {None}
    assert not any(each.suspicious for each in found)


@pytest.mark.extended("measures large schedules and long statistics")
@pytest.mark.parametrize(("style", "common"), [(0.2, 1.0), (0.5, 1.0), (1.0, 0.2)])
def test_hints_are_rare_if_nobody_colludes(style, common):
    found = [
        bool(hint)
        for seed, shape in enumerate(SHAPES)
        for hint in tournaments(8, shape, style=style, common=common, seed=seed)
    ]
    assert sum(found) <= binom.ppf(0.99, len(found), 0.05)


@pytest.mark.parametrize(("style", "least"), [(0.0, 10), (0.2, 9), (0.5, 2)])
def test_large_help_is_found(style, least):
    """With styles of 0.5 standard deviations, help of three deviations is hard to tell from a style."""
    found = list(tournaments(10, (8, 4, 4), style=style, help_by=3))
    assert sum(("bot00", "bot01") in hint for hint in found) >= least
    assert all(hint in ([], [("bot00", "bot01")]) for hint in found)
