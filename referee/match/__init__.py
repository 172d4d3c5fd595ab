"""A game between players: whose turn it is to decide, what a fault costs, what is written down.

Knows players by their one method (`referee.records`), never a process, so that whole games are played
in tests without one.
"""

from referee.match.play import GameSetup, PlayedGame, play_game, stand_in
from referee.match.replay import Difference, Step, check, steps

__all__ = [
    "Difference",
    "GameSetup",
    "PlayedGame",
    "Step",
    "check",
    "play_game",
    "stand_in",
    "steps",
]
