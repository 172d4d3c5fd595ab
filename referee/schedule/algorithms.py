"""The algorithms that make schedules, by the names that leagues keep."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from referee.schedule.balanced import balanced
from referee.schedule.games import Stage
from referee.schedule.round_robin import round_robin

ROUND_ROBIN = "round-robin-1"
BALANCED = "balanced-1"
ALGORITHMS = MappingProxyType({ROUND_ROBIN: round_robin, BALANCED: balanced})
"""All that ever made schedules. One that makes other schedules gets a new name."""


def algorithm(stages: Iterable[Stage]) -> str:
    """The name of what makes the schedule of a new tournament; its stages are of one kind."""
    return BALANCED if any(stage.balanced for stage in stages) else ROUND_ROBIN
