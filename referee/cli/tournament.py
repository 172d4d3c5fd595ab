"""`referee tournament`: plan one, run it, resume it, extend it, see how it stands."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from referee import deals
from referee.cli.lookup import Choice, LeaguePace, current_ratings, now_us, roster_of
from referee.cli.options import (
    DEFAULT_LEAGUE,
    CsvOption,
    DbOption,
    JsonOption,
    LeagueOption,
    NetworkOption,
    RequireOption,
    TournamentArgument,
    check_format,
    console,
    settled,
    show_rows,
    write,
)
from referee.cli.planning import export, plan
from referee.cli.progress import Interrupts
from referee.cli.running import play_to_end, resume_command, told_stop
from referee.errors import UserError
from referee.reports.bot_rows import FaultRow, fault_rows
from referee.reports.formats import json_text
from referee.reports.rating_rows import RatingRow
from referee.reports.terminal import RowsTable
from referee.reports.tournament_rows import StatusRow, TournamentRow, status_rows, tournament_row
from referee.sandbox.ladder import make_launcher
from referee.store import League
from referee.tournament.config import Part, TournamentConfig, part_title
from referee.tournament.create import (
    Tournament,
    check_bots,
    create_tournament,
    enter_bots,
    find_tournament,
)
from referee.tournament.create import extend_tournament as add_matches
from referee.tournament.reading import load_tournament

app = typer.Typer(help="Run tournaments and see how they stand.", no_args_is_help=True)
app.command()(plan)
app.command()(export)


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="The tournament file (TOML).")],
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    require: RequireOption = None,
    network: NetworkOption = False,
) -> None:
    """Create a tournament from a file and play it.

    Ctrl-C lets the games in play finish and says how to resume; a second Ctrl-C stops at once.

    Example: referee tournament run tournaments/demo.toml
    """
    config = load_tournament(file, LeaguePace(league, db))
    _check_bots(config, league, db)
    isolation = settled(config.isolation, require)
    with League.open(league, create=True, db=db) as store, store.lock():
        roster = roster_of(store, make_launcher(isolation), network=network)
        bots = uvloop.run(enter_bots(config, roster, now_us=now_us()))
        with Interrupts() as interrupts:
            tournament = create_tournament(
                store,
                config,
                bots,
                seed=config.seed or secrets.token_bytes(deals.SEED_SIZE),
                now_us=now_us(),
            )
            if tournament.name != config.name:
                _tell_of_other(store, config.name, tournament.name)
            if config.budget is not None:
                console.print(f"The budget of {config.budget} buys {config.games} games.")
            play_to_end(store, tournament, isolation, interrupts)


@app.command()
def resume(
    name: Annotated[
        str | None,
        typer.Argument(help="The tournament's name; by default the newest that is unfinished."),
    ] = None,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    require: RequireOption = None,
) -> None:
    """Play the games of a tournament that are still missing.

    Example: referee tournament resume demo
    """
    with Interrupts() as interrupts, League.open(league, create=False, db=db) as store:
        tournament = find_tournament(store, name or _newest_unfinished(store))
        isolation = settled(tournament.config.isolation, require)
        with store.lock():
            play_to_end(store, tournament, isolation, interrupts)


@app.command()
def extend(
    name: TournamentArgument,
    matches: Annotated[
        int,
        typer.Option(
            help="Matches to be added: at each table, or to each balanced choice of tables.", min=1
        ),
    ],
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    require: RequireOption = None,
) -> None:
    """Add matches to a tournament, finished or not, and play them.

    Its games stay as they are. The deals of the new ones come from a new seed, since that of a
    finished tournament is known.

    Example: referee tournament extend demo --matches 2
    """
    with (
        Interrupts() as interrupts,
        League.open(league, create=False, db=db) as store,
        store.lock(),
    ):
        tournament = find_tournament(store, name)
        for bot in tournament.seats.values():
            roster_of(store).spec(bot)  # before anything is changed
        isolation = settled(tournament.config.isolation, require)
        seed = secrets.token_bytes(deals.SEED_SIZE)
        longer = add_matches(store, tournament, matches, seed=seed, now_us=now_us())
        play_to_end(store, longer, isolation, interrupts)


@app.command()
def status(
    name: Annotated[
        str | None, typer.Argument(help="The tournament's name; by default, all are listed.")
    ] = None,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show how far a tournament is and what faults there were, or list all tournaments.

    Example: referee tournament status demo
    """
    check_format(as_json=as_json, as_csv=as_csv)
    with League.open(league, create=False, db=db) as store:
        if name is None:
            _list(store, as_json=as_json, as_csv=as_csv)
            return
        tournament = find_tournament(store, name)
        durations = {game.game_id: game.duration_us for game in store.games(tournament=name)}
        rounds = status_rows(tournament.schedule, durations)
        faults = fault_rows(store.faults(tournament=name))
    if as_json:
        finished = len(durations) == len(tournament.schedule)
        write(json_text(_status_object(tournament, rounds, faults, finished=finished)))
        return
    show_rows(StatusRow, rounds, title=name, as_json=False, as_csv=as_csv)
    if not as_csv:
        if tournament.stopped_after is not None:
            console.print(told_stop(tournament), soft_wrap=True)
        console.print(RowsTable(FaultRow, faults, "faults"))
        for number, part in enumerate(tournament.parts):
            _tell_seed(number, part)


