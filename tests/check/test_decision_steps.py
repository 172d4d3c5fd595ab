"""Test that scripted positions have every kind of decision and are reproducible."""

from collections import Counter

import pytest

from referee.check.decision_steps import MIN_REPEATS, decision_kinds, find_script
from referee.check.games import list_rulesets
from referee.clocks import Clocks
from referee.rules.actions import Choice, DecisionKind
from referee.rules.ruleset import RULESETS

TABLES = [
    (each, players)
    for ruleset in RULESETS.values()
    for each in list_rulesets(ruleset)
    for players in range(ruleset.min_players, ruleset.max_players + 1)
]


@pytest.mark.parametrize(("ruleset", "players"), TABLES)
async def test_script_has_every_kind_of_its_ruleset_for_one_seat(ruleset, players):
    script = await find_script(ruleset, players, Clocks())
    seen = Counter(request.decision.kind for request in script.requests)
    assert set(seen) == set(decision_kinds(ruleset))
    assert min(seen.values()) >= MIN_REPEATS
    assert {request.decision.seat for request in script.requests} == {script.game.seat}
    numbers = [request.number for request in script.requests]
    assert numbers == sorted(set(numbers))


async def test_duel_has_two_scripts_and_one_of_them_offers_to_pass_on_the_ghost():
    usual, changed = [
        await find_script(each, 2, Clocks()) for each in list_rulesets(RULESETS["duel"])
    ]
    assert usual.game.name != changed.game.name, "a process never plays two games with the same id"
    assert usual.game.description == "in duel with 2 players"
    assert changed.game.description == (
        'in duel (ghost_start = "as-dealt", ghost_snatch = "optional", ghost_overflow = "lowest")'
        " with 2 players"
    )
    for script, offers in ((usual, False), (changed, True)):
        ghosts = [
            request.decision
            for request in script.requests
            if request.decision.kind is DecisionKind.GHOST_SET
        ]
        assert {Choice.PASS in decision.legal for decision in ghosts} == {offers}


async def test_script_is_reproducible():
    ruleset = RULESETS["duel"]
    assert await find_script(ruleset, 2, Clocks()) == await find_script(ruleset, 2, Clocks())


def test_rulesets_together_have_all_kinds_of_decisions():
    kinds = {kind for ruleset in RULESETS.values() for kind in decision_kinds(ruleset)}
    assert kinds == set(DecisionKind)
