"""The connection: opened, brought to the schema of today, its errors told in one line.

What the databases that can be used have each for itself is in `sqlite` and `postgres`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from sqlalchemy import URL, Connection, Engine, inspect, text
from sqlalchemy.exc import DatabaseError, IntegrityError

from referee.errors import StoreError, UserError
from referee.store import backends, schema
from referee.store.backends import Postgres, Sqlite

_MIGRATIONS = Path(__file__).with_name("migrations")


class Backend(Protocol):
    """What is different from one database to another."""

    where: str
    """How messages name it, without a password."""
    reading: Engine
    """Its transactions see one moment of the database, whoever writes meanwhile."""
    writing: Engine
    """Its transactions come one after the other, over all processes."""

    def may_exist(self) -> bool:
        """Whether it makes sense to look into it; False where that would make it."""

    def prepare(self) -> None:
        """Settle what has to be before the first table. Raises UserError when that cannot be."""

    def lock(self) -> AbstractContextManager[None]:
        """Keep out referees that have another folder. Raises UserError when there is one."""

    def renew_lock(self) -> None:
        """Take the lock again, if it is to be held and was lost. Raises UserError as `lock` does."""


class Database:
    """An SQLite file or a PostgreSQL database, as its URL says."""

    def __init__(self, url: URL) -> None:
        self._backend: Backend = Sqlite(url) if url.drivername == backends.SQLITE else Postgres(url)
        self.where = self._backend.where

    def close(self) -> None:
        """Close all connections."""
        self._backend.writing.dispose()  # both engines have the same pool

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads. Raises UserError when the database cannot be used."""
        with self._told(), self._backend.reading.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes, all or nothing.

        Raises StoreError when it cannot be done, and UserError when another referee has the lock by now
        that this one was to hold.
        """
        try:
            self._backend.renew_lock()
            with self._backend.writing.begin() as connection:
                yield connection
        except IntegrityError as error:
            raise UserError(f"{self.where}: {_line(error)}") from error
        except DatabaseError as error:
            raise StoreError(f"{self.where}: {_line(error)}") from error
        except UnicodeEncodeError as error:
            raise UserError(f"{self.where}: {error.object!r} is not Unicode") from error

    @contextmanager
    def lock(self) -> Iterator[None]:
        """See `Backend.lock`."""
        with ExitStack() as held:
            with self._told():
                held.enter_context(self._backend.lock())
            yield

    def has_league(self) -> bool:
        """Whether a league has been made in it. Raises UserError when it cannot be used."""
        if not self._backend.may_exist():
            return False
        with self.reading() as connection:
            return _revision(connection) is not None

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
            raise UserError(f"{self.where}: no league: it is a database of something else")
        with self._told():
            if revision is None:
                self._backend.prepare()
            _migrate(self.where, self._backend.writing, revision)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except DatabaseError as error:
            raise UserError(f"{self.where}: {_line(error)}") from error


def _line(error: DatabaseError) -> str:
    """What the database says, which may be several lines, in one."""
    return " ".join(str(error.orig).split())


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return revision


def _migrate(where: str, engine: Engine, revision: str | None) -> None:
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
            f"{where}: its database has schema {revision}, which this version of the referee does"
            f" not know (it knows {schema.REVISION}): use the version that made the league"
        )
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
