"""The whole schedule of a tournament, made before its first game: pure, and the same everywhere.

Nothing here knows a worker, a process or a clock.
"""

from referee.schedule.balanced import balanced
from referee.schedule.budget import buy, least
from referee.schedule.extension import ALGORITHMS, ROUND_ROBIN, algorithm, extended, longer, shorter
from referee.schedule.gauntlet import gauntlet
from referee.schedule.round_robin import round_robin
from referee.schedule.stages import Stage, default_lanes

__all__ = [
    "ALGORITHMS",
    "ROUND_ROBIN",
    "Stage",
    "algorithm",
    "balanced",
    "buy",
    "default_lanes",
    "extended",
    "gauntlet",
    "least",
    "longer",
    "round_robin",
    "shorter",
]
