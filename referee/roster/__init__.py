"""Keep the bots of a league: the versions of each bot in the database, and the copies of the bots' files.

This file only finds versions in the database. It does not import the code that copies and builds bots, so commands
that only list bots start faster. `workshop` makes the copies. `roster` combines the versions and the copies.
"""

from __future__ import annotations

from referee.errors import NotFoundError, did_you_mean
from referee.store import StoredBot
from referee.store.league import League

PERSON = "person"
"""The version and the language of a person's entry among the bots of a league; see `person_id`."""
RETIRED_ADVICE = "submit it again to let it play, or give it another name if it is a variant"
"""What to do about a retired version. A variant cannot be submitted again, but the league does not store which versions are variants."""


def find_bot(league: League, text: str) -> StoredBot:
    """Return the version that `text` names.

    Args:
        league: the league to search.
        text: `name@version`, or only `name` for the newest version that is not retired.

    Raises `NotFoundError` if there is no such bot or version, or if `text` is only a name and all its versions are
    retired. If the name is that of a bot in the league, the message lists the bot's versions.
    """
    name, at, version = text.partition("@")
    versions = league.bots(name)
    if not versions:
        names = {row.name for row in league.bots()}
        raise NotFoundError(
            f"{league.where}: the league has no bot {name!r}{did_you_mean(name, names)}"
        )
    if at:
        matching = [row for row in versions if row.version == version]
    else:
        matching = [row for row in versions if row.retired_at_us is None]
    if matching:
        return matching[-1]
    if all(row.version == PERSON for row in versions):
        raise NotFoundError(f"{league.where}: {name!r} is a person, not a bot")
    if at:
        there = ", ".join(
            f"{row.version}{' (retired)' if row.retired_at_us else ''}" for row in versions
        )
        raise NotFoundError(
            f"{league.where}: there is no version {version!r} of {name!r}; there are: {there}"
        )
    retired = ", ".join(row.version for row in versions)
    raise NotFoundError(
        f"{league.where}: all versions of {name!r} are retired ({retired}); {RETIRED_ADVICE}"
    )


def look_up_bot(league: League, text: str) -> StoredBot:
    """Return the version that `text` names, as `find_bot` does, but accept also a name with only retired versions.

    If all versions of a name are retired, return the newest one. The only version of a person is retired.
    """
    versions = league.bots(text)
    if versions and all(row.retired_at_us is not None for row in versions):
        return versions[-1]
    return find_bot(league, text)


def predecessors(league: League) -> dict[str, str]:
    """Map each version to the previous version of the bot, both as `name@version`. First versions have no entry."""
    newest: dict[str, str] = {}
    before: dict[str, str] = {}
    for row in league.bots():
        if row.name in newest:
            before[str(row.bot)] = newest[row.name]
        newest[row.name] = str(row.bot)
    return before
