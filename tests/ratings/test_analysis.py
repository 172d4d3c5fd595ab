"""Test the estimates of bots and pairs, and that their intervals cover the true values."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from itertools import combinations, permutations

import numpy as np
import pytest
from hand_made import game_result
from simulated import (
    covers,
    games,
    play,
    tables,
    true_ratings,
    true_scores,
    true_win_shares,
)

from referee.ratings.analysis import Analysis, MeetingFigures
from referee.ratings.intervals import Estimate, Resampling
from referee.result_columns import ResultColumns

pytestmark = pytest.mark.unmeasured
LONG = pytest.mark.extended("measures large schedules and long statistics")

FIRST = game_result(("a", "b", "c"), (1, 2, 2), (9, 4, 4), match=1)
FORFEITED = game_result(("b", "c", "a"), (3, 2, 1), (8, 1, 5), match=2, forfeited=(0,))
TIED = game_result(("a", "b", "c"), (1, 1, 3), (6, 6, 0), match=2)


def analysis(*played):
    return Analysis(ResultColumns.from_results(played).by_ruleset()["basic"])


def duel(winner, loser, match):
    return game_result((winner, loser), (1, 2), (1, 0), match=match)


def simulated(matches=6, bots=5, spread=3.0, seed=1):
    rng = np.random.default_rng(seed)
    return play(rng.normal(25, spread, bots), tables(bots, 4, matches), rng)


def test_values_are_those_of_the_games():
    found = {each.bot: each for each in analysis(FIRST, FORFEITED, TIED).bots()}
    assert {bot: each.matches for bot, each in found.items()} == {"a": 2, "b": 2, "c": 2}
    assert {bot: each.points for bot, each in found.items()} == {"a": 20, "b": 11, "c": 5}
    assert found["a"].score.value == pytest.approx(20 / 3)
    assert found["a"].win_share.value == 1
    assert found["b"].win_share.value == pytest.approx(1 / 3)
    assert found["c"].win_share.value == 0


def test_a_forfeit_is_no_win_even_if_nobody_ranks_higher():
    both = replace(FORFEITED, ranks=(1, 1, 1), forfeited=(0, 1, 2))
    assert [each.win_share.value for each in analysis(both).bots()] == [0, 0, 0]


def test_pairs_are_compared_in_both_directions():
    found = analysis(FIRST, FORFEITED, TIED)
    one, other = found.pair("a", "b"), found.pair("b", "a")
    assert (one.meetings, one.matches) == (3, 2)
    assert one.better == pytest.approx((1 + 1 + 0.5) / 3)
    assert (one.wins, one.draws, one.losses) == (2, 1, 0)
    assert (other.wins, other.draws, other.losses) == (0, 1, 2)
    assert other.better == pytest.approx(1 - one.better)
    assert one.lead.value == pytest.approx((5 + (5 - 1) + 0) / 3)
    assert other.lead == one.lead.negate()
    assert one.rating_lead.value == pytest.approx(-other.rating_lead.value)
    assert one.chance + other.chance == pytest.approx(1)


def test_every_two_bots_are_compared_once_with_the_better_one_first():
    played = [duel("b", "a", 1), duel("c", "a", 2), duel("b", "d", 3), duel("d", "a", 4)]
    found = analysis(*played, duel("b", "c", 5))
    order = sorted("abcd", key=lambda bot: -found.ratings["abcd".index(bot)])
    assert (order[0], order[-1]) == ("b", "a")
    pairs = found.pairs()
    assert [(pair.first, pair.second) for pair in pairs] == list(combinations(order, 2))
    assert all(pair == found.pair(pair.first, pair.second) for pair in pairs)
    equal = analysis(game_result(("b", "a"), (1, 1), (1, 1))).pairs()
    assert [(pair.first, pair.second) for pair in equal] == [("a", "b")]


def test_meetings_are_those_of_the_pairs_without_any_resample(monkeypatch):
    found = analysis(FIRST, FORFEITED, TIED, duel("d", "a", 3))
    with monkeypatch.context() as patch:
        patch.setattr(Resampling, "from_matches", lambda _: 1 / 0)
        meetings = found.meetings()
    names = [field.name for field in fields(MeetingFigures)]
    assert {(each.first, each.second) for each in meetings} == {
        *permutations("abc", 2),
        *permutations("ad", 2),
    }
    for each in meetings:
        pair = found.pair(each.first, each.second)
        assert [getattr(each, name) for name in names] == [getattr(pair, name) for name in names]


def test_one_match_gives_no_interval():
    for each in analysis(FIRST).bots():
        assert each.score.low is None
        assert each.rating.high is None
        assert each.win_share.low is None
    assert analysis(FIRST).pair("a", "b").chance is None


def test_intervals_depend_on_matches_not_on_games():
    """Copies of a game add no information."""
    once = simulated()
    copies = 4
    same = once.select(np.repeat(np.arange(len(once)), copies))
    as_games = replace(same, match=np.arange(len(same)))
    true, copied, fooled = (
        [each.score.high - each.score.low for each in Analysis(results).bots()]
        for results in (once, same, as_games)
    )
    assert copied == pytest.approx(true)
    assert sum(fooled) < 0.7 * sum(true)


def test_more_matches_make_narrower_intervals():
    few, many = (Analysis(simulated(matches)).bots() for matches in (5, 80))
    for less, more in zip(few, many, strict=True):
        assert more.rating.high - more.rating.low < 0.4 * (less.rating.high - less.rating.low)
        assert more.score.high - more.score.low < 0.4 * (less.score.high - less.score.low)


def test_no_win_in_40_games_has_an_interval_above_0():
    """A bot that won none of 40 games may still win one."""
    lost = [game_result(("a", "b"), (1, 2), (1, 0), match=n) for n in range(40)]
    b = analysis(*lost).bots()[1]
    assert b.win_share.value == 0
    assert b.win_share.low == 0
    assert 0.05 < b.win_share.high < 0.15
    lead = analysis(*lost).pair("a", "b")
    assert lead.rating_lead.high is None
    assert 0 < lead.rating_lead.low < lead.rating_lead.value - 2
    assert 0.95 < lead.chance < 1


def test_bot_that_won_equally_often_in_each_match_has_an_interval():
    """Each of three bots wins one game of each match, so the resamples differ only by rounding errors."""
    turns = [(1, 2, 3), (3, 1, 2), (2, 3, 1)]
    played = [
        game_result(("a", "b", "c"), ranks, (3, 2, 1), match=n) for n in (1, 2) for ranks in turns
    ]
    for each in analysis(*played).bots():
        assert each.win_share.value == pytest.approx(1 / 3)
        assert each.win_share.low < 0.11
        assert each.win_share.high > 0.6


def beaten_by_all(matches=12, gap=24.0, seed=1):
    """Return the results of four bots of about the same strength, and a fifth that is `gap` weaker, with their skills."""
    rng = np.random.default_rng(seed)
    skills = rng.normal(25, 1.5, 5)
    skills[-1] = skills[:-1].mean() - gap
    return skills, play(skills, tables(5, 4, matches), rng)


def test_bots_that_won_one_game_in_each_match_have_an_interval_that_narrows():
    """Matches that one bot wins altogether may only be rare: up to 3 / m of the matches, a lead of about 20 / m."""
    for matches in (10, 40, 160):
        played = [duel(*pair, n) for n in range(matches) for pair in (("a", "b"), ("b", "a"))]
        found = analysis(*played)
        lead = found.pair("a", "b").rating_lead
        assert 20 / matches < lead.high < 30 / matches
        assert lead.low == pytest.approx(-lead.high)
        for each in found.bots():
            assert each.rating.high - 25 == pytest.approx(lead.high / 2)
            assert 25 - each.rating.low == pytest.approx(lead.high / 2)


def test_bot_that_lost_all_games_does_not_move_the_others():
    _, results = beaten_by_all()
    found = Analysis(results)
    assert found.centre.tolist() == [True, True, True, True, False]
    assert found.ratings[:4].mean() == pytest.approx(25)
    *others, last = found.bots()
    assert all(each.rating.low < each.rating.value < each.rating.high for each in others)
    assert last.rating.low is None
    assert last.rating.value < last.rating.high < 20


def test_bot_that_won_all_games_has_no_upper_end():
    _, results = beaten_by_all()
    last = results.seats.max()
    mirrored = replace(results, rank=last + 1 - results.rank, score=-results.score)
    found = Analysis(mirrored)
    assert found.centre.tolist() == [True, True, True, True, False]
    best = found.bots()[-1].rating
    assert best.high is None
    assert 30 < best.low < best.value


def test_bots_that_never_beat_each_other_have_open_ends():
    ladder = [game_result(("a", "b", "c"), (1, 2, 3), (3, 2, 1), match=n) for n in range(6)]
    a, b, c = (each.rating for each in analysis(*ladder).bots())
    assert analysis(*ladder).centre.all()
    assert (a.high, b.low, b.high, c.low) == (None, None, None, None)
    assert a.low > c.high


def test_lead_over_a_bot_that_never_ranked_higher_has_no_upper_end():
    _, results = beaten_by_all()
    found = Analysis(results)
    first, *_, last = found.results.bots
    lead, behind = (found.pair(*pair).rating_lead for pair in ((first, last), (last, first)))
    assert lead.high is None
    assert lead.low > 5
    assert (behind.low, behind.high) == (None, -lead.low)
    others = found.pair(first, found.results.bots[1]).rating_lead
    assert others.low < others.value < others.high


def test_bot_that_won_in_few_matches_is_not_in_the_centre():
    fair = [duel("a", "b", n) for n in range(5)] + [duel("b", "a", n) for n in range(5, 10)]
    rarely = [duel("c", "a", 10), *(duel("a", "c", n) for n in range(11, 20))]
    found = analysis(*fair, *rarely)
    assert found.centre.tolist() == [True, True, False]
    thrice, twice = ([duel("c", "a", n) for n in range(20, last)] for last in (22, 21))
    assert analysis(*fair, *rarely, *twice).centre.tolist() == [True, True, False]
    assert analysis(*fair, *rarely, *thrice).centre.all()
    assert None not in (found.bots()[2].rating.low, found.bots()[2].rating.high)
    assert analysis(*rarely).centre.all(), "there are no others"
    hopeless = [duel("c", "d", n) for n in range(20, 25)]
    assert analysis(*fair, *rarely, *hopeless).centre.tolist() == [True, True, False, False]


def test_no_bot_is_alone_in_the_centre():
    """Only a ranked above others, and below others, in three matches."""
    twice = [duel(bot, "a", 2 * n + m) for n, bot in enumerate("bc") for m in range(2)]
    rest = [duel("a", bot, 10 * n + m) for n, bot in enumerate("bc", 1) for m in range(9)]
    assert analysis(*twice, *rest).centre.all()


def test_lead_is_as_certain_as_the_bot_with_fewer_matches():
    often = [duel("bc"[n % 2], "cb"[n % 2], n) for n in range(48)]
    found = analysis(*often, duel("a", "b", 48), duel("a", "b", 49))
    assert [found.count_matches(bot) for bot in "ab"] == [2, 50]
    assert found.pair("a", "b").chance < 0.8


def test_bots_that_no_games_connect_are_not_compared():
    played = [duel("a", "b", n) for n in range(9)] + [duel("c", "d", n) for n in range(9, 12)]
    found = analysis(*played)
    pair = found.pair("a", "d")
    assert pair.rating_lead.value > 5
    assert (pair.rating_lead.low, pair.rating_lead.high, pair.chance) == (None, None, None)
    assert found.doubt_of_equality("a", "d", 100.0) is None


def test_chance_of_a_lead_that_no_games_limit_from_below_is_at_most_one_half():
    chain = [duel(*pair, n) for pair in ("ba", "cb", "dc") for n in range(6)]
    swapped = [duel(*pair, 6) for pair in ("ab", "bc", "cd")]
    unbeaten = [duel("e", "a", n) for n in range(7, 12)]
    found = analysis(*chain, *swapped, *unbeaten)
    assert found.pair("d", "e").rating_lead.value > 1
    assert (found.pair("d", "e").chance, found.pair("e", "d").chance) == (0.5, 0.5)
    assert found.doubt_of_equality("d", "e", 100.0) is None
    assert found.pair("e", "a").chance > 0.9


@LONG
@pytest.mark.parametrize("gap", [14.0, 20.0, 30.0])
def test_intervals_cover_the_truth_beside_a_bot_that_nearly_always_loses(gap):
    covered = []
    for seed in range(60):
        skills, results = beaten_by_all(gap=gap, seed=seed)
        found = Analysis(results)
        others = zip(found.bots()[:-1], true_ratings(skills, found.centre), strict=False)
        covered += [covers(each.rating, true) for each, true in others]
    assert 0.90 < np.mean(covered) < 0.99


def test_the_same_games_give_the_same_intervals():
    assert Analysis(simulated()).bots() == Analysis(simulated()).bots()


def test_ratings_have_the_mean_of_the_prior():
    found = Analysis(simulated())
    assert found.ratings.mean() == pytest.approx(25)


def test_of_size_selects_the_games_of_a_table_size():
    small = game_result(("a", "d"), (1, 2), (3, 1), match=7)
    results = ResultColumns.from_results([FIRST, small]).by_ruleset()["basic"]
    only = results.of_size(2)
    assert (len(only), only.matches, only.bots) == (1, 1, results.bots)
    assert results.of_size(5).matches == 0


def test_games_and_columns_convert_into_each_other():
    results = simulated()
    again = ResultColumns.from_results(games(results)).by_ruleset()["basic"]
    assert (again.bot == results.bot).all()
    assert (again.score == results.score).all()
    assert (again.rank == results.rank).all()
    assert (again.match == results.match).all()


def test_negated_estimate_exchanges_its_limits():
    assert Estimate(1.0, -2.0, 3.0).negate() == Estimate(-1.0, -3.0, 2.0)
    assert Estimate(1.0, None, None).negate() == Estimate(-1.0, None, None)
    assert Estimate(1.0, None, 3.0).negate() == Estimate(-1.0, -3.0, None)
    assert math.copysign(1, Estimate(0.0, None, None).negate().value) == 1


@pytest.mark.parametrize(
    ("bots", "seats", "matches"),
    [
        (4, 2, 15),
        pytest.param(5, 4, 12, marks=LONG),
        pytest.param(8, 4, 1, marks=LONG),
    ],
)
def test_intervals_cover_the_truth_as_often_as_they_say(bots, seats, matches):
    """This is a rough test with 40 tournaments; `bench_calibration.py` has the exact numbers."""
    rng = np.random.default_rng(5)
    seating = tables(bots, seats, matches)
    covered = []
    for _ in range(40):
        skills = rng.normal(25, 3, bots)
        found = Analysis(play(skills, seating, rng))
        figures = found.bots()
        for true, estimates in (
            (true_ratings(skills, found.centre), [each.rating for each in figures]),
            (true_scores(skills, seating), [each.score for each in figures]),
            (true_win_shares(skills, seating), [each.win_share for each in figures]),
        ):
            covered.append(
                [covers(each, truth) for each, truth in zip(estimates, true, strict=True)]
            )
    share = np.array(covered).reshape(-1, 3, bots).mean(axis=(0, 2))
    assert (share > 0.90).all(), share
    assert (share < 0.995).all(), share
