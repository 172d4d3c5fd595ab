"""Test intervals for the share of games won: what they cover, and what makes them narrower."""

from dataclasses import replace

import numpy as np
import pytest
from hand_made import game_result
from simulated import covers, play, tables, true_win_shares

from referee.ratings.intervals import sum_matches, wilson_intervals
from referee.ratings.win_shares import _estimate_variances, win_share_intervals
from referee.result_columns import ResultColumns

PER_BOT = 12
MEASURES = "measures large schedules and long statistics"


def circle(bots, seats, matches):
    """Return a schedule in which each bot plays `matches` matches, against neighbours on a circle."""
    rounds = matches // seats
    return np.array([(bot + np.arange(seats)) % bots for _ in range(rounds) for bot in range(bots)])


def width(estimate):
    return estimate.high - estimate.low


@pytest.mark.parametrize(
    ("bots", "seats", "spread"),
    [
        (4, 2, 1.5),
        *(
            pytest.param(*shape, marks=pytest.mark.extended(MEASURES))
            for shape in [(3, 3, 0.5), (8, 4, 4.0), (10, 2, 4.0)]
        ),
    ],
)
def test_95_of_100_intervals_cover_the_true_share(bots, seats, spread):
    rng = np.random.default_rng(7)
    seating = circle(bots, seats, PER_BOT)
    covered = []
    for _ in range(1200 // bots):
        skills = rng.normal(25, spread, bots)
        found = win_share_intervals(sum_matches(play(skills, seating, rng)))
        covered += map(covers, found, true_win_shares(skills, seating))
    assert 0.93 <= np.mean(covered) <= 0.97


@pytest.mark.extended(MEASURES)
@pytest.mark.parametrize(("bots", "seats"), [(2, 2), (3, 3), (10, 5)])
def test_intervals_after_few_matches_cover_at_least_93_of_100(bots, seats):
    rng = np.random.default_rng(7)
    seating = tables(bots, seats, 2) if bots == seats else circle(bots, seats, seats)
    covered = []
    for _ in range(1200 // bots):
        skills = rng.normal(25, 1.5, bots)
        found = win_share_intervals(sum_matches(play(skills, seating, rng)))
        covered += map(covers, found, true_win_shares(skills, seating))
    assert np.mean(covered) >= 0.93


def test_bot_has_no_interval_after_one_match():
    results = play(np.full(4, 25.0), np.array([[0, 1], [0, 2], [1, 3]]), np.random.default_rng(1))
    found = win_share_intervals(sum_matches(results))
    assert [each.low is None for each in found] == [False, False, True, True]
    assert [each.high is None for each in found] == [False, False, True, True]


def test_two_bots_after_four_matches_have_the_interval_of_the_formula():
    """Both have the variance 1/12 with 3 degrees of freedom: 4/3 times that of independent games."""
    ranks = [(1, 2), (1, 2), (2, 1), (2, 1)]
    played = [game_result("ab", each, match=match) for match, each in enumerate(ranks)]
    results = ResultColumns.from_results(played).by_ruleset()["basic"]
    common = (3 * 4 / 3 + 1) / (
        3 + 1
    )  # the wins of the two bots depend on each other: 3 degrees, not 6
    games = 4 / ((3 * 4 / 3 + 20 * common) / 23)
    quantile = 2.776  # of Student's t with 3 + 1 degrees of freedom
    half = np.array([0.5])
    [wanted] = wilson_intervals(half, np.array([games]), np.array([quantile]))
    for found in win_share_intervals(sum_matches(results)):
        assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), rel=1e-3)


def test_matches_that_the_hand_decides_do_not_narrow_the_interval_of_other_bots():
    """The own estimate of a and b is 4/3 (3 degrees of freedom), that of c and d is 0. So the common estimate must be at least 1."""
    ranks = [(1, 2), (1, 2), (2, 1), (2, 1)]
    played = [game_result("ab", each, match=match) for match, each in enumerate(ranks)]
    for match in range(4, 34):
        played += [game_result(bots, (1, 2), match=match) for bots in ("cd", "dc")]
    found = win_share_intervals(
        sum_matches(ResultColumns.from_results(played).by_ruleset()["basic"])
    )
    games = 4 / ((3 * 4 / 3 + 20 * 1) / 23)
    quantile = 2.069  # of Student's t with 3 + 20 degrees of freedom
    half = np.array([0.5])
    [wanted] = wilson_intervals(half, np.array([games]), np.array([quantile]))
    for each in found[:2]:
        assert (each.low, each.high) == pytest.approx((wanted.low, wanted.high), rel=1e-3)


def test_a_frequent_pair_of_alike_bots_leaves_the_intervals_of_the_others_wide_enough():
    """Without the limit of 1, only 88 of 100 intervals of the other bots cover the true share."""
    rng = np.random.default_rng(2)
    seating, more = tables(6, 2, 3), tables(2, 2, 300)
    covered = []
    for _ in range(100):
        skills = rng.normal(25, 3, 6)
        skills[1] = skills[0]
        results = join(play(skills, seating, rng), play(skills, more, rng, luck=0.97))
        found = win_share_intervals(sum_matches(results))
        truth = true_win_shares(skills, np.concatenate([seating, more]))
        covered += map(covers, found[2:], truth[2:])
    assert np.mean(covered) >= 0.93


def test_variance_from_differences_of_neighbours_has_fewer_degrees_of_freedom():
    """Each of three bots meets two others of unlike strength, in four matches."""
    results = play(np.array([75.0, 50.0, 25.0]), circle(3, 2, 4), np.random.default_rng(1))
    sums = sum_matches(results)
    _, freedom = _estimate_variances(sums, sums.wins.sum(axis=0) / sums.games.sum(axis=0))
    assert freedom.tolist() == [2.25] * 3


def test_different_opponents_do_not_make_the_interval_wider():
    """The middle bot of three always beats the last and always loses to the first, so its share is 1/2 without any chance."""
    seating = circle(3, 2, 60)
    results = play(np.array([75.0, 50.0, 25.0]), seating, np.random.default_rng(1))
    _, middle, _ = win_share_intervals(sum_matches(results))
    assert middle.value == 0.5
    assert width(middle) < 0.1


def test_matches_with_more_opponents_do_not_make_the_interval_wider():
    """At a table of two the first bot wins all games, at a table of three it loses all games to the last."""
    rng = np.random.default_rng(1)
    skills = np.array([50.0, 25.0, 75.0])
    two, three = (play(skills, np.array([table] * 30), rng) for table in ([0, 1], [0, 1, 2]))
    both = join(two, three)
    first, *_ = win_share_intervals(sum_matches(both))
    assert first.value == pytest.approx(0.4)
    assert width(first) < 0.1


def join(one, other):
    """Return the games of `one` and then those of `other`, which may have more seats."""
    more = other.bot.shape[1] - one.bot.shape[1]

    def wide(values, fill):
        return np.pad(values, ((0, 0), (0, more)), constant_values=fill)

    return replace(
        other,
        ruleset=np.concatenate([one.ruleset, other.ruleset]),
        match=np.concatenate([one.match, other.match + one.matches]),
        bot=np.concatenate([wide(one.bot, -1), other.bot]),
        score=np.concatenate([wide(one.score, 0), other.score]),
        rank=np.concatenate([wide(one.rank, 0), other.rank]),
        forfeited=np.concatenate([wide(one.forfeited, 0), other.forfeited]),
        strikes=np.concatenate([wide(one.strikes, 0), other.strikes]),
        machine=np.concatenate([one.machine, other.machine]),
        fresh_deal=np.concatenate([one.fresh_deal, other.fresh_deal]),
    )
