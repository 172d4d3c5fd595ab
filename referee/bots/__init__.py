"""Bots as processes: started, spoken to over their streams, watched and ended.

`pool.BotPool` keeps the processes of a worker; `player.BotPlayer` is one of them in one game, behind
the seam that `match` knows. Isolation goes behind `launcher.Launcher`.
"""

from referee.bots.player import BotPlayer, BotPool, GameOpening
from referee.bots.process import BotProcess, Shutdown
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
