"""Describe where a league is: its folder and its database."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from postgres_server import execute

from referee.store.league import League


@dataclass
class Place:
    """The folder of a league, and its database there or elsewhere."""

    folder: Path
    db: str | None
    """URL of the database; None if it is a file in the folder."""

    def open(self, *, create=False):
        return League.open(self.folder, create=create, db=self.db)

    def execute(self, *statements):
        """Execute statements like another program; return the rows of the last one."""
        return execute(self.url, *statements)

    @property
    def url(self):
        return self.db or f"sqlite:///{self.folder / 'league.db'}"

    @property
    def words(self):
        """The folder and the URL as arguments of a command."""
        return [str(self.folder), self.db or ""]
