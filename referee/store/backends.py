"""Connect to the two kinds of databases: an SQLite file and PostgreSQL.

A user names a database by an SQLAlchemy URL. If a text cannot be read as a URL, error messages do not repeat
the text, because the text may contain a password.

A reading transaction sees the database as it was at one moment. Writing transactions run one after the
other, because each takes a lock when it begins. The lock is the write lock of the file in SQLite, and an
advisory lock in PostgreSQL. If a transaction waits longer than `BUSY_MS` for the lock, it fails and writes nothing.

In PostgreSQL, other programs can lock a table for readers too. In a league that was opened read-only, a reading transaction
then has the same limit, so that the web pages do not hang. The reads of a tournament have no limit: the tournament goes on
when the table is free.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError, SQLAlchemyError

from referee.errors import StoreError, UserError

SQLITE = "sqlite"
POSTGRES = "postgresql+psycopg"
_FORMS = f"{SQLITE}:///FILE or {POSTGRES}://USER@HOST/DATABASE"


def file_url(path: Path) -> URL:
    """Return the URL of an SQLite file, whatever characters its name has."""
    return URL.create(SQLITE, database=str(path))


def parse_url(text: str) -> URL:
    """Return `text` as a URL. Raises UserError if `text` is not the URL of a supported database."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UserError(f"the URL of the database must be UTF-8: {_FORMS}") from None
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise UserError(f"the database must be given by a URL: {_FORMS}") from None
    if url.drivername not in {SQLITE, POSTGRES}:
        raise UserError(f"{without_password(url)}: {url.drivername} is not supported; use {_FORMS}")
    is_file = url == URL.create(SQLITE, database=url.database)
    if url.drivername == SQLITE and (not is_file or url.database in {None, "", ":memory:"}):
        raise UserError(
            f"{without_password(url)}: the URL must name a file and nothing else, {SQLITE}:///FILE"
        )
    if url.drivername == POSTGRES and not url.database:
        raise UserError(
            f"{without_password(url)}: the URL must name a database, {POSTGRES}://USER@HOST/DATABASE"
        )
    return url


def without_password(url: URL) -> str:
    """Return the URL as text without passwords, for messages and for commands that messages suggest."""
    secrets = [key for key in url.query if "password" in key.lower()]
    return url.difference_update_query(secrets).render_as_string(hide_password=True)


def _line(error: DatabaseError) -> str:
    """Return the message of the database driver as one line, without the text that SQLAlchemy adds."""
    return " ".join(str(error.orig).split())


BUSY_MS = 5_000
"""Timeout in milliseconds for locks: of writing transactions, of transactions in a read-only PostgreSQL league, and of the creation
of an SQLite file."""
_RETRY_S = 0.01
"""Seconds between two attempts to switch a file to WAL."""
_FORMAT = (
    "page_size = 8192",  # smaller pages waste more space
    "journal_mode = WAL",  # readers do not block the writer
)
"""Settings that a new SQLite file stores."""
_PRAGMAS = (
    "synchronous = NORMAL",
    "foreign_keys = ON",
    f"busy_timeout = {BUSY_MS}",
)
"""Settings of each connection to SQLite."""
_NEEDED_BYTES = 32_768
"""Size of the file `-shm`, which SQLite needs to read a database. With less free space, the disk counts as full."""


