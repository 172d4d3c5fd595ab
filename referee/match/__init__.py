"""Play one game between players, and replay its record.

A player is anything that decides (the `Player` protocol of `referee.records`); processes and streams
belong to `referee.bots`.
"""

from referee.match.play import GameSetup, RecordedGame, play_game
from referee.match.replay import Difference, Step, check_record, replay_moves
from referee.match.stand_in import stand_in_action

__all__ = [
    "Difference",
    "GameSetup",
    "RecordedGame",
    "Step",
    "check_record",
    "play_game",
    "replay_moves",
    "stand_in_action",
]
