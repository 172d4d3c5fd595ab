"""Open the database of a league, migrate it to the current schema, and translate the errors of SQLAlchemy.

The message of a translated error is one line. The modules `sqlite` and `postgres` have everything that differs
between the two kinds of databases.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sqlalchemy import URL, Connection, Engine, inspect, text
from sqlalchemy.exc import (
    DatabaseError,
    DataError,
    IntegrityError,
    OperationalError,
    ProgrammingError,
)
from sqlalchemy.exc import TimeoutError as NoConnectionError

from referee.errors import StoreError, UserError
from referee.store import schema
from referee.store.backends import SQLITE
from referee.store.postgres import Postgres
from referee.store.sqlite import Sqlite

if TYPE_CHECKING:
    from alembic.config import Config

_MIGRATIONS = Path(__file__).with_name("migrations")
_WRITE_TRIES = 12
"""The largest number of tries of `write_patiently`."""
_TRY_S = 5.0
"""The shortest time in seconds between the starts of two tries. Without it, all tries on a full disk would be over at once."""
_FIRST_MOMENT_MARK = -(2**64)
"""The change mark inside the first `one_moment` context. Each later context gets the next smaller number. A nested context
keeps the outer mark. No backend returns one of these numbers as a mark, because they do not fit into 64 bits."""


class Backend(Protocol):
    """What differs between SQLite and PostgreSQL."""

    where: str
    """Name of the database in messages, without a password."""
    reading: Engine
    """Engine for reading. A transaction sees the database as it was at one moment, even if others write meanwhile."""
    writing: Engine
    """Engine for writing. The writing transactions of all processes run one after the other."""

    def may_exist(self) -> bool:
        """Return False if the database is known to be missing. Return True in all other cases.

        The caller must not open a missing database, because SQLite would create the file. Raises UserError if it cannot be
        found out whether the file exists, for example because this user may not search a folder in its path.
        """

    def prepare(self) -> None:
        """Prepare a new database before its first table is created.

        Raises StoreError if that fails, and UserError if the database cannot store all characters.
        """

    def is_open_failure(self, error: DatabaseError) -> bool:
        """Return True if `error` came from opening the database, for example because it does not exist."""

    def explain(self, error: DatabaseError) -> str:
        """Return the message of the database driver as one line, without the text that SQLAlchemy adds."""

    def lock(self) -> AbstractContextManager[None]:
        """Return a context that holds the lock which a referee needs to play.

        Only one referee can hold the lock, even if several referees with different league folders use the
        database. Raises UserError if another referee holds the lock, if the lock file cannot be opened or locked, or if the database
        cannot store all characters.
        """

    def renew_lock(self) -> None:
        """Take the lock again if the server has freed it while the context of `lock` is still open.

        Raises UserError if another referee has taken the lock.
        """

    def change_mark(self) -> int:
        """See `League.change_mark`."""

    def close(self) -> None:
        """Close all connections."""


class Database:
    """The database of a league. The URL decides whether it is SQLite or PostgreSQL.

    If `read_only` is True, nothing is ever written. Several threads may use the database at once.
    """

    def __init__(self, url: URL, *, read_only: bool = False) -> None:
        self._read_only = read_only
        self._backend: Backend = (
            Sqlite(url, read_only=read_only)
            if url.drivername == SQLITE
            else Postgres(url, read_only=read_only)
        )
        self.where = self._backend.where
        """See `Backend.where`."""
        self._was_open = False
        """Whether the league has been opened. If so, the path or the address of the database is right, and so are the login and the rights."""
        self._local = threading.local()
        """Has the attributes `connection` and `mark` in each thread that has used `one_moment`."""
        self._moment_marks = count(_FIRST_MOMENT_MARK, -1)

    def close(self) -> None:
        """Close all connections."""
        self._backend.close()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that only reads. Inside `one_moment`, use the transaction of `one_moment` instead.

        Raises StoreError if the database fails, for example because it is locked. Raises UserError if the database cannot
        be used at all, or if the caller searches for a text that is not Unicode.
        """
        if self._connection is not None:
            yield self._connection
            return
        with self._translate_errors(), self._backend.reading.begin() as connection:
            yield connection

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """See `League.one_moment`."""
        outer = self._connection
        with self.reading() as connection:
            if outer is None:
                self._local.mark = next(self._moment_marks)
            self._local.connection = connection
            try:
                yield
            finally:
                self._local.connection = outer

    @property
    def _connection(self) -> Connection | None:
        """The connection of `one_moment` in this thread; None outside of it."""
        return getattr(self._local, "connection", None)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that writes everything or nothing.

        Raises StoreError if the database cannot be written. Raises UserError if a value breaks a constraint of
        the table, if a text is not Unicode, or if another referee has taken the lock that this process held.
        """
        self.check_writable()
        with self._translate_errors():
            try:
                self._backend.renew_lock()
                with self._backend.writing.begin() as connection:
                    yield connection
            except IntegrityError as error:
                raise UserError(self._message(error)) from error
            except DatabaseError as error:
                raise StoreError(self._message(error)) from error

    def check_writable(self) -> None:
        """Raise StoreError if the database was opened for reading only."""
        if self._read_only:
            raise StoreError(f"{self.where}: the league is open for reading only")

    def change_mark(self) -> int:
        """See `League.change_mark`."""
        if self._connection is not None:
            mark: int = self._local.mark
            return mark
        with self._translate_errors():
            return self._backend.change_mark()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """See `Backend.lock`."""
        with ExitStack() as held:
            with self._translate_errors():
                held.enter_context(self._backend.lock())
            yield

    def has_league(self) -> bool:
        """Return True if the database has a league. Raises UserError or StoreError as `reading` does."""
        if not self._backend.may_exist():
            return False
        with self.reading() as connection:
            return _revision(connection) is not None

    def upgrade(self) -> None:
        """Create the tables, or migrate the tables that an older version of the referee made.

        Raises UserError if a newer version of the referee made the database, if the database has tables but no league, or if a
        new database cannot store all characters. Then nothing is changed. Raises StoreError if the database cannot be written.
        """
        with self.reading() as connection:
            revision = _revision(connection)
            tables = inspect(connection).get_table_names()
        if revision == schema.REVISION:
            return
        if revision is None and tables:
            raise UserError(
                f"{self.where}: this database has tables, but not those of a league; choose another one"
            )
        with self._translate_errors():
            if revision is None:
                self._backend.prepare()
            _migrate(self.where, self._backend.writing, revision)

    def note_open(self) -> None:
        """Note that the league has been opened, so that later errors do not blame the user."""
        self._was_open = True

    def check_revision(self) -> None:
        """Raise UserError if the database has a league whose schema is not the one of this version of the referee."""
        with self.reading() as connection:
            revision = _revision(connection)
        if revision is not None and revision != schema.REVISION:
            _check_known(self.where, revision)
            raise UserError(
                f"{self.where}: its database has schema {revision}, and this version of the referee reads"
                f" {schema.REVISION}: migrate the league with a command that may write, such as"
                " `referee tournament status`, or use the version that made the league"
            )

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Turn errors of SQLAlchemy, and the error for a text that is not Unicode, into errors of the project.

        After `note_open`, an error of the database becomes a StoreError, because the command did not cause it: for
        example, a table was removed in the meantime. But a `DataError` or an `IntegrityError` becomes a UserError.

        Before `note_open`, an `OperationalError` becomes a StoreError, because the same command can succeed later.
        But if the database could not be opened, it becomes a UserError, because the path or the password may be wrong.
        Every other error of the database becomes a UserError too, for example if the file is not a database.

        At any time, a StoreError is raised if other threads use all connections.
        """
        try:
            yield
        except DatabaseError as error:
            if self._was_open:
                failed = not isinstance(error, DataError | IntegrityError)
            else:
                is_open_failure = self._backend.is_open_failure(error)
                failed = isinstance(error, OperationalError) and not is_open_failure
            raise (StoreError if failed else UserError)(self._message(error)) from error
        except NoConnectionError as error:
            message = f"{self.where}: all connections are in use; try again later"
            raise StoreError(message) from error
        except UnicodeEncodeError as error:
            raise UserError(f"{self.where}: {error.object!r} is not Unicode") from error

    def _message(self, error: DatabaseError) -> str:
        return f"{self.where}: {self._backend.explain(error)}"


