"""Bots as processes: started, spoken to over their streams, watched and ended.

`pool.BotPool` keeps the processes of a worker; `player.BotPlayer` is one of them in one game, behind
the seam that `match` knows. Isolation goes behind `launcher.Launcher`.
"""

import os

# Programs are started while threads of gRPC run: its care for forks breaks them, whatever a user has set.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
# What a bot's HTTP/2 frames say would stand in its log, on the terminal of whoever runs the referee.
os.environ["GRPC_VERBOSITY"] = "NONE"
# The older of gRPC's two servers reads a socket in the thread that waits for it; the newer one hands each
# message on to threads of a pool, which takes a quarter of a stream's CPU (tests/bench/README.md).
os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_listener")

from referee.bots.player import BotPlayer, BotPool, GameOpening
from referee.bots.process import BotProcess, Shutdown
from referee.sandbox.forks import spare_garbage
from referee.sandbox.launcher import Launcher
from referee.sandbox.process_group import ProcessGroupLauncher

__all__ = [
    "BotPlayer",
    "BotPool",
    "BotProcess",
    "GameOpening",
    "Launcher",
    "ProcessGroupLauncher",
    "Shutdown",
]

spare_garbage()
