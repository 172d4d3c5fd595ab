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
    results = on_machines(lambda games: games % 2 + 1)  # each machine always gets the same seatings
    more = np.zeros_like(results.score)
    more[:, 0] = 10
    rich = replace(results, score=results.score + more)
    for plain, each in zip(machine_figures(results), machine_figures(rich), strict=True):
        assert each.lead.value == pytest.approx(plain.lead.value)


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


def test_lead_is_the_slope_of_a_regression_with_an_intercept_for_each_match():
    results = on_machines(at_random(3))
    beyond = results.score - results.score.mean(axis=0)
    found = machine_figures(results)
    assert len(found) == 3 * 6
    for each in found:
        game, seat = np.nonzero(results.bot == results.bots.index(each.bot))
        here = (results.machine[game] == each.machine).astype(float)
        _, place = np.unique(results.match[game], return_inverse=True)
        inputs = np.column_stack([here, np.eye(place.max() + 1)[place]])
        slope, *_ = np.linalg.lstsq(inputs, beyond[game, seat], rcond=None)[0]
        assert each.lead.value == pytest.approx(slope)


def test_games_with_a_forfeit_do_not_change_the_worth_of_a_seat():
    """The stand-in loses all games of seat 0, and each machine always gets the same seatings."""
    results = on_machines(lambda games: games % 2 + 1)
    forfeited = np.zeros_like(results.forfeited)
    forfeited[results.match < 100, 0] = True
    lost = replace(results, forfeited=forfeited, score=results.score - 50 * forfeited)
    alone = results.select(~forfeited.any(axis=1))
    before = {(each.machine, each.bot): each.lead.value for each in machine_figures(alone)}
    for each in machine_figures(lost):
        assert each.lead.value == pytest.approx(before[each.machine, each.bot])
