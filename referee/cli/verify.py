"""`referee verify` and `referee tournament export`: check stored games and archives, and write archives."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from referee.cli.isolation import roster_of
from referee.cli.options import (
    DEFAULT_LEAGUE,
    DbOption,
    LeagueOption,
    TournamentArgument,
    console,
    parse_path,
)
from referee.errors import RefereeError, UserError, write_error
from referee.match.replay import Difference
from referee.store.league import League
from referee.tournament.archive_format import is_archive
from referee.tournament.archive_reader import ArchivedTournament
from referee.tournament.archive_writer import export_archive as archive_of
from referee.tournament.config import part_title
from referee.tournament.verify import verify_tournament
from referee.tournament.verify_league import LeagueTournament, verify_free_games

app = typer.Typer()

_UNFINISHED = (
    "Configuration, bots and planned schedule are those of the commitment. For games whose seed is still secret, two things"
    " are not proved: that the cards follow from the seed, and that the archive has every game that was played."
)
"""What the check of an archive proves, and what it does not, while a seed is still secret."""


@app.command()
def verify(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|ARCHIVE",
            help="The name of a tournament, or the path of an archive (a path contains a dot or a slash)."
            " By default all tournaments of the league are checked.",
        ),
    ] = None,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
) -> None:
    """Check stored games: decks against the seed, moves and results against the rules, times against the clocks.

    Seed, configuration, bots and schedule of a tournament are checked against its commitment. Without NAME or ARCHIVE,
    the games outside tournaments are checked too, except for their decks. An archive is checked without a league.
    The command stops at the first difference, prints it, and ends with exit code 1.

    Example: referee verify demo
    """
    if what is not None and ("." in what or "/" in what):
        _verify_archive(Path(what))
        return
    with League.open(league, create=False, db=db) as store:
        names = [row.name for row in store.tournaments()] if what is None else [what]
        for name in names:
            try:
                checked = verify_tournament(LeagueTournament(store, name))
            except Difference as difference:
                raise RefereeError(f"{name}: {difference}") from difference
            games = store.tournament(name).games
            console.print(f"{name}: {_count(checked, games)} games verified.")
        if what is None:
            try:
                free = verify_free_games(store)
            except Difference as difference:
                raise RefereeError(str(difference)) from difference
            if free:
                console.print(
                    f"games outside tournaments: {free} verified, except for their decks."
                )
            elif not names:
                console.print("games: none")


def _verify_archive(path: Path) -> None:
    try:
        archived = ArchivedTournament.open(path)
        checked = archived.verify()
    except Difference as difference:
        raise RefereeError(f"{path}: {difference}") from difference
    games = _count(checked, len(archived.schedule))
    name = archived.config.name
    secret = [number for number, part in enumerate(archived.parts) if part.seed is None]
    if not secret:
        console.print(f"{name}: {games} games and the ratings verified.")
    else:
        are_all = len(secret) == len(archived.parts)
        decks = "for their decks" if are_all else f"the decks of {_list_parts(secret)}"
        seeds = "the seed is" if len(secret) == 1 else "the seeds are"
        console.print(
            f"{name}: {games} games verified, except {decks}: {seeds} still secret.\n{_UNFINISHED}",
            soft_wrap=True,
        )
    for number, part in enumerate(archived.parts):
        where = f" of {part_title(number)}" if number else ""
        console.print(
            f"Compare this commitment with the one shown before the first game{where}: {part.commitment}",
            soft_wrap=True,
        )


def _list_parts(numbers: Sequence[int]) -> str:
    return ", ".join(part_title(number) or "the planned schedule" for number in numbers)


def _count(checked: int, games: int) -> str:
    """Return the number of checked games, and the number of all games if it is larger."""
    return f"{checked}" if checked == games else f"{checked} of {games}"


@app.command()
def export(
    name: TournamentArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            parser=parse_path,
            help="The file of the archive. By default NAME.zip. An existing file is replaced only if it is an archive.",
        ),
    ] = None,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
) -> None:
    """Write a tournament into one archive: schedule, games, hashes of the bots, ratings, and the seed.

    `referee verify ARCHIVE` checks the archive without the league. Each extension has a seed of its own. The archive has
    a seed only if all games with this seed are played.

    Example: referee tournament export demo
    """
    path = output or Path(f"{name}.zip")
    _check_output(path)
    with League.open(league, create=False, db=db) as store:
        archive = archive_of(store, roster_of(store), name)
    _write(path, archive.data)
    of_all = "" if archive.played == archive.games else f" of {archive.games}"
    is_one = len(archive.secret) == 1
    which = f"which {'is' if is_one else 'are'} still secret"
    seed = "with the seed" if archive.has_seed else f"without the seed{'s' * (not is_one)}, {which}"
    if archive.has_seed and archive.secret:
        those = "that" if is_one else "those"
        seed = f"with the seed, but without {those} of {_list_parts(archive.secret)}, {which}"
    console.print(
        f"{path}: {archive.played}{of_all} games of {name}, {seed}; {len(archive.data)} bytes,"
        f" SHA-256 {hashlib.sha256(archive.data).hexdigest()}",
        soft_wrap=True,
    )


def _check_output(path: Path) -> None:
    """Raise UserError if `path` exists and is not an archive, or if it cannot be checked."""
    try:
        is_taken = path.exists() and not (path.is_file() and is_archive(path))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    if is_taken:
        raise UserError(
            f"{path}: this exists already and is not an archive; choose another --output"
        )


def _write(path: Path, data: bytes) -> None:
    """Write a file completely or not at all. Raises the error of `write_error` if the file cannot be written."""
    unfinished = Path(f"{path}.{secrets.token_hex(4)}.part")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    except OSError as error:
        raise write_error(str(path), error) from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)  # still exists after an error or Ctrl-C
