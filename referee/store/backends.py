"""Where a league's database is: the texts that people give, and what messages may say of them.

A text is an SQLAlchemy URL of a database that this project knows: an SQLite file or PostgreSQL. Nothing
here echoes a text that cannot be understood: there may be a password in it.

All that only SQLite has: its file, its pragmas, and that a writer asks for the lock at once.

So two writers wait for each other rather than fail half-way.

All that only PostgreSQL has: its driver, its isolation, and locks that no file is needed for.

A transaction that reads sees one moment of the database. Those that write come one after the other, as
they do with SQLite: each first takes a lock, by the rules of READ COMMITTED, under which what it reads
after that is what the one before has written.
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
    """The URL of an SQLite file, whatever characters its name has."""
    return URL.create(SQLITE, database=str(path))


def parse_url(text: str) -> URL:
    """The URL that a text is. Raises UserError where it is none, or of a database that is not known."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise UserError(f"the database is not given by a URL, as in {_FORMS}") from None
    if url.drivername not in {SQLITE, POSTGRES}:
        raise UserError(
            f"{without_password(url)}: {url.drivername} is not supported; a league's database is {_FORMS}"
        )
    if url.drivername == SQLITE and (url.query or url.database in {None, "", ":memory:"}):
        raise UserError(
            f"{without_password(url)}: it has to name a file and no more, {SQLITE}:///FILE"
        )
    if url.drivername == POSTGRES and not url.database:
        raise UserError(
            f"{without_password(url)}: it has to name a database, {POSTGRES}://USER@HOST/DATABASE"
        )
    return url


def without_password(url: URL) -> str:
    """The URL without its passwords, for messages and for commands to be typed again."""
    secrets = [key for key in url.query if "password" in key.lower()]
    return url.difference_update_query(secrets).render_as_string(hide_password=True)


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

    def may_exist(self) -> bool:
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

    def renew_lock(self) -> None:
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


CONNECT_S = 10
"""How long to wait for a server that does not answer."""
BUSY_MS = 5_000
"""How long to wait for another process that writes."""
_GONE_MS = 2_000
"""How long the server may take to see that a process is gone that had a lock."""
_WRITER = 0x6C696E6B
"""The advisory lock of this database that a transaction holds while it writes."""
_REFEREE = _WRITER + 1
"""The one that a referee holds while it plays."""


class Postgres:
    """A database of a PostgreSQL server. See `database.Backend`."""

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
        """The connection that has the lock, while it is held."""
        self.reading: Engine = self._engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        self.writing: Engine = self._engine.execution_options(
            isolation_level="READ COMMITTED", writing=True
        )

    def may_exist(self) -> bool:
        """Always: only the server knows."""
        return True

    def prepare(self) -> None:
        """Nothing: what the server keeps is the server's."""

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold a lock of the database on a connection of its own, which nobody else can take then.

        It goes with the connection: when this process ends, or the server does. Raises UserError, which
        names the process that has it.
        """
        self._holder = self._locked()
        try:
            yield
        finally:
            self._holder.close()
            self._holder = None

    def renew_lock(self) -> None:
        """See `Backend.renew_lock`: a server that was started anew knows nothing of the lock."""
        if self._holder is None:
            return
        try:
            self._holder.exec_driver_sql("SELECT 1")
        except SQLAlchemyError:
            self._holder.close()
            self._holder = self._locked()

    def _locked(self) -> Connection:
        """A connection that has the lock. Raises UserError when another referee has it."""
        connection = self._engine.execution_options(isolation_level="AUTOCOMMIT").connect()
        connection.detach()  # closed at the end, not kept for others with the lock on it
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
