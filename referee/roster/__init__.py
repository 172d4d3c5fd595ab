"""The bots of a league: what is copied, built, submitted, named, chosen and retired."""

from referee.roster.roster import Entry, Roster
from referee.roster.workshop import BuildError, Copy, Workshop

__all__ = ["BuildError", "Copy", "Entry", "Roster", "Workshop"]
