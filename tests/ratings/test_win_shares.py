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


def join(two, three):
    """Return the games of two seats and then those of three seats."""

    def wide(values, fill):
        return np.pad(values, ((0, 0), (0, 1)), constant_values=fill)

    return replace(
        three,
        ruleset=np.concatenate([two.ruleset, three.ruleset]),
        match=np.concatenate([two.match, three.match + two.matches]),
        bot=np.concatenate([wide(two.bot, -1), three.bot]),
        score=np.concatenate([wide(two.score, 0), three.score]),
        rank=np.concatenate([wide(two.rank, 0), three.rank]),
        forfeited=np.concatenate([wide(two.forfeited, 0), three.forfeited]),
        strikes=np.concatenate([wide(two.strikes, 0), three.strikes]),
        machine=np.concatenate([two.machine, three.machine]),
        fresh_deal=np.concatenate([two.fresh_deal, three.fresh_deal]),
    )
