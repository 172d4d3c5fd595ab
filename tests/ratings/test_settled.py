"""Test when standings are settled, and the price of many looks."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from simulated import play, tables

from referee.ratings.analysis import Analysis
from referee.ratings.stopping import (
    StopCondition,
    Verdict,
    all_settled,
    compare_neighbours,
    look_rounds,
)

pytestmark = pytest.mark.unmeasured

UNTIL = StopCondition(confidence=0.95, margin=1.0)


def analysis(skills, matches, seats=4):
    rng = np.random.default_rng(3)
    return Analysis(play(np.array(skills), tables(len(skills), seats, matches), rng))


def verdicts(found):
    return [each.verdict for each in found]


def test_very_different_bots_are_settled_soon():
    [found] = compare_neighbours([analysis([35.0, 30, 25, 20, 15], 20)], UNTIL, looks=1)
    assert [each.bot for each in found] == ["bot00", "bot01", "bot02", "bot03"]
    assert [each.below for each in found] == ["bot01", "bot02", "bot03", "bot04"]
    assert verdicts(found) == [Verdict.AHEAD] * 4
    assert all_settled([found])


def test_equal_bots_are_called_equal_after_enough_games():
    same = [25.0] * 4
    few, many = analysis(same, 30), analysis(same, 1500)
    assert Verdict.OPEN in verdicts(compare_neighbours([few], UNTIL, looks=1)[0])
    assert verdicts(compare_neighbours([many], UNTIL, looks=1)[0]) == [Verdict.EQUAL] * 3


def test_no_bots_are_equal_without_a_margin():
    never = StopCondition(confidence=0.95, margin=0)
    assert Verdict.EQUAL not in verdicts(
        compare_neighbours([analysis([25.0] * 4, 1500)], never, looks=1)[0]
    )


def test_one_match_settles_nothing():
    [found] = compare_neighbours([analysis([40.0, 10.0], 1, seats=2)], UNTIL, looks=1)
    assert [(each.chance, each.verdict) for each in found] == [(None, Verdict.OPEN)]


class Lead:
    """The analysis of two bots with a given chance that the first one is better."""

    def __init__(self, chance):
        self.results = SimpleNamespace(bots=["a", "b"])
        self.ratings = np.array([26.0, 25.0])
        self._chance = chance

    def chance_of_lead(self, _bot, _below, margin=0.0):
        return self._chance if margin == 0 else 0.5


@pytest.mark.parametrize(
    ("chance", "verdict"), [(0.974, Verdict.OPEN), (0.976, Verdict.AHEAD), (0.5, Verdict.OPEN)]
)
def test_leader_must_be_surer_because_the_games_have_chosen_it(chance, verdict):
    [[pair]] = compare_neighbours([Lead(chance)], UNTIL, looks=1)
    assert (pair.bot, pair.verdict) == ("a", verdict)


def test_more_looks_or_tables_need_more_certainty():
    rather_sure = analysis([26.5, 25.0, 20.0, 15.0], 60)
    [[pair, *_]] = compare_neighbours([rather_sure], UNTIL, looks=1)
    assert 0.99 < pair.chance < 0.9998
    assert pair.verdict is Verdict.AHEAD
    [[often, *_]] = compare_neighbours([rather_sure], UNTIL, looks=1000)
    assert often.verdict is Verdict.OPEN
    assert not all_settled([[pair], [often]])
    [[tables_too, *_], _] = compare_neighbours(
        [rather_sure] * 2, StopCondition(confidence=0.999, margin=1), looks=1
    )
    assert tables_too.verdict is Verdict.OPEN


@pytest.mark.parametrize("rounds", [1, 2, 7, 100, 10_000])
def test_looks_become_rarer_and_end_with_the_last_round(rounds):
    found = look_rounds(rounds)
    assert found[-1] == rounds
    assert found == sorted(set(found))
    assert found[0] == 1
    assert all(later <= max(earlier + 1, 1.2 * earlier) for earlier, later in pairwise(found))
    assert len(found) <= 6 + 13 * np.log10(rounds)
