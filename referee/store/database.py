"""The connection: opened, brought to the schema of today, its errors told in one line.

All that only SQLite has is here: its pragmas, and that a writing transaction asks for the lock at
once, so that two writers wait for each other rather than fail half-way.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DatabaseError, IntegrityError

from referee.errors import StoreError, UserError
from referee.store import schema

BUSY_MS = 5_000
"""How long to wait for another process's lock."""
_MIGRATIONS = Path(__file__).with_name("migrations")
_FORMAT = (
    "page_size = 8192",  # a page's last bytes stay empty where the next record does not fit
    "journal_mode = WAL",  # readers and a writer go side by side
)
_PRAGMAS = (
    "synchronous = NORMAL",
    "foreign_keys = ON",
    f"busy_timeout = {BUSY_MS}",
)


class Database:
    """An SQLite database file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._engine = create_engine(URL.create("sqlite", database=str(path)))
        event.listen(self._engine, "connect", _configure)
        event.listen(self._engine, "begin", _begin)
        self._writing = self._engine.execution_options(writing=True)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads. Raises UserError when the database cannot be used."""
        with self._told(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes, all or nothing. Raises StoreError when it cannot be done."""
        try:
            with self._writing.begin() as connection:
                yield connection
        except IntegrityError as error:
            raise UserError(f"{self.path}: {error.orig}") from error
        except DatabaseError as error:
            raise StoreError(f"{self.path}: {error.orig}") from error
        except UnicodeEncodeError as error:
            raise UserError(f"{self.path}: {error.object!r} is not Unicode") from error

    def upgrade(self) -> None:
        """Make the tables, or bring those of an older version up to date.

        Raises UserError, and has changed nothing, for a database of a newer version or of something
        else.
        """
        with self.reading() as connection:
            revision = _revision(connection)
            tables = inspect(connection).get_table_names()
        if revision == schema.REVISION:
            return
        if revision is None and tables:
            raise UserError(f"{self.path}: no league: it is a database of something else")
        with self._told():
            if revision is None:
                self._format()
            _migrate(self.path, self._writing, revision)

    def _format(self) -> None:
        """Settle what the file itself remembers."""
        with closing(self._engine.raw_connection()) as connection:
            for pragma in _FORMAT:
                connection.cursor().execute(f"PRAGMA {pragma}")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except DatabaseError as error:
            raise UserError(f"{self.path}: {error.orig}") from error
        except sqlite3.Error as error:  # of a raw connection
            raise UserError(f"{self.path}: {error}") from error


def _configure(connection: DBAPIConnection, _record: object) -> None:
    connection.isolation_level = None  # sqlite3: begin by hand
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    writing = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return revision


def _migrate(path: Path, engine: Engine, revision: str | None) -> None:
    # Alembic takes as long to import as all the rest, and is wanted once in a league's life.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if revision is not None and revision not in known:
        raise UserError(
            f"{path}: made by a newer version of the referee (schema {revision}; this one knows"
            f" up to {schema.REVISION})"
        )
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
