"""Connect to a database of a PostgreSQL server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DatabaseError, OperationalError, SQLAlchemyError

from referee.errors import UserError
from referee.records import host_name
from referee.store.backends import BUSY_MS, one_line, without_password

_CLIENT_NETWORK = {
    "connect_timeout": 10,  # seconds, like the next two
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
}
"""Parameters of libpq, which the URL can override.

If the server can no longer be reached over the network, an operation fails within about half a minute.
"""
_SESSION_SETTINGS = (
    "tcp_keepalives_idle = 10",
    "tcp_keepalives_interval = 5",
    "tcp_keepalives_count = 3",
    "tcp_user_timeout = 30000",
)
"""Settings for each session. If this machine cannot be reached, the server soon ends the session and frees its locks.

With the default settings of a server, this can take hours.
"""
_KEEP_SESSION = (
    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN"
    " ('idle_session_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')"
)
"""Switches off the server's timeouts for idle sessions and for transactions. Old PostgreSQL versions lack some of them.

The session that holds the lock of a playing referee is idle while a game is played. Without the session, a second referee
could play in the same league. A reading transaction may be idle for long, because a command computes ratings between two
queries.
"""
_ENCODINGS = {"UTF8", "SQL_ASCII"}
"""The encodings with which a database can store all characters. With SQL_ASCII, the server stores bytes as they are."""
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
        event.listen(self._engine, "connect", _configure)
        event.listen(self._engine, "begin", _begin)
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
        """Return True if the error has no SQL statement, as when SQLAlchemy could not connect."""
        return error.statement is None

    def explain(self, error: DatabaseError) -> str:
        """Return the message of the driver as one line."""
        return one_line(error)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the advisory lock of a playing referee on a separate connection.

        The server frees the lock when the separate connection ends, for example because this process is killed.
        Raises UserError if another referee holds the lock. The message names the process of the other referee, if the
        server still knows it. Raises UserError also if the encoding of the database cannot store every character, because
        a game in which a bot prints an unsupported character could never be stored.
        """
        self._check_encoding()
        self._holder = self._connect_with_lock()
        try:
            yield
        finally:
            self._holder.connection.close()
            self._holder = None

    def renew_lock(self) -> None:
        """See `Backend.renew_lock`. A server frees all locks when it restarts.

        If the connection broke and the server did not notice, the old session still holds the lock. So this method first
        ends the old session, and then takes the lock with a new one.
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
        """Return a hash of `pg_current_snapshot`, a text in which PostgreSQL tells which transactions have ended.

        The mark also changes when a writing transaction in another database of the server ends.
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
            name = f"process {os.getpid()} on {host_name()}"
            connection.execute(_SET_NAME, {"name": name})
            connection.exec_driver_sql(f"SET lock_timeout = {_GONE_MS}")
            try:
                connection.exec_driver_sql(f"SELECT pg_advisory_lock({_REFEREE})")
            except OperationalError:
                owner = connection.scalar(_OWNER) or "process unknown"
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
    """What the query `_SESSION` returned on this connection: the columns `pid` and `start`."""


# Each session has its own process on the server. A later session may get the same process id. So `_END_SESSION` also
# compares the time at which the session began.
_SESSION = text(
    "SELECT pid, CAST(extract(epoch FROM backend_start) AS text) AS start FROM pg_stat_activity"
    " WHERE pid = pg_backend_pid()"
)
# PostgreSQL knows which session holds an advisory lock, but not which process on which machine uses the session. So the
# session is named after this process.
_SET_NAME = text("SELECT set_config('application_name', :name, false)")
_HOLDERS = (
    "FROM pg_locks JOIN pg_stat_activity USING (pid)"  # noqa: S608 - only a number of this module
    f" WHERE locktype = 'advisory' AND granted AND classid = 0 AND objid = {_REFEREE}"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
_OWNER = text(f"SELECT application_name {_HOLDERS}")
_END_SESSION = text(
    f"SELECT pg_terminate_backend(pid) {_HOLDERS}"  # noqa: S608 - a text of this module
    " AND pid = :pid AND CAST(extract(epoch FROM backend_start) AS text) = :start"
)
_SNAPSHOT = text("SELECT hashtextextended(CAST(pg_current_snapshot() AS text), 0)")


def _configure(connection: DBAPIConnection, _record: object) -> None:
    """Prepare a new connection to PostgreSQL."""
    cursor = connection.cursor()
    for setting in _SESSION_SETTINGS:
        cursor.execute(f"SET {setting}")
    cursor.execute(_KEEP_SESSION)
    cursor.close()
    connection.commit()


def _begin(connection: Connection) -> None:
    """Set the lock timeout if the option `limits_lock_wait` is True, and take the lock of writers if `writing` is True."""
    options = connection.get_execution_options()
    if options.get("limits_lock_wait", False):
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {BUSY_MS}")
    if options.get("writing", False):
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITER})")
