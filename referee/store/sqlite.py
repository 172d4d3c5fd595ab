"""All that only SQLite has: its file, its pragmas, and that a writer asks for the lock at once.

So two writers wait for each other rather than fail half-way.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection

from referee.errors import UserError

BUSY_MS = 5_000
"""How long to wait for another process's lock."""
_FORMAT = (
    "page_size = 8192",  # a page's last bytes stay empty where the next record does not fit
    "journal_mode = WAL",  # readers and a writer go side by side
)
_PRAGMAS = (
    "synchronous = NORMAL",
    "foreign_keys = ON",
    f"busy_timeout = {BUSY_MS}",
)


class Sqlite:
    """A database file. See `database.Backend`."""

    def __init__(self, url: URL) -> None:
        self.where = str(url.database)
        self._engine = create_engine(_frozen(url) if _is_frozen(Path(self.where)) else url)
        event.listen(self._engine, "connect", _configure)
        event.listen(self._engine, "begin", _begin)
        self.reading: Engine = self._engine
        self.writing: Engine = self._engine.execution_options(writing=True)

    def may_be_there(self) -> bool:
        """Whether the file is there: to look into it would make it."""
        try:
            return Path(self.where).is_file()
        except OSError:
            return False

    def prepare(self) -> None:
        """Settle what the file itself remembers. Raises UserError when it cannot be written."""
        try:
            _format(self._engine)
        except sqlite3.Error as error:
            raise UserError(f"{self.where}: {error}") from error

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Nothing: who plays has the lock of the folder, and a file is on one machine."""
        yield

    def keep_lock(self) -> None:
        """Nothing: see `lock`."""


def _is_frozen(file: Path) -> bool:
    """Whether nobody here can write a database, nor is anybody who could writing it now.

    To read one, SQLite wants to make two files beside it. It uses those of a writer; where there are none
    and none can be made, it has to be told that nothing will change.
    """
    try:
        changes = file.with_name(f"{file.name}-wal")
        return file.is_file() and not changes.exists() and not os.access(file.parent, os.W_OK)
    except OSError:
        return False


def _frozen(url: URL) -> URL:
    file = Path(str(url.database)).absolute().as_uri()
    return url.set(database=file, query={"mode": "ro", "immutable": "1", "uri": "true"})


def _format(engine: Engine) -> None:
    with closing(engine.raw_connection()) as connection:
        for pragma in _FORMAT:
            connection.cursor().execute(f"PRAGMA {pragma}")


def _configure(connection: DBAPIConnection, _record: object) -> None:
    connection.isolation_level = None  # sqlite3: begin by hand
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    writing = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
