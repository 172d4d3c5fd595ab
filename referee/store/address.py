"""Where a league's database is: the texts that people give, and what messages may say of them.

A text is an SQLAlchemy URL of a database that this project knows: an SQLite file or PostgreSQL. Nothing
here echoes a text that cannot be understood: there may be a password in it.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from referee.errors import UserError

SQLITE = "sqlite"
POSTGRES = "postgresql+psycopg"
_FORMS = f"{SQLITE}:///FILE or {POSTGRES}://USER@HOST/DATABASE"


def file_url(path: Path) -> URL:
    """The URL of an SQLite file, whatever characters its name has."""
    return URL.create(SQLITE, database=str(path))


def parse(text: str) -> URL:
    """The URL that a text is. Raises UserError where it is none, or of a database that is not known."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise UserError(f"the database is not given by a URL, as in {_FORMS}") from None
    if url.drivername not in {SQLITE, POSTGRES}:
        raise UserError(
            f"{shown(url)}: {url.drivername} is not supported; a league's database is {_FORMS}"
        )
    if url.drivername == SQLITE and (url.query or url.database in {None, "", ":memory:"}):
        raise UserError(f"{shown(url)}: it has to name a file and no more, {SQLITE}:///FILE")
    if url.drivername == POSTGRES and not url.database:
        raise UserError(f"{shown(url)}: it has to name a database, {POSTGRES}://USER@HOST/DATABASE")
    return url


def shown(url: URL) -> str:
    """The URL without its passwords, for messages and for commands to be typed again."""
    secrets = [key for key in url.query if "password" in key.lower()]
    return url.difference_update_query(secrets).render_as_string(hide_password=True)
