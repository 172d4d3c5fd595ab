"""`referee verify`: everything checked again, by the seed and by the rules.

`referee doctor`: what this machine protects bots from, and everybody else from bots.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import uvloop

from referee.cli.options import DEFAULT_LEAGUE, DbOption, JsonOption, LeagueOption, console, write
from referee.errors import RefereeError
from referee.match import Difference
from referee.reports.checks import ProtectionRow, RefusalRow, protection_rows, refusal_rows
from referee.reports.formats import json_text
from referee.reports.terminal import RowsTable
from referee.sandbox.ladder import select_isolation
from referee.store import League
from referee.tournament.archive_reader import ArchivedTournament
from referee.tournament.config import part_title
from referee.tournament.verify import StoredTournament, audit, audit_free_games


def verify(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|ARCHIVE]",
            help="A tournament's name, or the file of `tournament export`, with a dot or a slash in"
            " it; by default, all tournaments of the league are checked.",
        ),
    ] = None,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
) -> None:
    """Check stored games: decks against the seed, moves against the rules, results against both.

    Games of `play --keep` are checked too, where no tournament is named, but for their decks. An
    archive is checked without a league. Names the first difference and exits with 1 when there is one.

    Example: referee verify demo
    """
    if what is not None and ("." in what or "/" in what):
        _verify_archive(Path(what))
        return
    with League.open(league, create=False, db=db) as store:
        names = [what] if what else [row.name for row in store.tournaments()]
        for name in names:
            try:
                checked = audit(StoredTournament(store, name))
            except Difference as difference:
                raise RefereeError(f"{name}: {difference}") from difference
            games = store.tournament(name).games
            console.print(f"{name}: {_count(checked, games)} games check.")
        if what is None:
            try:
                free = audit_free_games(store)
            except Difference as difference:
                raise RefereeError(str(difference)) from difference
            if free:
                console.print(f"games of play --keep: {free} check, but for their decks.")


def _verify_archive(path: Path) -> None:
    try:
        archived = ArchivedTournament.open(path)
        checked = archived.audit()
    except Difference as difference:
        raise RefereeError(f"{path}: {difference}") from difference
    games = _count(checked, len(archived.schedule))
    name = archived.config.name
    secret = [number for number, part in enumerate(archived.parts) if part.seed is None]
    if 0 in secret:
        console.print(
            f"{name}: {games} games check, but for their decks: the seed is still secret."
        )
    elif secret:
        console.print(
            f"{name}: {games} games check, but for the decks of {', '.join(map(part_title, secret))}:"
            " the seed is still secret.",
            soft_wrap=True,
        )
    else:
        console.print(f"{name}: {games} games check, and so do the ratings.")
    for number, part in enumerate(archived.parts):
        where = f" of {part_title(number)}" if number else ""
        console.print(
            f"Is this the commitment that was shown before the first game{where}? {part.commitment}",
            soft_wrap=True,
        )


def _count(checked: int, games: int) -> str:
    return f"{checked}" if checked == games else f"{checked} of {games}"


def doctor(as_json: JsonOption = False) -> None:
    """Try what bots are kept from on this machine, and say what to install for more.

    Example: referee doctor --json
    """
    isolation = uvloop.run(select_isolation())
    rows, refusals = protection_rows(isolation), refusal_rows(isolation)
    if as_json:
        write(json_text({"rung": isolation.rung, "protections": rows, "higher_rungs": refusals}))
        return
    console.print(RowsTable(ProtectionRow, rows, f"isolation: {isolation.rung.value}"))
    if refusals:
        console.print(RowsTable(RefusalRow, refusals, "what keeps it from more"))
