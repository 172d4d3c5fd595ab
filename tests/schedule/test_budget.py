"""Test how many matches a budget is enough for, if the stages have different challengers."""

from types import SimpleNamespace

import pytest

from referee.rules.ruleset import RULESETS
from referee.schedule import Stage
from referee.schedule.budget import Budget, Unit, spend

BOTS = 4
STAGES = [Stage(RULESETS["duel"], 2, 0, challengers=challengers) for challengers in (1, 3)]
"""In a round of the first stage, the challenger plays six games and each other bot two; in the second, it is the reverse."""


@pytest.mark.parametrize(("games", "rounds"), [(8, 1), (15, 1), (16, 2)])
def test_games_per_bot_are_added_up_over_the_stages(games, rounds):
    bought = spend(
        Budget(Unit.GAMES_PER_BOT, games), STAGES, BOTS, workers=1, pace=None, most_games=1000
    )
    assert [stage.matches for stage in bought] == [rounds] * 2


@pytest.mark.parametrize(("minutes", "rounds"), [(11, 3), (12, 4), (14, 4), (15, 5)])
def test_minutes_are_shared_by_the_workers(minutes, rounds):
    """A round of twelve games of half a minute takes two workers three minutes."""
    pace = SimpleNamespace(game_us=lambda _ruleset, _seats: 30_000_000)
    stages = [Stage(RULESETS["duel"], 2, 0)]
    bought = spend(
        Budget(Unit.MINUTES, minutes), stages, BOTS, workers=2, pace=pace, most_games=1000
    )
    assert [stage.matches for stage in bought] == [rounds]


def test_no_budget_is_shorter_than_a_game_however_many_workers_there_are():
    pace = SimpleNamespace(game_us=lambda _ruleset, _seats: 600_000_000)
    stages = [Stage(RULESETS["duel"], 2, 0)]

    def buy(minutes):
        return spend(
            Budget(Unit.MINUTES, minutes), stages, BOTS, workers=100, pace=pace, most_games=1000
        )

    with pytest.raises(ValueError, match="the tournament needs about 10 minutes for 4 games"):
        buy(9)
    assert [stage.games(BOTS) for stage in buy(10)] == [96]


def test_only_a_stage_with_challengers_has_games_of_a_challenger():
    assert Stage(RULESETS["basic"], 3, 2).most_games(BOTS) == (0, 2 * 3 * 3)
