"""Manage the bots of a league: the versions of each bot in the database, and the copies of the bots' files.

This module finds a version by name in the database. It does not import the code that copies and builds bots, so
commands that only list bots start faster. `workshop` keeps the copies, and `Roster` combines both.
"""

from __future__ import annotations

from collections.abc import Sequence

from referee.errors import NotFoundError
from referee.store import StoredBot
from referee.store.league import League


def versions_of(league: League, name: str) -> Sequence[StoredBot]:
    """Return all versions of the bot `name`, oldest first."""
    return [row for row in league.bots() if row.name == name]


def find_bot(league: League, text: str) -> StoredBot:
    """Return the version that `text` names.

    Args:
        league: the league to search.
        text: `name@version`, or only `name` for the newest version that is not retired.

    Raises `NotFoundError` if the league has no such bot or version. The message lists the existing versions.
    """
    name, at, version = text.partition("@")
    versions = versions_of(league, name)
    if not versions:
        raise NotFoundError(f"{league.where}: the league has no bot {name!r}")
    if at:
        matching = [row for row in versions if row.version == version]
    else:
        matching = [row for row in versions if row.retired_at_us is None]
    if not matching:
        there = ", ".join(
            f"{row.version}{' (retired)' if row.retired_at_us else ''}" for row in versions
        )
        what = f"version {version!r}" if at else "active version"
        raise NotFoundError(f"{league.where}: there is no {what} of {name!r}; there are: {there}")
    return matching[-1]


def look_up_bot(league: League, text: str) -> StoredBot:
    """Return the version that `text` names, as `find_bot` does.

    If `text` is a name without a version and all versions are retired, return the newest version.
    """
    versions = versions_of(league, text)
    if versions and all(row.retired_at_us is not None for row in versions):
        return versions[-1]
    return find_bot(league, text)


def predecessors(league: League) -> dict[str, str]:
    """Map each version of a bot to the version before it, both as `name@version`; first versions are left out."""
    newest: dict[str, str] = {}
    before: dict[str, str] = {}
    for row in league.bots():
        if row.name in newest:
            before[str(row.bot)] = newest[row.name]
        newest[row.name] = str(row.bot)
    return before
