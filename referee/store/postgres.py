"""All that only PostgreSQL has: its driver, its isolation, and locks that no file is needed for.

A transaction that reads sees one moment of the database. Those that write come one after the other, as
they do with SQLite: each first takes a lock, by the rules of READ COMMITTED, under which what it reads
after that is what the one before has written.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from referee.errors import UserError
from referee.store.address import shown

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
        self.where = shown(url)
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
        event.listen(self._engine, "begin", _begin)
        self._holder: Connection | None = None
        """The connection that has the lock, while it is held."""
        self.reading: Engine = self._engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        self.writing: Engine = self._engine.execution_options(
            isolation_level="READ COMMITTED", writing=True
        )

    def may_be_there(self) -> bool:
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

    def keep_lock(self) -> None:
        """See `Backend.keep_lock`: a server that was started anew knows nothing of the lock."""
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


def _begin(connection: Connection) -> None:
    if connection.get_execution_options().get("writing", False):
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {BUSY_MS}")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITER})")
