"""Test that scripted positions have every kind of decision and are reproducible."""

from collections import Counter

import pytest

from referee.check.decision_steps import MIN_REPEATS, decision_kinds, find_script
from referee.clocks import Clocks
from referee.rules.actions import DecisionKind
from referee.rules.ruleset import RULESETS

TABLES = [
    (ruleset, players)
    for ruleset in RULESETS.values()
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


async def test_script_is_reproducible():
    ruleset = RULESETS["duel"]
    assert await find_script(ruleset, 2, Clocks()) == await find_script(ruleset, 2, Clocks())


def test_rulesets_together_have_all_kinds_of_decisions():
    kinds = {kind for ruleset in RULESETS.values() for kind in decision_kinds(ruleset)}
    assert kinds == set(DecisionKind)
