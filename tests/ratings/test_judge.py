"""Test the verdicts about bots: when they are given, how they stay final, and that they never contradict each other.

The allowed errors of looks are tested against published values and against simulation.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
from extended import extend_all_but
from scipy.special import ndtri
from simulated import play, tables

from referee.ratings import judge
from referee.ratings.analysis import Analysis
from referee.ratings.judge import Judge, PairVerdict, Verdict, _follow_chain, allowed_errors
from referee.ratings.stopping import StopCondition, look_rounds

pytestmark = pytest.mark.unmeasured

JUDGE = Judge(StopCondition())
SEVERAL = Judge(StopCondition(), looks=(1, 2, 3))


def analyses(skills, matches, seats=4):
    rng = np.random.default_rng(3)
    return {"basic": Analysis(play(np.array(skills), tables(len(skills), seats, matches), rng))}


def list_verdicts(found):
    return [each.verdict for each in found.neighbours["basic"]]


def test_very_different_bots_are_settled_soon():
    found = JUDGE.look(analyses([35.0, 30, 25, 20, 15], 20))
    neighbours = found.neighbours["basic"]
    assert [each.bot for each in neighbours] == ["bot00", "bot01", "bot02", "bot03"]
    assert [each.below for each in neighbours] == ["bot01", "bot02", "bot03", "bot04"]
    assert list_verdicts(found) == [Verdict.AHEAD] * 4
    assert found.are_settled


def test_equal_bots_are_called_equal_after_enough_games():
    same = [25.0] * 4
    few, many = JUDGE.look(analyses(same, 30)), JUDGE.look(analyses(same, 1500))
    assert Verdict.OPEN in list_verdicts(few)
    assert not few.are_settled
    assert list_verdicts(many) == [Verdict.EQUAL] * 3


def test_bots_that_won_one_game_in_each_match_are_equal_only_after_many_matches():
    """Matches that one bot wins altogether may only be rare."""
    verdicts = []
    for matches in (2, 10, 20, 40, 100):
        one_each = play(np.array([25.0, 25.0]), tables(2, 2, matches), np.random.default_rng(3))
        one_each = replace(one_each, rank=np.tile([1, 2], (2 * matches, 1)))
        verdicts += list_verdicts(JUDGE.look({"basic": Analysis(one_each)}))
    assert verdicts == [Verdict.OPEN] * 3 + [Verdict.EQUAL] * 2


@pytest.mark.parametrize(
    "luck",
    extend_all_but({0.9}, [0.8, 0.9, 0.95], "measures large schedules and long statistics"),
)
def test_bots_that_differ_by_the_margin_are_seldom_called_equal_if_the_hand_decides(luck):
    rng = np.random.default_rng(5)
    skills, table = np.array([25.0 + JUDGE.condition.margin, 25.0]), tables(2, 2, 8)
    found = [
        JUDGE.look({"basic": Analysis(play(skills, table, rng, luck=luck))}) for _ in range(40)
    ]
    assert sum(list_verdicts(each) == [Verdict.EQUAL] for each in found) <= 2


def test_no_bots_are_equal_without_a_margin():
    never = Judge(StopCondition(margin=0))
    assert Verdict.EQUAL not in list_verdicts(never.look(analyses([25.0] * 4, 1500)))


def test_one_match_settles_nothing():
    found = JUDGE.look(analyses([40.0, 10.0], 1, seats=2))
    [pair] = found.neighbours["basic"]
    assert (pair.chance, pair.verdict) == (None, Verdict.OPEN)
    assert found.compare("basic", "bot00", "bot01").verdict is Verdict.OPEN


def test_bots_that_no_games_connect_get_no_verdict():
    """The bots of the first group are much stronger, but both groups have the same mean fit, that of the prior."""
    skills = np.array([60.0, 68, 76, 20, 28, 36])
    groups = tables(3, 2, 12)
    results = play(skills, np.concatenate([groups, groups + 3]), np.random.default_rng(3))
    found = JUDGE.look({"basic": Analysis(results)})
    for one, other in product(results.bots[:3], results.bots[3:]):
        pair = found.compare("basic", one, other)
        assert (pair.chance, pair.verdict) == (None, Verdict.OPEN)
    for one, other in combinations(results.bots[:3], 2):
        assert found.compare("basic", one, other).verdict is Verdict.AHEAD


def test_bot_that_never_ranked_above_an_unbeaten_bot_is_not_ahead_of_it():
    """The best bot plays against the weakest of six alone, so that its fit is too low."""
    levels = [(at, at + 1) for at in range(5)]
    results = play(
        np.array([20.0, 26, 32, 38, 44, 50, 90]),
        np.array([*levels, (0, 6)] * 30),
        np.random.default_rng(3),
    )
    analysis = Analysis(results)
    fifth, best = results.bots[-2:]
    assert analysis.pair(fifth, best).rating_lead.value > 8
    for confidence, margin in ((0.95, 1.0), (0.5, 25.0)):
        found = Judge(StopCondition(confidence=confidence, margin=margin)).look({"basic": analysis})
        pair = found.compare("basic", best, fifth)
        assert (pair.bot, pair.chance, pair.verdict) == (fifth, 0.5, Verdict.OPEN)
    assert found.compare("basic", best, results.bots[0]).verdict is Verdict.AHEAD


class Leads:
    """The analysis of bots with given ratings and one given chance that a bot is better than one with a lower rating."""

    def __init__(self, chance, matches=10, doubt=0.5, **ratings):
        self.results = SimpleNamespace(bots=tuple(ratings))
        self.ratings = np.array(list(ratings.values()))
        self._rating = ratings
        self._chance = chance
        self._matches = matches
        self._doubt = doubt

    def count_matches(self, _bot):
        return self._matches

    def doubt_of_equality(self, _bot, _below, _margin):
        return self._doubt

    def chance_of_lead(self, bot, below):
        return self._chance if self._rating[bot] >= self._rating[below] else 1 - self._chance


@pytest.mark.parametrize(
    ("chance", "verdict"), [(0.974, Verdict.OPEN), (0.976, Verdict.AHEAD), (0.5, Verdict.OPEN)]
)
def test_leader_must_be_surer_because_the_games_have_chosen_it(chance, verdict):
    [pair] = JUDGE.look({"basic": Leads(chance, a=26.0, b=25.0)}).neighbours["basic"]
    assert (pair.bot, pair.verdict) == ("a", verdict)


def test_more_looks_or_tables_need_more_certainty():
    rather_sure = analyses([26.5, 25.0, 20.0, 15.0], 60)
    [pair, *_] = JUDGE.look(rather_sure).neighbours["basic"]
    assert 0.99 < pair.chance < 0.9998
    assert pair.verdict is Verdict.AHEAD
    often = Judge(StopCondition(), looks=(10, 1000))
    [pair, *_] = often.look(rather_sure, rounds=10).neighbours["basic"]
    assert pair.verdict is Verdict.OPEN
    [analysis] = rather_sure.values()
    strict = Judge(StopCondition(confidence=0.999))
    [pair, *_] = strict.look({"basic": analysis, "duel": analysis}).neighbours["basic"]
    assert pair.verdict is Verdict.OPEN


@pytest.mark.parametrize(("chance", "verdict"), [(0.98, Verdict.OPEN), (0.99, Verdict.AHEAD)])
def test_allowed_error_is_shared_among_the_pairs_of_neighbours(chance, verdict):
    found = JUDGE.look({"basic": Leads(chance, a=27.0, b=26.0, c=25.0)})
    assert list_verdicts(found) == [verdict] * 2


@pytest.mark.parametrize(("doubt", "verdict"), [(0.0084, Verdict.OPEN), (0.0083, Verdict.EQUAL)])
def test_single_test_of_equality_shares_the_allowed_error_among_all_pairs(doubt, verdict):
    """Four bots have six pairs. The same games have chosen the three pairs of neighbours."""
    found = JUDGE.look({"basic": Leads(0.5, doubt=doubt, a=28.0, b=27.0, c=26.0, d=25.0)})
    assert list_verdicts(found) == [verdict] * 3


def settle(chance, **ratings):
    """Return the verdicts of the first of three looks, at which all neighbours had this chance."""
    return SEVERAL.look({"basic": Leads(chance, **ratings)})


def test_verdict_is_final_even_if_the_other_bot_takes_the_lead():
    before = settle(0.999, a=26.0, b=25.0)
    later = SEVERAL.look({"basic": Leads(0.7, a=24.0, b=25.0, c=20.0)}, 2, before)
    first, second = later.neighbours["basic"]
    assert first == PairVerdict(bot="a", below="b", chance=0.999, verdict=Verdict.AHEAD)
    assert (second.bot, second.below, second.verdict) == ("a", "c", Verdict.OPEN)
    assert later.compare("basic", "b", "a") == first


def test_final_equality_is_shown_with_the_chance_of_the_newest_look():
    equal = PairVerdict(bot="a", below="b", chance=0.6, verdict=Verdict.EQUAL)
    before = replace(settle(0.6, a=26.0, b=25.0), final={("basic", frozenset(("a", "b"))): equal})
    later = SEVERAL.look({"basic": Leads(0.7, a=25.0, b=26.0)}, 2, before)
    assert later.neighbours["basic"] == (
        PairVerdict(bot="b", below="a", chance=0.7, verdict=Verdict.EQUAL),
    )


def test_verdict_stays_final_while_the_bots_are_no_neighbours():
    before = settle(0.999, a=26.0, b=25.0)
    between = SEVERAL.look({"basic": Leads(0.7, a=26.0, c=25.5, b=25.0)}, 2, before)
    assert list_verdicts(between) == [Verdict.OPEN] * 2
    assert between.compare("basic", "a", "b").verdict is Verdict.AHEAD
    again = SEVERAL.look({"basic": Leads(0.7, a=26.0, b=25.0)}, 3, between)
    assert list_verdicts(again) == [Verdict.AHEAD]


def test_later_look_must_be_surer_if_the_bots_have_played_more_than_planned():
    """With much new data, a test depends little on the tests before, so that more of its errors are new ones."""
    found = {}
    for matches in (20, 200):
        first = SEVERAL.look({"basic": Leads(0.6, a=26.0, b=25.0)})
        later = SEVERAL.look({"basic": Leads(0.99, matches, a=26.0, b=25.0)}, 2, first)
        found[matches] = list_verdicts(later)
    assert found == {20: [Verdict.AHEAD], 200: [Verdict.OPEN]}


def test_verdict_of_one_ruleset_says_nothing_about_another():
    before = settle(0.999, a=26.0, b=25.0)
    later = SEVERAL.look({"duel": Leads(0.7, a=26.0, b=25.0)}, 2, before)
    [pair] = later.neighbours["duel"]
    assert pair.verdict is Verdict.OPEN


def test_bot_is_ahead_of_all_bots_that_a_chain_of_verdicts_puts_below():
    before = settle(0.9999, a=26.0, b=25.0, c=24.0)
    later = SEVERAL.look({"basic": Leads(0.6, a=26.0, b=25.0, c=24.0)}, 2, before)
    for bots in (("a", "c"), ("c", "a")):
        found = later.compare("basic", *bots)
        assert (found.bot, found.below, found.verdict) == ("a", "c", Verdict.AHEAD)


def test_chains_that_contradict_each_other_put_no_bot_ahead():
    ahead = [("a", "x"), ("x", "b"), ("b", "y"), ("y", "a")]
    final = {
        ("basic", frozenset(pair)): PairVerdict(
            bot=pair[0], below=pair[1], chance=0.999, verdict=Verdict.AHEAD
        )
        for pair in ahead
    }
    assert _follow_chain("basic", ("a", "b"), final) is None
    final.popitem()
    assert _follow_chain("basic", ("b", "a"), final) == ("a", "b")


@pytest.mark.parametrize(("chance", "verdict"), [(0.9999, Verdict.AHEAD), (0.6, Verdict.OPEN)])
def test_bots_without_a_final_verdict_are_tested_like_neighbours(chance, verdict):
    found = JUDGE.look({"basic": Leads(chance, a=26.0, b=25.0, c=24.0)})
    pair = found.compare("basic", "c", "a")
    assert (pair.bot, pair.below, pair.verdict) == ("a", "c", verdict)


def test_comparison_agrees_with_the_verdicts_about_neighbours():
    found = JUDGE.look(analyses([30.0, 28, 27.5, 25, 25], 10))
    assert set(list_verdicts(found)) == {Verdict.AHEAD, Verdict.OPEN}
    for each in found.neighbours["basic"]:
        assert found.compare("basic", each.bot, each.below) == each
        assert found.compare("basic", each.below, each.bot) == each


def test_one_look_spends_the_whole_error():
    assert allowed_errors((1,), 0.05, (1,)) == pytest.approx([0.05])
    assert allowed_errors((60,), 0.001, (60,)) == pytest.approx([0.001])


def test_five_looks_have_the_bounds_that_are_published_for_even_spending():
    # Lan and DeMets 1983, table 1, column of the spending function in proportion to time; one side, 0.025
    bounds = -ndtri(allowed_errors((1, 2, 3, 4, 5), 0.025, (1, 2, 3, 4, 5)))
    assert bounds == pytest.approx([2.58, 2.49, 2.41, 2.34, 2.28], abs=0.006)


@pytest.mark.parametrize("error", [0.05, 0.005])
def test_looks_spend_the_error_together(error):
    looks = tuple(look_rounds(60))
    rng = np.random.default_rng(1)
    rounds = rng.normal(size=(50_000, 60)).cumsum(axis=1)[:, np.array(looks) - 1]
    wrong = (rounds / np.sqrt(looks) > -ndtri(allowed_errors(looks, error, looks))).any(axis=1)
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
    by_rounds = (leads > -ndtri(allowed_errors(looks, error, looks))).any(axis=1).mean()
    assert by_rounds > wrong, "the data must count, not the rounds"


def test_many_looks_with_little_new_data_are_computed_exactly(monkeypatch):
    looks = tuple(range(100, 130))
    found = allowed_errors(looks, 0.05, looks)
    monkeypatch.setattr(judge, "_LEAST_NODES", 400)
    allowed_errors.cache_clear()
    assert found == pytest.approx(allowed_errors(looks, 0.05, looks), rel=1e-6)


def test_look_without_new_data_has_a_bound():
    assert all(0 < each < 0.05 for each in allowed_errors((1, 2, 3), 0.05, (1.0, 1.0, 1.0)))


@pytest.mark.parametrize("rounds", [2, 60, 10_000, 1_000_000])
def test_later_looks_need_less_certainty_but_more_than_a_single_test(rounds):
    looks = tuple(look_rounds(rounds))
    errors = allowed_errors(looks, 0.05, looks)
    assert errors[0] == pytest.approx(0.05 / rounds)
    assert list(errors) == sorted(errors)
    assert 0.05 / len(looks) < errors[-1] < 0.05
    assert sum(errors) > 0.05, "a later test may be wrong together with an earlier one"


def test_neighbours_get_the_verdict_of_a_chain_of_verdicts():
    before = settle(0.9999, a=26.0, b=25.0, c=24.0)
    later = SEVERAL.look({"basic": Leads(0.6, b=26.0, c=25.0, a=24.5)}, 2, before)
    bottom = later.neighbours["basic"][1]
    assert (bottom.bot, bottom.below, bottom.verdict) == ("a", "c", Verdict.AHEAD)
    assert later.are_settled


def test_new_verdict_completes_a_chain_at_the_same_look():
    class Mixed(Leads):
        """Only b is surely better than c."""

        def chance_of_lead(self, bot, below):
            surely = (bot, below) == ("b", "c")
            return 0.9999 if surely else super().chance_of_lead(bot, below)

    first = settle(0.9999, a=26.0, b=25.0)
    second = SEVERAL.look({"basic": Leads(0.9999, c=26.0, d=25.0)}, 2, first)
    third = SEVERAL.look({"basic": Mixed(0.6, b=28.0, c=27.0, a=26.0, d=25.0)}, 3, second)
    verdicts = {(each.bot, each.below): each.verdict for each in third.neighbours["basic"]}
    assert verdicts == {
        ("b", "c"): Verdict.AHEAD,
        ("a", "c"): Verdict.AHEAD,  # a is ahead of b, and b is ahead of c
        ("a", "d"): Verdict.AHEAD,
    }


@pytest.mark.parametrize("seed", range(5))
def test_comparison_of_neighbours_never_contradicts_their_table(seed):
    rng = np.random.default_rng(seed)
    judge, found = Judge(StopCondition(confidence=0.5), looks=(1, 2, 3, 4)), None
    for rounds in judge.looks:
        ratings = dict(zip("abcde", rng.normal(25, 1, 5), strict=True))
        found = judge.look({"basic": Leads(rng.uniform(0.5, 1), **ratings)}, rounds, found)
        for each in found.neighbours["basic"]:
            assert found.compare("basic", each.bot, each.below) == each
            assert found.compare("basic", each.below, each.bot) == each
