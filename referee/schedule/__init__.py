"""The whole schedule of a tournament, made before its first game: pure, and the same everywhere.

Nothing here knows a worker, a process or a clock.
"""

from referee.schedule.algorithms import ALGORITHMS, ROUND_ROBIN, algorithm
from referee.schedule.balanced import balanced
from referee.schedule.budget import buy, least
from referee.schedule.extension import extended, longer, shorter
from referee.schedule.games import ScheduledGame, Stage, default_lanes
from referee.schedule.gauntlet import gauntlet
from referee.schedule.round_robin import round_robin

__all__ = [
    "ALGORITHMS",
    "ROUND_ROBIN",
    "ScheduledGame",
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