def _status_object(
    tournament: Tournament,
    rounds: Sequence[StatusRow],
    faults: Sequence[FaultRow],
    *,
    finished: bool,
) -> dict[str, object]:
    first, *added = tournament.parts
    return {
        "tournament": tournament.name,
        "finished": finished,
        "stopped_after": tournament.stopped_after,
        "commitment": first.commitment,
        "seed": _seed_text(first),
        "extensions": [
            {
                "matches": part.matches,
                "games": part.games,
                "commitment": part.commitment,
                "seed": _seed_text(part),
            }
            for part in added
        ],
        "rounds": rounds,
        "faults": faults,
    }


@app.command()
def standings(
    name: TournamentArgument,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show the ratings of a tournament's bots, from its own games alone.

    The columns are those of `referee ratings`.

    Example: referee tournament standings demo --csv
    """
    with League.open(league, create=False, db=db) as store:
        rows = current_ratings(store, Choice(tournament=name))
    show_rows(RatingRow, rows, title=name, as_json=as_json, as_csv=as_csv)


def _seed_text(part: Part) -> str | None:
    return None if part.published_seed is None else part.published_seed.hex()


def _tell_seed(number: int, part: Part) -> None:
    where = f" of {part_title(number)}" if number else ""
    seed = _seed_text(part)
    console.print(f"commitment{where} {part.commitment}", soft_wrap=True)
    console.print(
        f"seed{where} {seed}"
        if seed
        else f"The seed{where} is published when all{' its' if number else ''} games are played.",
        soft_wrap=True,
    )


def _tell_of_other(store: League, wanted: str, name: str) -> None:
    console.print(
        f"The league has a tournament {wanted} already; this one is {name}.", soft_wrap=True
    )
    other = store.tournament(wanted)
    if other.stored < other.games:
        console.print(
            f"What is missing of the other: {resume_command(store, wanted)}", soft_wrap=True
        )


def _check_bots(config: TournamentConfig, league: Path, db: str | None) -> None:
    if League.is_at(league, db):
        with League.open(league, create=False, db=db) as store:
            check_bots(config, roster_of(store))
    else:
        check_bots(config, None)


def _newest_unfinished(store: League) -> str:
    unfinished = [row.name for row in store.tournaments() if row.stored < row.games]
    if not unfinished:
        raise UserError(f"{store.where}: every tournament is finished; there is none to resume")
    return unfinished[-1]


def _list(store: League, *, as_json: bool, as_csv: bool) -> None:
    rows = []
    for row in store.tournaments():
        config = find_tournament(store, row.name).config
        rows.append(
            tournament_row(
                row.name,
                [stage.ruleset.name for stage in config.stages],
                bots=len(config.bots),
                done=row.stored,
                games=row.games,
                stopped_after=row.stopped_after,
                created_at_us=row.created_at_us,
            )
        )
    show_rows(TournamentRow, rows, title="tournaments", as_json=as_json, as_csv=as_csv)
