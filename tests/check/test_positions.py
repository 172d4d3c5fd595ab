"""Scripted positions: that they hold what they are for."""

from collections import Counter

import pytest

from referee.check.positions import TIMES, kinds_of, script
from referee.clocks import Clocks
from referee.rules.actions import DecisionKind
from referee.rules.ruleset import RULESETS

TABLES = [
    (ruleset, players)
    for ruleset in RULESETS.values()
    for players in range(ruleset.min_players, ruleset.max_players + 1)
]


@pytest.mark.parametrize(("ruleset", "players"), TABLES)
async def test_one_seat_meets_every_kind_of_its_ruleset(ruleset, players):
    scripted = await script(ruleset, players, Clocks())
    met = Counter(request.decision.kind for request in scripted.requests)
    assert set(met) == set(kinds_of(ruleset))
    assert min(met.values()) >= TIMES
    assert {request.decision.seat for request in scripted.requests} == {scripted.seat}
    numbers = [request.number for request in scripted.requests]
    assert numbers == sorted(set(numbers))


async def test_they_are_the_same_every_time():
    ruleset = RULESETS["duel"]
    assert await script(ruleset, 2, Clocks()) == await script(ruleset, 2, Clocks())


def test_the_kinds_of_all_rulesets_are_all_kinds():
    kinds = {kind for ruleset in RULESETS.values() for kind in kinds_of(ruleset)}
    assert kinds == set(DecisionKind)
