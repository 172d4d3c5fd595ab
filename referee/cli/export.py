"""`referee tournament export`: a tournament as one file, which anybody can check."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import typer

from referee.cli.options import DEFAULT_LEAGUE, DbOption, LeagueOption, TournamentArgument
from referee.cli.output import console
from referee.cli.roster import roster_of
from referee.errors import UserError
from referee.store import League
from referee.tournament.archive import export as archive_of
from referee.tournament.parts import title


def export(
    name: TournamentArgument,
    output: Annotated[
        Path | None, typer.Option("--output", help="The archive to write; by default, NAME.zip.")
    ] = None,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
) -> None:
    """Write a tournament into one archive: schedule, games, bots' hashes, ratings, and the seed.

    `referee verify ARCHIVE` checks it without the league. While games are missing it has no seed.

    Example: referee tournament export demo
    """
    path = output or Path(f"{name}.zip")
    with League.open(league, create=False, db=db) as store:
        archive = archive_of(store, roster_of(store), name)
    _write(path, archive.data)
    of_all = "" if archive.played == archive.games else f" of {archive.games}"
    seed = "with the seed" if archive.has_seed else "without the seed, which is still secret"
    if archive.has_seed and archive.secret:
        named = ", ".join(map(title, archive.secret))
        seed = f"with the seed, but without that of {named}, which is still secret"
    console.print(
        f"{path}: {archive.played}{of_all} games of {name}, {seed}; {len(archive.data)} bytes,"
        f" SHA-256 {hashlib.sha256(archive.data).hexdigest()}",
        soft_wrap=True,
        markup=False,
    )


def _write(path: Path, data: bytes) -> None:
    """Write a file as a whole or not at all. Raises UserError where that cannot be done."""
    unfinished = Path(f"{path}.part")
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"{path}: it is there already, and is no file")
        unfinished.write_bytes(data)
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise UserError(f"{path}: {error.strerror}") from error
