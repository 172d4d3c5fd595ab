"""Give people an id in a league, so that games in which they sat can be stored.

A seat of a stored game refers to a version of a bot. So a person has an entry among the bots: its version and its language are
`person`. The entry is retired from the start, so no tournament can choose it.
"""

from __future__ import annotations

import hashlib

from pydantic import TypeAdapter, ValidationError

from referee.errors import UserError
from referee.records import BotId
from referee.roster import PERSON, versions_of
from referee.store import StoredBot
from referee.store.league import League
from referee.toml_file import Name


def person_id(league: League, name: str) -> BotId:
    """Return the id of a person: `NAME@person`.

    Raises UserError if `name` is not a valid name, or if it is the name of a bot of the league.
    """
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError as error:
        raise UserError(f"your name: {error.errors()[0]['ctx']['error']}") from error
    if any(row.language != PERSON for row in versions_of(league, name)):
        raise UserError(f"your name: {name!r} is the name of a bot of this league")
    return BotId(name, PERSON)


def enter_person(league: League, person: BotId, *, now_us: int) -> None:
    """Add a person to the bots of a league, unless the league knows the person already.

    Args:
        league: the league, open for writing.
        person: the return value of `person_id`.
        now_us: the time in microseconds since 1970-01-01 UTC.

    Raises UserError if a bot of this name was submitted in the meantime.
    """
    person_id(league, person.name)
    if versions_of(league, person.name):
        return
    league.add_bot(
        StoredBot(
            name=person.name,
            version=person.version,
            author=person.name,
            language=PERSON,
            folder="",
            content_hash=hashlib.sha256(PERSON.encode()).hexdigest(),
            added_at_us=now_us,
            retired_at_us=now_us,
        )
    )
