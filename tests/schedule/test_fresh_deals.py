"""In a stage with fresh deals every game has its own deal. Nothing else of the schedule changes."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest

from referee.rules.ruleset import RULESETS
from referee.schedule import Deals, Stage
from referee.schedule.extension import ALGORITHMS, BALANCED, GAUNTLET, ROUND_ROBIN, extension_games

BOTS = ("ann", "bob", "cy", "dee")
SAME = {
    ROUND_ROBIN: Stage(RULESETS["classic"], 3, 2),
    BALANCED: Stage(RULESETS["classic"], 3, 4, balanced=True),
    GAUNTLET: Stage(RULESETS["classic"], 3, 2, challengers=1),
}


def schedule(algorithm, *stages, extensions=(1, 2)):
    created = ALGORITHMS[algorithm]("cup", BOTS, stages, lanes=4)
    added = extension_games(algorithm, "cup", BOTS, stages, extensions, lanes=4, last=created[-1])
    return [*created, *chain.from_iterable(added)]


@pytest.mark.parametrize("algorithm", SAME)
def test_each_game_has_its_own_deal_and_the_rest_of_the_schedule_is_the_same(algorithm):
    same = SAME[algorithm]
    games = schedule(algorithm, replace(same, deals=Deals.FRESH))
    assert [game.deal_id for game in games] == [
        f"cup-deal-{game.match}-{game.seating + 1}" for game in games
    ]
    assert len({game.deal_id for game in games}) == len(games)
    others = schedule(algorithm, same)
    assert [replace(game, deal_id="") for game in games] == [
        replace(game, deal_id="") for game in others
    ]


def test_only_the_games_of_a_stage_with_fresh_deals_have_fresh_deals():
    fresh = Stage(RULESETS["duel"], 2, 3, deals=Deals.FRESH)
    games = schedule(ROUND_ROBIN, SAME[ROUND_ROBIN], fresh)
    for game in games:
        own = f"-{game.seating + 1}" if game.stage == 1 else ""
        assert game.deal_id == f"cup-deal-{game.match}{own}"
    assert {game.stage for game in games} == {0, 1}
