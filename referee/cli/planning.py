"""`referee tournament plan`: what a tournament file comes to, before anything is made of it.

`referee tournament export`: a tournament as one file, which anybody can check.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import typer

from referee.cli.lookup import LeaguePace, roster_of
from referee.cli.options import (
    DEFAULT_LEAGUE,
    CsvOption,
    DbOption,
    JsonOption,
    LeagueOption,
    TournamentArgument,
    check_format,
    console,
    show_rows,
)
from referee.errors import UserError
from referee.ratings.stopping import Until
from referee.reports.formats import duration
from referee.reports.terminal import card
from referee.reports.tournament_rows import ASSUMED_GAME_US, PlanRow, plan_rows
from referee.schedule import ALGORITHMS, default_lanes
from referee.store import League
from referee.tournament.archive_writer import export_archive as archive_of
from referee.tournament.config import TournamentConfig, assign_cores, list_looks, part_title
from referee.tournament.reading import load_tournament


def plan(
    file: Annotated[Path, typer.Argument(help="The tournament file (TOML).")],
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show what a tournament would come to: how many games, how even, and how long it may take.

    Nothing is played or written. Times are those of the league's games, where it has any.

    Example: referee tournament plan tournaments/demo.toml
    """
    check_format(as_json=as_json, as_csv=as_csv)
    pace = LeaguePace(league, db)
    config = load_tournament(file, pace)
    workers = len(assign_cores(config))
    rows = _rows(config, pace, workers)
    if as_json or as_csv:
        show_rows(PlanRow, rows, title=config.name, as_json=as_json, as_csv=as_csv)
        return
    *stages, everything = rows
    for row in stages if len(stages) > 1 else ():
        console.print(card(row), "")
    console.print(card(everything), "")
    console.print(_basis(everything, workers), soft_wrap=True)
    if config.until is not None:
        console.print(_stop(config, config.until), soft_wrap=True)


def _rows(config: TournamentConfig, pace: LeaguePace, workers: int) -> tuple[PlanRow, ...]:
    bots = [str(number) for number in range(len(config.bots))]
    lanes = config.lanes or default_lanes([stage.seats for stage in config.stages], workers)
    schedule = ALGORITHMS[config.schedule](config.name, bots, config.stages, lanes=lanes)
    return plan_rows(bots, schedule, pace.times, workers=workers, challengers=config.challengers)


def _stop(config: TournamentConfig, until: Until) -> str:
    """When it may be over before all that is played."""
    equal = f", or equal within {until.margin:.12g}" if until.margin else ""
    return (
        "This is the most. It stops before where every two neighbours in the table are told apart"
        f"{equal}, with a confidence of {until.confidence:.12g} in all; it is looked at"
        f" {len(list_looks(config))} times, after whole rounds."
    )


def _basis(everything: PlanRow, workers: int) -> str:
    """Where the playing time comes from."""
    assumed = f"{duration(ASSUMED_GAME_US)} a game"
    return f"Playing time: {workers} at a time, " + (
        f"from {everything.measured} games of the league, and {assumed} where it has none like it."
        if everything.measured
        else f"assumed that it is {assumed}: the league has none like these."
    )


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
        named = ", ".join(map(part_title, archive.secret))
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
