"""Bots as processes: started, spoken to over their streams, watched and ended.

`pool.BotPool` keeps the processes of a worker; `player.BotPlayer` is one of them in one game, behind
the seam that `match` knows. Isolation goes behind `launcher.Launcher`.
"""

import os

# Programs are started while threads of gRPC run: its care for forks breaks them, whatever a user has set.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
# What a bot's HTTP/2 frames say would stand in its log, on the terminal of whoever runs the referee.
os.environ["GRPC_VERBOSITY"] = "NONE"

from referee.bots.launcher import Launcher
from referee.bots.player import BotPlayer, GameOpening
from referee.bots.pool import BotPool
from referee.bots.process import BotProcess, Parting
from referee.bots.process_group import ProcessGroupLauncher

__all__ = [
    "BotPlayer",
    "BotPool",
    "BotProcess",
    "GameOpening",
    "Launcher",
    "Parting",
    "ProcessGroupLauncher",
]
