"""Connect to an SQLite file."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DatabaseError

from referee.errors import StoreError, UserError
from referee.store.backends import BUSY_MS, hold_lock_file, one_line

_RETRY_S = 0.01
"""Seconds between two attempts to switch a file to WAL."""
_FORMAT = (
    "page_size = 8192",  # smaller pages waste more space
    "journal_mode = WAL",  # readers do not block the writer
)
"""Settings that SQLite stores in the file. They are set once, before the first table is created."""
_PRAGMAS = (
    "synchronous = NORMAL",
    "foreign_keys = ON",
    f"busy_timeout = {BUSY_MS}",
)
"""Settings that each new connection needs, because SQLite does not store them in the file."""
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
        if not read_only:
            event.listen(self._engine, "do_connect", lambda *_: self._create_file())
        event.listen(self._engine, "connect", _configure)
        event.listen(self._engine, "begin", self._begin)
        self.reading: Engine = self._engine
        self.writing: Engine = self._engine.execution_options(writing=True)
        self._file = _identify(self.where)
        """Device and inode of the file when it was first seen; None until then."""
        self._observer: Connection | None = None
        """The connection that only `change_mark` uses; None before its first call and after `close`."""
        self._observer_lock = threading.Lock()

    def close(self) -> None:
        """Close all connections."""
        with self._observer_lock:
            if self._observer is not None:
                self._observer.close()
                self._observer = None
        self._engine.dispose()

    def may_exist(self) -> bool:
        """Return True if the path is a file. The caller must not open a missing file, because this would create it."""
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
        """Return the message of the driver as one line. If the disk is full, append this to the message "disk I/O error".

        SQLite often reports a full disk only as "disk I/O error".
        """
        line = one_line(error)
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
        """Hold the lock of a file beside the database. If the database is `FILE`, this is the file `FILE.lock`.

        Symbolic links to the database are resolved first, so that all its paths lead to the same lock file. Hard links
        cannot be resolved, but `_check_names` refuses to write to a file that has one.
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
            # The handler of the event "begin" makes the same check. But once the handler has raised an error, SQLAlchemy
            # never sends the event on this connection again, so later calls would not check. So check here first.
            self._check_file()
            if self._observer is None:
                self._observer = self._engine.connect()
            mark: int = self._observer.exec_driver_sql("PRAGMA data_version").scalar_one()
            self._observer.rollback()  # an open transaction would not see later commits
            return mark

    def _create_file(self) -> None:
        """If the file is missing, create it with a mode that only its owner can read. SQLite gives `-wal` and `-shm` the same mode.

        Otherwise a bot with a user id of its own could read the seed of its tournament, and so know all cards. An existing file
        is not opened, because closing it would release the locks that SQLite holds.
        """
        with suppress(OSError):  # SQLite reports the error
            Path(os.path.realpath(self.where)).touch(mode=0o600, exist_ok=False)

    def _begin(self, connection: Connection) -> None:
        """Begin a transaction. A writing transaction takes the write lock at once."""
        self._check_file()
        writing = connection.get_execution_options().get("writing", False)
        if writing:
            self._check_names()
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    def _check_names(self) -> None:
        """Raise StoreError if the database, or a file of SQLite beside it, has several names.

        SQLite and the referee keep their locks and the newest changes in files beside the database, named after it. So
        writers with different names would not see each other, and one would overwrite what the other has stored.
        """
        for ending in ("", "-wal", "-shm"):
            with suppress(OSError):  # the file is missing, or SQLite reports the error
                if os.stat(self.where + ending).st_nlink > 1:  # noqa: PTH116 - as in `_identify`
                    raise StoreError(
                        f"{self.where}{ending}: the file has several names (hard links), so games could be lost;"
                        " replace the other name of this file by a copy"
                    )

    def _check_file(self) -> None:
        """Raise StoreError if the file that was first seen has been deleted or replaced."""
        file = _identify(self.where)
        self._file = self._file or file
        if file != self._file:
            raise StoreError(
                f"{self.where}: the file was deleted or replaced while this command used it"
            )


def _identify(path: str) -> tuple[int, int] | None:
    """Return the device and the inode of a file; None if it is missing."""
    try:
        status = os.stat(path)  # noqa: PTH116 - faster than Path.stat, for each transaction
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_frozen(file: Path) -> bool:
    """Return True if SQLite must open the file as immutable.

    To read a database in WAL mode, SQLite needs two more files in the folder of the database, and creates them if it
    can. If the files are missing and this process cannot write to the folder, SQLite can read the database only as
    immutable: it then assumes that nobody changes the file.
    """
    try:
        changes = file.with_name(f"{file.name}-wal")
        return file.is_file() and not changes.exists() and not os.access(file.parent, os.W_OK)
    except OSError:
        return False


def _read_only(url: URL, **options: str) -> URL:
    """Return a URL with which SQLite opens the file for reading only. `options` are added to the URL."""
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
    connection.isolation_level = None  # the module sqlite3 begins no transactions; `_begin` does
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
