"""`referee tournament plan`: what a tournament file comes to, before anything is made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from referee.cli.options import DEFAULT_LEAGUE, CsvOption, DbOption, JsonOption, LeagueOption
from referee.cli.output import check_format, console, show_rows
from referee.cli.pace import LeaguePace
from referee.ratings.until import Until
from referee.reports import PlanRow, card, plan_rows
from referee.reports.plan import ASSUMED_GAME_US
from referee.reports.show import duration
from referee.schedule import ALGORITHMS, default_lanes
from referee.tournament.conduct import core_sets
from referee.tournament.config import TournamentConfig
from referee.tournament.reading import load_tournament
from referee.tournament.settling import looks_of


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
    workers = len(core_sets(config))
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
        f" {len(looks_of(config))} times, after whole rounds."
    )


def _basis(everything: PlanRow, workers: int) -> str:
    """Where the playing time comes from."""
    assumed = f"{duration(ASSUMED_GAME_US)} a game"
    return f"Playing time: {workers} at a time, " + (
        f"from {everything.measured} games of the league, and {assumed} where it has none like it."
        if everything.measured
        else f"assumed that it is {assumed}: the league has none like these."
    )