def write_patiently(write: Callable[[], None]) -> None:
    """Call `write`, which stores data that would otherwise be lost. If the database fails, try again for about a minute or longer.

    Only two kinds of errors lead to another try: a StoreError, and a UserError with an OperationalError as its cause. The
    second kind occurs if `write` opens the league and, for example, its server cannot be reached. Any other error is raised at
    once, and so is a StoreError whose cause is a ProgrammingError: then this user lacks a right, or a table is missing. The
    error of the last try is raised too.
    """
    for _ in range(_WRITE_TRIES - 1):
        next_s = time.monotonic() + _TRY_S
        try:
            return write()
        except StoreError as error:
            if isinstance(error.__cause__, ProgrammingError):
                raise
        except UserError as error:
            if not isinstance(error.__cause__, OperationalError):
                raise
        time.sleep(max(0.0, next_s - time.monotonic()))
    return write()


def _revision(connection: Connection) -> str | None:
    """Return the id of the last migration of the database; None if the database has no league."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return revision


def _migrate(where: str, engine: Engine, revision: str | None) -> None:
    """Run all migrations after `revision`. Raises UserError if this version of the referee does not know `revision`."""
    from alembic import command  # noqa: PLC0415 - see `_migrations`

    if revision is not None:
        _check_known(where, revision)
    config = _migrations()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _check_known(where: str, revision: str) -> None:
    """Raise UserError if this version of the referee cannot migrate a database with the schema `revision`."""
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - see `_migrations`

    known = ScriptDirectory.from_config(_migrations()).walk_revisions()
    if revision not in {script.revision for script in known}:
        raise UserError(
            f"{where}: its database has schema {revision}, which this version of the referee does"
            f" not know (it knows {schema.REVISION}): use the version that made the league"
        )


def _migrations() -> Config:
    """Return the configuration with which Alembic finds the migrations."""
    # Imported here because Alembic takes long to import and few commands migrate a database.
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
