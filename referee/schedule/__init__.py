"""The whole schedule of a tournament, made before its first game: pure, and the same everywhere.

Nothing here knows a worker, a process or a clock.
"""

from referee.schedule.round_robin import (
    ALGORITHM,
    ALGORITHMS,
    ScheduledGame,
    Stage,
    default_lanes,
    round_robin,
    rounds_within,
)

__all__ = [
    "ALGORITHM",
    "ALGORITHMS",
    "ScheduledGame",
    "Stage",
    "default_lanes",
    "round_robin",
    "rounds_within",
]
