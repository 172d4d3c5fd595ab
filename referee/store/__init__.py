"""What a league keeps: bots, tournaments with their schedules and seeds, and every game played.

`league.League` is a folder with a database, in it or elsewhere. Only this package knows that database.
"""

from referee.store.league import League, shown_url
from referee.store.rows import (
    BotRow,
    ExtensionRow,
    GameRow,
    NewExtension,
    NewTournament,
    TournamentRow,
    UsageRow,
    storable,
)

__all__ = [
    "BotRow",
    "ExtensionRow",
    "GameRow",
    "League",
    "NewExtension",
    "NewTournament",
    "TournamentRow",
    "UsageRow",
    "shown_url",
    "storable",
]
