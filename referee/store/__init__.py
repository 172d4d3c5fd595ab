"""What a league keeps: bots, tournaments with their schedules and seeds, and every game played.

`league.League` is a folder with a database, in it or elsewhere. Only this package knows that database.
"""

from referee.store.league import League, shown_url
from referee.store.stored import (
    NewExtension,
    NewTournament,
    StoredBot,
    StoredExtension,
    StoredGame,
    StoredTournament,
    StoredUsage,
    storable,
)

__all__ = [
    "League",
    "NewExtension",
    "NewTournament",
    "StoredBot",
    "StoredExtension",
    "StoredGame",
    "StoredTournament",
    "StoredUsage",
    "shown_url",
    "storable",
]
