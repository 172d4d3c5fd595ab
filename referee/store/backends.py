"""Provide what SQLite and PostgreSQL share: database URLs, lock files, the timeout for locks, and one-line error messages.

The module `sqlite` connects to an SQLite file, `postgres` to a PostgreSQL server.

A user names a database by an SQLAlchemy URL. If a text cannot be read as a URL, error messages do not repeat
the text, because the text may contain a password.

A reading transaction sees the database as it was at one moment. Writing transactions run one after the
other, because each takes a lock when it begins. The lock is the write lock of the file in SQLite, and an
advisory lock in PostgreSQL. If a transaction waits longer than `BUSY_MS` for the lock, it fails and writes nothing.

In PostgreSQL, another program can also lock a table against reading. If the league is open for reading only, a reading
transaction waits for the table for at most `BUSY_MS` too, so that the web pages do not hang. If the league is open for
writing, a reading transaction waits without a limit, so that a tournament continues when the table is free.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError

from referee.errors import UserError

SQLITE = "sqlite"
POSTGRES = "postgresql+psycopg"
_PASSWORD_WITH_AT = re.compile(r"[^:/]+://[^:/@]*:[^@]*@.*@", re.DOTALL)
_FORMS = f"{SQLITE}:///FILE or {POSTGRES}://USER@HOST/DATABASE"
BUSY_MS = 5_000
"""Timeout in milliseconds for a lock. In SQLite, it applies to all transactions and to the preparation of a new file. In
PostgreSQL, it applies to writing transactions, and to reading transactions if the league is open for reading only."""


def file_url(path: Path) -> URL:
    """Return the URL of an SQLite file, whatever characters its name has."""
    return URL.create(SQLITE, database=str(path))


def parse_url(text: str) -> URL:
    """Return `text` as a URL. Raises UserError if `text` is not the URL of a supported database."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UserError(f"the URL of the database must be UTF-8: {_FORMS}") from None
    if _PASSWORD_WITH_AT.match(
        text
    ):  # the @ may be in the password, and messages would show the rest of it
        raise UserError(
            f"the database must be given by a URL: {_FORMS}; write @ as %40, except the one before the host"
        )
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


def one_line(error: DatabaseError) -> str:
    """Return the message of the database driver as one line, without the text that SQLAlchemy adds."""
    return " ".join(str(error.orig).split())


@contextmanager
def hold_lock_file(path: Path, where: str) -> Iterator[None]:
    """Hold the lock of a file. When this process ends or is killed, the lock is free.

    Raises UserError if another process has the lock (the message begins with `where`), or if the file cannot be opened or
    locked (the message begins with `path`). A symbolic link is not opened, because this function overwrites the file. A link
    in a league folder from a stranger could lead to any file of this user.
    """
    flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        # no access for other users: whoever can open the file can lock it, and so stop this league
        descriptor = os.open(path, flags, 0o600)
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
            raise UserError(f"{path}: the lock file cannot be locked: {error.strerror}") from error
        # If the disk is full, the lock still holds. Only the process id is missing in the messages of other processes.
        with suppress(OSError):
            os.truncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)
