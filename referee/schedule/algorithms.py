"""The algorithms that make schedules, by the names that leagues keep."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from referee.schedule.balanced import balanced
from referee.schedule.games import Stage
from referee.schedule.gauntlet import gauntlet
from referee.schedule.round_robin import round_robin

ROUND_ROBIN = "round-robin-1"
BALANCED = "balanced-1"
GAUNTLET = "gauntlet-1"
ALGORITHMS = MappingProxyType({ROUND_ROBIN: round_robin, BALANCED: balanced, GAUNTLET: gauntlet})
"""All that ever made schedules. One that makes other schedules gets a new name."""


def algorithm(stages: Iterable[Stage]) -> str:
    """The name of what makes the schedule of a new tournament; its stages are of one kind."""
    kinds = {(stage.challengers > 0, stage.balanced) for stage in stages}
    if any(challenged for challenged, _ in kinds):
        return GAUNTLET
    return BALANCED if any(choice for _, choice in kinds) else ROUND_ROBIN
