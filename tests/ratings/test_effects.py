"""Test that effects of seats and luck are found if they exist, and only then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made import game_result
from simulated import games, play, tables

from referee.ratings import effects
from referee.ratings.effects import (
    _between_matches,
    luck_figures,
    seat_figures,
)
from referee.ratings.intervals import Estimate
from referee.result_columns import ResultColumns

pytestmark = pytest.mark.unmeasured


def simulated(*, luck=0.5, spread=3.0, matches=20, seats=4, bots=6):
    rng = np.random.default_rng(4)
    return play(rng.normal(25, spread, bots), tables(bots, seats, matches), rng, luck=luck)


def with_points(results, more):
    """Return the same games with the points in `more` added, an array by game and seat."""
    return replace(results, score=results.score + more.astype(np.int64))


def test_no_advantage_is_found_if_all_seats_are_equal():
    found = seat_figures(simulated())
    assert [(each.seats, each.seat, each.matches) for each in found] == [
        (4, seat, 300) for seat in range(4)
    ]
    assert sum(each.advantage.value for each in found) == pytest.approx(0, abs=1e-9)
    assert all(each.advantage.low < 0 < each.advantage.high for each in found)
    assert all(each.win_share.low < 0.25 < each.win_share.high for each in found)


def test_a_seat_that_is_worth_points_is_found():
    results = simulated()
    more = np.zeros_like(results.score)
    more[:, 2] = 4
    found = seat_figures(with_points(results, more))
    before = seat_figures(results)
    assert found[2].advantage.value == pytest.approx(before[2].advantage.value + 3)
    assert found[2].advantage.low > 0
    assert found[0].advantage.value == pytest.approx(before[0].advantage.value - 1)


def test_only_whole_matches_count():
    """In an interrupted match not every bot has had every seat."""
    results = ResultColumns.from_results(list(games(simulated(matches=1)))[:-1]).by_ruleset()[
        "basic"
    ]
    assert {each.matches for each in seat_figures(results)} == {14}
    assert luck_figures(results)[0].matches == 14


def test_one_incomplete_match_gives_no_figures():
    alone = ResultColumns.from_results(
        [game_result(("a", "b"), (1, 2), (1, 0), match=1)]
    ).by_ruleset()["basic"]
    assert seat_figures(alone) == ()
    assert luck_figures(alone) == ()


def test_luck_is_unknown_after_one_match_and_has_an_interval_after_two():
    assert luck_figures(simulated(bots=4, matches=1)) == ()
    [found] = luck_figures(simulated(bots=4, matches=2))
    assert 0 <= found.hand.low <= found.hand.value <= found.hand.high <= 1


def test_share_that_is_the_same_in_all_resamples_has_no_interval():
    """Here bots and seats have the same mean points in each match, so all is rest."""
    results = simulated(seats=3, bots=3, matches=6)
    [found] = luck_figures(replace(results, score=7 * ((results.bot + np.arange(3)) % 3 == 0)))
    assert found.hand == found.bots == Estimate(0, None, None)
    assert found.rest == Estimate(1, None, None)


@pytest.mark.parametrize("seats", [2, 3])
def test_points_that_are_always_equal_have_no_shares_of_luck(seats):
    results = simulated(seats=seats, matches=3)
    level = replace(results, score=np.full_like(results.score, 7))
    assert luck_figures(level) == ()
    assert len(seat_figures(level)) == seats


@pytest.mark.parametrize("seats", [2, 3, 4, 5])
@pytest.mark.parametrize("luck", [0.0, 0.3, 0.9])
def test_share_of_luck_is_estimated(luck, seats):
    """If the bots are equal, the share of the hand is the simulated one."""
    [found] = luck_figures(simulated(luck=luck, spread=0.0, seats=seats, matches=40))
    assert found.hand.value == pytest.approx(luck, abs=0.05)
    assert found.hand.low - 0.03 <= luck <= found.hand.high + 0.03
    assert found.hand.high - found.hand.low < 0.15
    assert found.bots.value < 0.02
    assert found.hand.value + found.bots.value + found.rest.value == pytest.approx(1)


def test_residual_variance_of_two_seats_is_that_of_the_leads_of_a_pair():
    pairs, leads = np.array([[0, 1], [0, 1], [0, 2]]), np.array([0.0, 2.0, 5.0])
    *known, unknown = _between_matches(pairs, leads).tolist()
    assert known == [2, 2]
    assert np.isnan(unknown)


def test_intervals_of_luck_at_two_seats_allow_for_the_mean_of_each_pair(monkeypatch):
    """60 matches of 15 pairs have 45 degrees of freedom; resamples of 60 matches assume 59."""
    results = simulated(seats=2, matches=4)
    [wide] = luck_figures(results)
    monkeypatch.setattr(effects, "_widening", lambda _pairs: 1.0)
    [narrow] = luck_figures(results)
    assert wide.hand.value == narrow.hand.value
    factor = np.sqrt(59 / 45)
    for wider, narrower in ((wide.hand, narrow.hand), (wide.rest, narrow.rest)):
        assert wider.high - wider.value == pytest.approx(factor * (narrower.high - narrower.value))
        assert wider.value - wider.low == pytest.approx(factor * (narrower.value - narrower.low))


def test_strength_of_bots_is_not_counted_as_luck():
    [found] = luck_figures(simulated(luck=0.0, spread=8.0))
    assert found.bots.value > 0.6
    assert found.hand.value < 0.02
    assert found.rest.high <= 1
    assert found.hand.low >= 0


@pytest.mark.parametrize(("seats", "luck"), [(2, 0.0), (2, 0.5), (4, 0.5)])
def test_two_seats_differ_by_the_root_of_2_times_the_deviation(seats, luck):
    results = simulated(seats=seats, luck=luck)
    [found] = luck_figures(results)
    leads = results.score[:, :-1] - results.score[:, 1:]
    assert found.deviation == pytest.approx(np.sqrt((leads**2).mean() / 2), rel=0.02)


def test_games_with_fresh_deals_do_not_count_for_luck():
    results = simulated()
    fresh = results.match >= results.matches - 100
    [found] = luck_figures(replace(results, fresh_deal=fresh))
    assert found == luck_figures(results.select(~fresh))[0]
    assert luck_figures(replace(results, fresh_deal=np.ones_like(fresh))) == ()
    assert seat_figures(replace(results, fresh_deal=fresh)) == seat_figures(results)


def test_matches_with_a_forfeit_do_not_count():
    """The stand-in plays on after a forfeit, so the points of the match do not show what the seat or the bot is worth."""
    results = simulated()
    forfeited = np.zeros_like(results.forfeited)
    forfeited[np.flatnonzero(results.match < 40)[::4], 0] = True  # one of the four games of a match
    lost = replace(results, forfeited=forfeited, score=results.score - 50 * forfeited)
    sound = results.select(results.match >= 40)
    assert seat_figures(lost) == seat_figures(sound)
    assert luck_figures(lost) == luck_figures(sound)
    everywhere = replace(results, forfeited=results.rank == 1)
    assert seat_figures(everywhere) == luck_figures(everywhere) == ()


def test_table_sizes_are_estimated_separately():
    mixed = [*games(simulated(seats=3)), *games(simulated(seats=2))]
    renumbered = [replace(game, tournament=f"cup {len(game.bots)}") for game in mixed]
    results = ResultColumns.from_results(renumbered).by_ruleset()["basic"]
    assert [each.seats for each in luck_figures(results)] == [2, 3]
    assert [each.seats for each in seat_figures(results)] == [2, 2, 3, 3, 3]
