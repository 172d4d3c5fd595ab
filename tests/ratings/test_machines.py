"""Test that a machine on which bots do better is found if it exists, and only then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated import play, tables

from referee.ratings.machines import machine_figures
from referee.result_columns import NOBODY

pytestmark = pytest.mark.unmeasured
GOOD = 4.0
"""Points per game that a bot gains on its good machine."""


def on_machines(machine):
    """Return results; `machine` gets the number of each game and returns the number of its machine."""
    rng = np.random.default_rng(4)
    results = play(rng.normal(25, 3, 6), tables(6, 4, 20), rng)
    return replace(results, machine=machine(np.arange(len(results))))


def at_random(count):
    return lambda games: np.random.default_rng(7).integers(0, count, len(games)) + 1


def lane_by_lane(lanes, workers=2):
    """Return the machine of each game if every worker runs on its own machine."""
    return lambda games: games % lanes % workers + 1


def duels(rng, matches):
    """Return the games of two equal bots."""
    return play(np.array([25.0, 25.0]), tables(2, 2, matches), rng)


def with_start(results, bot):
    """Return the same games with 5 points more for a bot in seat 0."""
    more = (results.bot == bot) & (np.arange(results.bot.shape[1]) == 0)
    return replace(results, score=results.score + 5 * more)


def with_bonus(results, bot, machine):
    """Return the same games with 4 points more for a bot on a machine."""
    more = (results.bot == bot) & (results.machine == machine)[:, None]
    return replace(results, score=results.score + (GOOD * more).astype(np.int64))


def surely_not_zero(figures):
    return figures.lead.low > 0 or figures.lead.high < 0


def test_machines_that_change_nothing_are_rarely_suspected():
    found = machine_figures(on_machines(at_random(3)))
    assert {(each.machine, each.bot) for each in found} == {
        (machine, f"bot{bot:02}") for machine in (1, 2, 3) for bot in range(6)
    }
    assert sum(each.games for each in found) == 15 * 20 * 4 * 4
    assert sum(map(surely_not_zero, found)) <= 2


def test_machine_that_gives_a_bot_points_is_found():
    results = on_machines(at_random(3))
    before = {(each.machine, each.bot): each for each in machine_figures(results)}
    after = {(each.machine, each.bot): each for each in machine_figures(with_bonus(results, 2, 3))}
    gained = after[3, "bot02"].lead.value - before[3, "bot02"].lead.value
    assert gained == pytest.approx(GOOD, rel=0.05)
    assert after[3, "bot02"].lead.low > 0
    assert after[1, "bot02"].lead.value < before[1, "bot02"].lead.value


def test_seat_that_is_worth_points_is_not_taken_for_a_machine():
    results = on_machines(lane_by_lane(5))
    more = np.zeros_like(results.score)
    more[:, 0] = 10
    rich = replace(results, score=results.score + more)
    for plain, each in zip(machine_figures(results), machine_figures(rich), strict=True):
        assert each.lead.value == pytest.approx(plain.lead.value)


def test_bot_whose_seat_decides_its_machine_has_no_lead():
    results = duels(np.random.default_rng(1), 60)
    plain = replace(results, machine=lane_by_lane(4)(np.arange(len(results))))
    found = machine_figures(with_bonus(plain, 0, 1))
    assert [(each.games, each.matches, each.lead) for each in found] == [(60, 0, None)] * 4
    bots = {each.bot for each in machine_figures(on_machines(lane_by_lane(4))) if not each.lead}
    assert (
        "bot00" in bots
    )  # it is the first bot of all its tables, so it plays each seat on only one machine


@pytest.mark.extended("measures large schedules and long statistics")
def test_bot_that_is_better_in_one_seat_is_rarely_suspected():
    """With four lanes, bot01 has each seat on each machine, but seat 0 more often on machine 1."""
    rng = np.random.default_rng(2)
    suspected = 0
    for _ in range(100):
        results = play(np.full(4, 25.0), tables(4, 2, 20), rng)
        uneven = replace(results, machine=lane_by_lane(4)(np.arange(len(results))))
        found = machine_figures(with_start(uneven, 1))
        suspected += sum(surely_not_zero(each) for each in found if each.bot == "bot01")
    assert (
        suspected <= 20
    )  # of 200: in each run, the lead on one machine is minus that on the other


def test_effect_of_a_machine_is_found_in_full_if_lanes_mix_the_seats():
    results = duels(np.random.default_rng(3), 400)
    mixed = replace(results, machine=lane_by_lane(5)(np.arange(len(results))))
    before = {(each.machine, each.bot): each.lead for each in machine_figures(mixed)}
    found = machine_figures(with_bonus(with_start(mixed, 0), 0, 1))
    after = {(each.machine, each.bot): each.lead for each in found}
    assert after[1, "bot00"].value - before[1, "bot00"].value == pytest.approx(GOOD)
    assert after[1, "bot00"].low > 0
    assert after[1, "bot01"].value == pytest.approx(before[1, "bot01"].value)


def test_one_match_that_tells_seat_and_machine_apart_gives_no_interval():
    results = duels(np.random.default_rng(6), 40)
    most = np.where(results.match < 39, 1, 2)
    found = machine_figures(
        replace(results, machine=np.where(results.bot[:, 0] == 0, most, 3 - most))
    )
    assert [each.matches for each in found] == [40] * 4
    assert {(each.lead.low, each.lead.high) for each in found} == {(None, None)}


def test_matches_on_one_machine_tell_nothing():
    found = machine_figures(on_machines(lambda games: games // 4 % 2 + 1))  # a match has four games
    assert found
    assert all(each.matches == 0 and each.lead is None for each in found)


def test_games_without_a_machine_do_not_count():
    assert machine_figures(on_machines(lambda games: np.full(len(games), NOBODY))) == ()
    results = on_machines(lambda games: np.where(games % 4 == 0, NOBODY, games % 4))
    assert sum(each.games for each in machine_figures(results)) == 15 * 20 * 4 * 3


def test_games_with_a_forfeit_do_not_count_for_the_lead():
    results = on_machines(at_random(2))
    forfeited = (results.bot == 1) & (results.machine == 2)[:, None]
    lost = replace(results, forfeited=forfeited, score=results.score - 50 * forfeited)
    lead = {(each.machine, each.bot): each.lead for each in machine_figures(lost)}
    assert lead[2, "bot01"] is None  # it has no other games there
    assert abs(lead[2, "bot02"].value) < 3


def test_forfeits_are_counted_where_they_happened():
    results = on_machines(at_random(2))
    forfeited = (results.bot == 1) & (results.machine == 2)[:, None]
    found = machine_figures(replace(results, forfeited=forfeited))
    for each in found:
        charged = (each.machine, each.bot) == (2, "bot01")
        assert each.forfeits == (each.games if charged else 0)


def test_bot_that_forfeited_all_games_has_no_lead():
    results = on_machines(at_random(2))
    found = machine_figures(replace(results, forfeited=results.bot == 1))
    assert {each.lead for each in found if each.bot == "bot01"} == {None}
    assert {each.matches for each in found if each.bot == "bot01"} == {0}


def test_lead_is_the_slope_of_a_regression_with_an_intercept_for_each_match_and_seat():
    results = on_machines(at_random(3))
    found = machine_figures(results)
    assert len(found) == 3 * 6
    for each in found:
        game, seat = np.nonzero(results.bot == results.bots.index(each.bot))
        here = (results.machine[game] == each.machine).astype(float)
        _, place = np.unique(results.match[game], return_inverse=True)
        inputs = np.column_stack([here, np.eye(place.max() + 1)[place], np.eye(4)[seat]])
        slope, *_ = np.linalg.lstsq(inputs, results.score[game, seat], rcond=None)[0]
        assert each.lead.value == pytest.approx(slope)


def test_games_with_a_forfeit_do_not_change_the_worth_of_a_seat():
    """The stand-in loses all games of seat 0."""
    results = on_machines(lane_by_lane(5))
    forfeited = np.zeros_like(results.forfeited)
    forfeited[results.match < 100, 0] = True
    lost = replace(results, forfeited=forfeited, score=results.score - 50 * forfeited)
    alone = results.select(~forfeited.any(axis=1))
    before = {(each.machine, each.bot): each.lead.value for each in machine_figures(alone)}
    for each in machine_figures(lost):
        assert each.lead.value == pytest.approx(before[each.machine, each.bot])