class Sqlite:
    """Implement `database.Backend` for an SQLite file."""

    def __init__(self, url: URL, *, read_only: bool) -> None:
        self.where = str(url.database)
        if _is_frozen(Path(self.where)):
            url = _read_only(url, immutable="1")
        elif read_only:
            url = _read_only(url)
        # each transaction takes a connection from a pool, so several threads can use the engine
        self._engine = create_engine(url)
        event.listen(self._engine, "connect", _configure)
        event.listen(self._engine, "begin", lambda _: self._check_file())
        event.listen(self._engine, "begin", _begin)
        self.reading: Engine = self._engine
        self.writing: Engine = self._engine.execution_options(writing=True)
        self._file = _identify(self.where)
        """See `_identify`."""
        self._observer: Connection | None = None
        """The connection that `change_mark` uses and nothing else; None before the first call."""
        self._observer_lock = threading.Lock()

    def close(self) -> None:
        """Close all connections."""
        with self._observer_lock:
            if self._observer is not None:
                self._observer.close()
                self._observer = None
        self._engine.dispose()

    def may_exist(self) -> bool:
        """Return True if the file exists. Opening a missing file would create it."""
        try:
            return stat.S_ISREG(Path(self.where).stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:  # such as "Permission denied"
            raise UserError(f"{self.where}: {error.strerror}") from error

    def prepare(self) -> None:
        """Set the page size and the journal mode of the file.

        Raises StoreError if the file cannot be written.
        """
        try:
            _format(self._engine)
        except sqlite3.Error as error:
            raise StoreError(f"{self.where}: {error}") from error

    def is_open_failure(self, error: DatabaseError) -> bool:
        """Return True if SQLite could not open the file."""
        return (
            isinstance(error.orig, sqlite3.Error)
            and error.orig.sqlite_errorcode == sqlite3.SQLITE_CANTOPEN
        )

    def explain(self, error: DatabaseError) -> str:
        """Return the message of the driver as one line. SQLite often calls a full disk a "disk I/O error"."""
        line = _line(error)
        if line == "disk I/O error" and self._is_disk_full():
            return f"{line}: the disk is full"
        return line

    def _is_disk_full(self) -> bool:
        try:
            return shutil.disk_usage(Path(self.where).parent).free < _NEEDED_BYTES
        except OSError:
            return False

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock of a file beside the database. Its name is that of the database with `.lock` at its end.

        Links are followed, so that all paths of the database have the same lock file.
        """
        file = Path(os.path.realpath(self.where))
        with hold_lock_file(file.with_name(f"{file.name}.lock"), self.where):
            yield

    def renew_lock(self) -> None:
        """Do nothing, because only this process can free its lock."""

    def change_mark(self) -> int:
        """Return SQLite's `data_version`, which changes when another connection commits.

        Two values can be compared only if they come from the same connection, so one connection is kept for this.
        """
        with self._observer_lock:
            # Check before the connection is used. After an error in the event "begin", SQLAlchemy does not send this event
            # again on the connection, so later checks would be skipped.
            self._check_file()
            if self._observer is None:
                self._observer = self._engine.connect()
            mark: int = self._observer.exec_driver_sql("PRAGMA data_version").scalar_one()
            self._observer.rollback()  # an open transaction would not see later commits
            return mark

    def _check_file(self) -> None:
        """Raise StoreError if the file is missing, or is not the file that was opened."""
        file = _identify(self.where)
        self._file = self._file or file
        if file != self._file:
            raise StoreError(
                f"{self.where}: the file was deleted or replaced while this command used it"
            )


def _identify(path: str) -> tuple[int, int] | None:
    """Return the device and the inode of a file; None if it is missing."""
    try:
        status = os.stat(path)  # noqa: PTH116 - each transaction calls this
    except OSError:
        return None
    return status.st_dev, status.st_ino


@contextmanager
def hold_lock_file(path: Path, where: str) -> Iterator[None]:
    """Hold the lock of a file. When this process ends or is killed, the lock is free.

    Raises UserError if another process has the lock, or if the file cannot be opened or locked. The message begins with `where` or `path`.
    A symbolic link is refused, because the lock file is overwritten: in a league folder from a stranger, the link could lead to
    any file of this user.
    """
    flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, 0o644)
    except OSError as error:
        raise UserError(f"{path}: the lock file cannot be opened: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            raise UserError(
                f"{where}: another referee is playing in this league (process {owner})"
            ) from None
        except OSError as error:  # a network file system may have no locks
            raise UserError(f"{path}: the file cannot be locked: {error.strerror}") from error
        with suppress(
            OSError
        ):  # the disk is full: the lock holds, and only the messages of others lack the number
            os.truncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)


def _is_frozen(file: Path) -> bool:
    """Return True if SQLite must open the file as immutable.

    To read a database in WAL mode, SQLite needs two more files in the folder of the database. A process that
    writes to the database creates the two files. If the files are missing and this process cannot write to the
    folder, SQLite can read the database only as immutable.
    """
    try:
        changes = file.with_name(f"{file.name}-wal")
        return file.is_file() and not changes.exists() and not os.access(file.parent, os.W_OK)
    except OSError:
        return False


def _read_only(url: URL, **options: str) -> URL:
    """Return a URL that makes SQLite open the file for reading only, with these further options of SQLite."""
    file = Path(str(url.database)).absolute().as_uri()
    return url.set(database=file, query={"mode": "ro", "uri": "true"} | options)


def _format(engine: Engine) -> None:
    """Apply `_FORMAT` to a new file. If another process has locked the file, try again for at most `BUSY_MS`.

    SQLite itself does not wait, because the switch to WAL reads the file before it takes the write lock. After
    a transaction has read, SQLite does not wait for the write lock, but fails at once (SQLITE_BUSY).
    """
    deadline_s = time.monotonic() + BUSY_MS / 1000
    with closing(engine.raw_connection()) as connection:
        while True:
            try:
                for pragma in _FORMAT:
                    connection.cursor().execute(f"PRAGMA {pragma}")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline_s:
                    raise
                time.sleep(_RETRY_S)
            else:
                return


def _configure(connection: DBAPIConnection, _record: object) -> None:
    """Prepare a new connection to SQLite."""
    connection.isolation_level = None  # `_begin` begins transactions, not the module sqlite3
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    """Begin a transaction in SQLite. A writing transaction takes the write lock at once."""
    writing = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


_CLIENT_NETWORK = {
    "connect_timeout": 10,  # seconds, as all times without a unit
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
}
"""Parameters of libpq; the URL can set others. If the network goes silent, an operation fails within about half a minute."""
_SERVER_NETWORK = (
    "tcp_keepalives_idle = 10",
    "tcp_keepalives_interval = 5",
    "tcp_keepalives_count = 3",
    "tcp_user_timeout = 30000",
)
"""Settings of each session on the server. If this machine is gone, the server soon frees the locks of the session, not after hours."""
_ENCODINGS = {"UTF8", "SQL_ASCII"}
"""The encodings of a database that can store all characters. With SQL_ASCII, the server stores bytes as they are."""
_GONE_MS = 2_000
"""Milliseconds to wait for the lock that a referee holds while it plays.

When a referee is killed, the server may need a moment until it frees the lock of that referee.
"""
_WRITER = 0x6C696E6B
"""Key of the advisory lock that a writing transaction holds. Its four bytes are the letters "link"."""
_REFEREE = _WRITER + 1
"""Key of the advisory lock that a referee holds while it plays."""


class Postgres:
    """Implement `database.Backend` for a database of a PostgreSQL server."""

    def __init__(self, url: URL, *, read_only: bool) -> None:
        self.where = without_password(url)
        network = {key: _CLIENT_NETWORK[key] for key in _CLIENT_NETWORK.keys() - url.query.keys()}
        options = {"client_encoding": "utf8"} | network
        try:
            self._engine = create_engine(url, connect_args=options, pool_pre_ping=True)
        except ImportError:
            raise UserError(
                f"{self.where}: the driver of PostgreSQL is not installed:"
                " pip install 'linko-referee[postgres]'"
            ) from None
        event.listen(self._engine, "connect", _configure_postgres)
        event.listen(self._engine, "begin", _begin_postgres)
        self._holder: _Holder | None = None
        """The session that holds the lock of a playing referee; None outside the context of `lock`."""
        self.reading: Engine = self._engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True, limits_lock_wait=read_only
        )
        self.writing: Engine = self._engine.execution_options(
            isolation_level="READ COMMITTED", writing=True, limits_lock_wait=True
        )

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def may_exist(self) -> bool:
        """Return True: only a connection to the server can show whether the database exists."""
        return True

    def prepare(self) -> None:
        """Raise UserError if the encoding of the database cannot store every character. Nothing else needs preparation."""
        self._check_encoding()

    def is_open_failure(self, error: DatabaseError) -> bool:
        """Return True if there was no connection yet. SQLAlchemy then has no statement for the error."""
        return error.statement is None

    def explain(self, error: DatabaseError) -> str:
        """Return the message of the driver as one line."""
        return _line(error)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the advisory lock of a playing referee on a separate connection.

        The server frees the lock when the separate connection ends, for example because this process is killed.
        Raises UserError if another referee holds the lock. The message names the process of the other referee. Raises
        UserError also if the encoding of the database cannot store every character: a game in which a bot prints such a
        character could never be stored.
        """
        self._check_encoding()
        self._holder = self._connect_with_lock()
        try:
            yield
        finally:
            self._holder.connection.close()
            self._holder = None

    def renew_lock(self) -> None:
        """See `Backend.renew_lock`. When a server restarts, it frees all locks.

        If only this side of the connection broke, the old session on the server still has the lock. So it is ended first.
        """
        if self._holder is None:
            return
        try:
            self._holder.connection.exec_driver_sql("SELECT 1")
        except SQLAlchemyError:
            self._holder.connection.close()
            with self.reading.begin() as connection:
                connection.execute(_END_SESSION, self._holder.session)
            self._holder = self._connect_with_lock()

    def change_mark(self) -> int:
        """Return a hash of the server's snapshot, which names the transactions that are finished.

        The mark also changes when a transaction in another database of the server ends.
        """
        with self.reading.begin() as connection:
            mark: int = connection.execute(_SNAPSHOT).scalar_one()
            return mark

    def _check_encoding(self) -> None:
        with self.reading.begin() as connection:
            encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
        if encoding not in _ENCODINGS:
            raise UserError(
                f"{self.where}: its encoding {encoding} cannot store every character that a bot may print; use a"
                " database with UTF8: `createdb -E UTF8 -T template0 NAME`"
            )

    def _connect_with_lock(self) -> _Holder:
        """Return a new session that holds the lock of a playing referee.

        Raises UserError if another referee holds the lock.
        """
        connection = self._engine.execution_options(isolation_level="AUTOCOMMIT").connect()
        connection.detach()  # close() must end the connection, not put it back into the pool
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
            return _Holder(connection, dict(connection.execute(_SESSION).mappings().one()))
        except BaseException:
            connection.close()
            raise


class _Holder(NamedTuple):
    """A session that holds the lock of a playing referee."""

    connection: Connection
    session: dict[str, Any]
    """The row of `_SESSION`."""


# The server may give the process id to another session later, so the time when the session began is compared too.
_SESSION = text(
    "SELECT pid, CAST(extract(epoch FROM backend_start) AS text) AS start FROM pg_stat_activity"
    " WHERE pid = pg_backend_pid()"
)
_END_SESSION = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid = :pid AND CAST(extract(epoch FROM backend_start) AS text) = :start"
)
# An advisory lock cannot store who holds it. So the connection with the lock is named after this process.
_SET_NAME = text("SELECT set_config('application_name', :name, false)")
_OWNER = text(
    "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)"
    " WHERE locktype = 'advisory' AND granted AND classid = 0 AND objid = :key"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


_SNAPSHOT = text("SELECT hashtextextended(CAST(pg_current_snapshot() AS text), 0)")


def _configure_postgres(connection: DBAPIConnection, _record: object) -> None:
    """Prepare a new connection to PostgreSQL."""
    cursor = connection.cursor()
    for setting in _SERVER_NETWORK:
        cursor.execute(f"SET {setting}")
    cursor.close()
    connection.commit()


def _begin_postgres(connection: Connection) -> None:
    """Set the lock timeout for a transaction with the option `limits_lock_wait`. Take the lock of writers for one with `writing`."""
    options = connection.get_execution_options()
    if options.get("limits_lock_wait", False):
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {BUSY_MS}")
    if options.get("writing", False):
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITER})")
