"""Connect to the two kinds of databases: an SQLite file and PostgreSQL.

A user names a database by an SQLAlchemy URL. Messages never repeat a text that is no such URL, because it
may contain a password.

Reading transactions see one moment of the database. Writing transactions run one after the other: in
SQLite they take the write lock when they begin, in PostgreSQL an advisory lock. Both wait some seconds for
the lock, so that two writers do not fail half-way.
"""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, OperationalError, SQLAlchemyError

from referee.errors import UserError

SQLITE = "sqlite"
POSTGRES = "postgresql+psycopg"
_FORMS = f"{SQLITE}:///FILE or {POSTGRES}://USER@HOST/DATABASE"


def file_url(path: Path) -> URL:
    """Return the URL of an SQLite file, whatever characters its name has."""
    return URL.create(SQLITE, database=str(path))


def parse_url(text: str) -> URL:
    """Return the URL in `text`. Raises UserError if it is none, or if the database is not supported."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise UserError(f"the database must be given by a URL: {_FORMS}") from None
    if url.drivername not in {SQLITE, POSTGRES}:
        raise UserError(f"{without_password(url)}: {url.drivername} is not supported; use {_FORMS}")
    if url.drivername == SQLITE and (url.query or url.database in {None, "", ":memory:"}):
        raise UserError(
            f"{without_password(url)}: the URL must name a file and nothing else, {SQLITE}:///FILE"
        )
    if url.drivername == POSTGRES and not url.database:
        raise UserError(
            f"{without_password(url)}: the URL must name a database, {POSTGRES}://USER@HOST/DATABASE"
        )
    return url


def without_password(url: URL) -> str:
    """Return the URL as text without its passwords, for messages and suggested commands."""
    secrets = [key for key in url.query if "password" in key.lower()]
    return url.difference_update_query(secrets).render_as_string(hide_password=True)


BUSY_MS = 5_000
"""Milliseconds to wait for the write lock of another process."""
_FORMAT = (
    "page_size = 8192",  # a page of 4096 wastes more space behind its last record
    "journal_mode = WAL",  # readers do not block the writer
)
_PRAGMAS = (
    "synchronous = NORMAL",
    "foreign_keys = ON",
    f"busy_timeout = {BUSY_MS}",
)


class Sqlite:
    """Implement `database.Backend` for an SQLite file."""

    def __init__(self, url: URL) -> None:
        self.where = str(url.database)
        self._engine = create_engine(_frozen(url) if _is_frozen(Path(self.where)) else url)
        event.listen(self._engine, "connect", _configure)
        event.listen(self._engine, "begin", _begin)
        self.reading: Engine = self._engine
        self.writing: Engine = self._engine.execution_options(writing=True)

    def may_exist(self) -> bool:
        """Return True if the file exists, because SQLite creates a missing file when it opens it."""
        try:
            return Path(self.where).is_file()
        except OSError:
            return False

    def prepare(self) -> None:
        """Set the properties that the file keeps. Raises UserError if the file cannot be written."""
        try:
            _format(self._engine)
        except sqlite3.Error as error:
            raise UserError(f"{self.where}: {error}") from error

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Do nothing: the lock of the league folder is enough for a file on one machine."""
        yield

    def renew_lock(self) -> None:
        """Do nothing, as `lock`."""


def _is_frozen(file: Path) -> bool:
    """Return True if the database cannot be written here, and nobody is writing it now.

    To read a database, SQLite needs two files beside it. If no writer has made them and this process
    cannot make them, SQLite must be told that the file is immutable.
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
    connection.isolation_level = None  # the module sqlite3 must not begin transactions itself
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    writing = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


CONNECT_S = 10
"""Seconds to wait for a server that does not answer."""
_GONE_MS = 2_000
"""Milliseconds in which the server must notice that the process with the lock has ended."""
_WRITER = 0x6C696E6B
"""Key of the advisory lock that a writing transaction holds; the letters are "link"."""
_REFEREE = _WRITER + 1
"""Key of the advisory lock that a referee holds while it plays."""


class Postgres:
    """Implement `database.Backend` for a database of a PostgreSQL server."""

    def __init__(self, url: URL) -> None:
        self.where = without_password(url)
        options: dict[str, str | int] = {"client_encoding": "utf8"}
        if "connect_timeout" not in url.query:
            options["connect_timeout"] = CONNECT_S
        try:
            self._engine = create_engine(url, connect_args=options, pool_pre_ping=True)
        except ImportError:
            raise UserError(
                f"{self.where}: the driver of PostgreSQL is not installed:"
                " pip install 'linko-referee[postgres]'"
            ) from None
        event.listen(self._engine, "begin", _begin_postgres)
        self._holder: Connection | None = None
        """The connection that holds the lock; None without a lock."""
        self.reading: Engine = self._engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        self.writing: Engine = self._engine.execution_options(
            isolation_level="READ COMMITTED", writing=True
        )

    def may_exist(self) -> bool:
        """Return True: only the server knows."""
        return True

    def prepare(self) -> None:
        """Do nothing: the server has its own settings."""

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the advisory lock of a playing referee on a separate connection.

        The lock ends with that connection, so also with this process or the server. Raises UserError if
        another process has the lock; the message names it.
        """
        self._holder = self._connect_with_lock()
        try:
            yield
        finally:
            self._holder.close()
            self._holder = None

    def renew_lock(self) -> None:
        """See `Backend.renew_lock`: a restarted server has forgotten the lock."""
        if self._holder is None:
            return
        try:
            self._holder.exec_driver_sql("SELECT 1")
        except SQLAlchemyError:
            self._holder.close()
            self._holder = self._connect_with_lock()

    def _connect_with_lock(self) -> Connection:
        """Return a connection that holds the lock. Raises UserError if another referee holds it."""
        connection = self._engine.execution_options(isolation_level="AUTOCOMMIT").connect()
        connection.detach()  # so that close() ends it, instead of returning it to the pool with the lock
        try:
            name = f"process {os.getpid()} on {socket.gethostname()}"
            connection.execute(_SET_NAME, {"name": name})
            connection.exec_driver_sql(f"SET lock_timeout = {_GONE_MS}")
            try:
                connection.exec_driver_sql(f"SELECT pg_advisory_lock({_REFEREE})")
            except OperationalError:
                owner = connection.scalar(_OWNER, {"key": _REFEREE}) or "process unknown"
                raise UserError(
                    f"{self.where}: another referee is playing in this league ({owner})"
                ) from None
        except BaseException:
            connection.close()
            raise
        return connection


_SET_NAME = text("SELECT set_config('application_name', :name, false)")
_OWNER = text(
    "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)"
    " WHERE locktype = 'advisory' AND granted AND classid = 0 AND objid = :key"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def _begin_postgres(connection: Connection) -> None:
    if connection.get_execution_options().get("writing", False):
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {BUSY_MS}")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITER})")
