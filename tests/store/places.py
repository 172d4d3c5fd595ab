"""A place of a league, whichever database it has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from postgres_server import execute

from referee.store.league import League


@dataclass
class Place:
    """A folder, and a database in it or elsewhere."""

    folder: Path
    db: str | None
    """As `League.open` takes it."""

    def open(self, *, create=False):
        return League.open(self.folder, create=create, db=self.db)

    def execute(self, *statements):
        """What another program does in the database; returns the rows of the last statement."""
        return execute(self.url, *statements)

    @property
    def url(self):
        return self.db or f"sqlite:///{self.folder / 'league.db'}"

    @property
    def words(self):
        """The place as words of a command line."""
        return [str(self.folder), self.db or ""]
