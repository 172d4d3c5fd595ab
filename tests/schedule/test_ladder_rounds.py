"""The plan of a ladder: its rounds, and different bots at each table."""

from collections import Counter

import pytest

from referee.rules.ruleset import RULESETS
from referee.schedule import Stage
from referee.schedule.ladder import ladder_schedule


def plan(bots, seats, matches, lanes=5):
    stage = Stage(RULESETS["basic"], seats, matches, balanced=True)
    return ladder_schedule("cup", [f"bot{each}" for each in range(bots)], [stage], lanes=lanes)


@pytest.mark.parametrize("seats", [2, 3, 4, 5])
@pytest.mark.parametrize("bots", [5, 7, 31, 200])
def test_rounds_have_twenty_games_or_a_twentieth_of_the_games_before(bots, seats):
    games = plan(bots, seats, 3000 // seats)
    sizes = list(Counter(game.round for game in games).values())
    before = 0
    for size in sizes[:-1]:
        assert max(20, before // 20) <= size < max(20, before // 20) + seats
        before += size
    assert all(len(set(game.bots)) == seats for game in games)
    assert len(games) == 3000 // seats * seats


def test_every_lane_has_two_games_in_a_round():
    games = plan(6, 2, 100, lanes=32)
    assert Counter(game.round for game in games)[1] == 64


def test_long_ladder_has_few_rounds():
    assert plan(10, 2, 50_000)[-1].round < 150


def test_ladder_at_tables_that_the_bots_do_not_fill_is_refused():
    with pytest.raises(ValueError, match="2 bots cannot fill 3 seats"):
        plan(2, 3, 10)
