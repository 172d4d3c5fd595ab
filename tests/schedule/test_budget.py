"""Test how many matches a budget is enough for, if the stages have different challengers."""

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
