"""`referee tournament plan`, `status` and `standings`: look at a tournament before, during and after its games."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer
from rich.text import Text

from referee.cli.options import (
    DEFAULT_LEAGUE,
    UNSOUND,
    ColumnsOption,
    CsvOption,
    DbOption,
    JsonOption,
    LeagueOption,
    Output,
    RowsPrinter,
    TournamentArgument,
    WideOption,
    console,
    notes,
    parse_path,
    show_table,
    write,
)
from referee.errors import UserError, count_text
from referee.ratings.stopping import StopCondition
from referee.records import BotId
from referee.reports.bot_rows import FaultRow, fault_rows
from referee.reports.formats import duration, json_text, visible
from referee.reports.rating_rows import RatingRow
from referee.reports.selection import GameFilter, current_ratings
from referee.reports.statistics import PointsRow, name_winners, points_rows
from referee.reports.terminal import card
from referee.reports.tournament_rows import (
    ASSUMED_GAME_US,
    GameKind,
    HostStatusRow,
    MachineStatusRow,
    PlanRow,
    StatusRow,
    TournamentRow,
    game_times,
    host_status_rows,
    machine_status_rows,
    plan_rows,
    status_rows,
    tournament_rows,
)
from referee.reports.verdicts import judge_newest_look, name_deviations
from referee.roster import PERSON
from referee.schedule import default_lanes
from referee.schedule.extension import ALGORITHMS
from referee.store.league import League
from referee.toml_file import json_schema
from referee.tournament.config import (
    Part,
    TournamentConfig,
    assign_cores,
    count_rounds,
    list_look_rounds,
    part_title,
)
from referee.tournament.config_file import TournamentFile
from referee.tournament.config_reader import load_tournament
from referee.tournament.create import TournamentState, check_bots, find_state

app = typer.Typer()

_ORDERS = ("rating", "points")
"""The values of `--by`."""
BOTS_TO_COMPARE = 2
"""The number of bots in `tournament compare`."""


class LeaguePace:
    """The `Pace` (`schedule/budget.py`) of a league: the mean durations of its games.

    The games of `play --keep` count too, but not the games with people, who think longer. If no league exists, there are
    no durations.
    """

    def __init__(self, league: Path, db: str | None) -> None:
        self.cores = len(os.sched_getaffinity(0))
        self._league = league
        self._db = db

    def game_us(self, ruleset: str, seats: int) -> float | None:
        """Return the mean duration of the games of a kind, in microseconds; None if the league has no game of the kind."""
        times = self.times.get(GameKind(ruleset, seats))
        return fmean(times) if times else None

    @cached_property
    def times(self) -> dict[GameKind, tuple[int, ...]]:
        """Durations of the games that count, by kind, in microseconds. The first access reads them from the league."""
        if not League.exists_at(self._league, self._db):
            return {}
        with League.open(self._league, create=False, db=self._db) as store:
            with store.one_moment():  # a driver may store games meanwhile
                games, results = store.games(), store.results(free=True)
            kinds = {
                row.game_id: GameKind(row.ruleset, len(row.bots))
                for row in results
                if not any(BotId.parse(bot).version == PERSON for bot in row.bots)
            }
            return game_times(
                (kinds[row.game_id], row.duration_us) for row in games if row.game_id in kinds
            )


@app.command()
def plan(
    file: Annotated[Path, typer.Argument(parser=parse_path, help="The tournament file (TOML).")],
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show the size of a tournament before it is played: games, meetings of bots, and expected time.

    Nothing is played or stored. The command checks the file and its bots as `referee tournament run` does, but builds no
    bot. The expected time is computed from similar games of the league, if there are any.

    Example: referee tournament plan tournaments/demo.toml
    """
    printer = RowsPrinter(PlanRow, as_json=as_json, as_csv=as_csv)
    pace = LeaguePace(league, db)
    config = load_tournament(file, pace)
    check_entries(config, league, db)
    workers = len(assign_cores(config))
    rows = _rows(config, pace, workers)
    if as_json or as_csv:
        printer.show(rows, config.name)
        return
    *stages, everything = rows
    for row in stages if len(stages) > 1 else ():
        console.print(card(row), "")
    console.print(card(everything), "")
    if few_cores := describe_few_cores(config):
        console.print(few_cores, soft_wrap=True)
    console.print(_basis(everything, workers), soft_wrap=True)
    if config.until is not None:
        console.print(_stop(config, config.until), soft_wrap=True)


def check_entries(config: TournamentConfig, league: Path, db: str | None) -> None:
    """Check the bots of a tournament before anything is built or stored; see `check_bots`. The league need not exist."""
    from referee.cli.isolation import roster_of  # noqa: PLC0415 - loads the sandbox, which `status` does not need

    if not League.exists_at(league, db):
        check_bots(config, None)
        return
    with League.open(league, create=False, db=db) as store:
        check_bots(config, roster_of(store))


def describe_few_cores(config: TournamentConfig) -> str:
    """Return a sentence if workers of this machine have fewer cores than `cores_per_game` says; else ""."""
    cores = len(assign_cores(config)[0])
    if cores == config.cores_per_game:
        return ""
    return (
        f"cores_per_game is {config.cores_per_game}, but each worker has {count_text(cores, 'core')},"
        " because this machine has no more."
    )


def _rows(config: TournamentConfig, pace: LeaguePace, workers: int) -> tuple[PlanRow, ...]:
    bots = [str(number) for number in range(len(config.bots))]
    lanes = config.lanes or default_lanes([stage.seats for stage in config.stages], workers)
    schedule = ALGORITHMS[config.schedule](config.name, bots, config.stages, lanes=lanes)
    return plan_rows(
        bots,
        schedule,
        pace.times,
        rulesets=[stage.ruleset.name for stage in config.stages],
        workers=workers,
        challengers=config.challengers,
    )


def _stop(config: TournamentConfig, until: StopCondition) -> str:
    """Return the sentences that say when the tournament may stop before all its games are played."""
    looks = len(list_look_rounds(config))
    if looks == 1:
        return "This tournament cannot stop earlier: its standings are tested only once, after its last round."
    equal = f" or equal within {until.margin:.12g}" if until.margin else ""
    return (
        "The number of games above is the maximum. The tournament stops earlier if every bot is surely ahead of the next one"
        f"{equal}. The confidence is {until.confidence:.12g} for all verdicts together; the standings are tested"
        f" {looks} times, after whole rounds."
    )


def _basis(everything: PlanRow, workers: int) -> str:
    """Return a sentence that says how the playing time was estimated."""
    assumed = f"{duration(ASSUMED_GAME_US)} a game"
    at_once = count_text(min(workers, everything.games), "game")
    return f"Playing time: estimated for {at_once} at a time, " + (
        f"from {count_text(everything.measured, 'game')} of the league; assuming {assumed} where the league has no similar game."
        if everything.measured
        else f"assuming {assumed}, because the league has no similar games."
    )


@app.command()
def status(
    name: Annotated[
        str | None,
        typer.Argument(help="The name of the tournament. By default all tournaments are listed."),
    ] = None,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    wide: WideOption = False,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show the progress and the faults of a tournament, or list all tournaments.

    If some tournaments cannot be read, the list leaves them out, standard error names them, and the exit code is 1.

    Example: referee tournament status demo
    """
    row_type = TournamentRow if name is None else StatusRow
    printer = RowsPrinter(row_type, as_json=as_json, as_csv=as_csv, wide=wide, columns=columns)
    if name is not None and as_json and columns is not None:
        raise UserError(
            "--columns: not allowed with NAME and --json together, because they print several tables"
        )
    with League.open(league, create=False, db=db) as store:
        if name is None:
            rows, errors = tournament_rows(store.tournaments())
            printer.show(rows, "tournaments")
            for error in errors:
                notes.print(Text(visible(f"referee: {error}")), soft_wrap=True)
            if errors:
                raise typer.Exit(UNSOUND)
            return
        with store.one_moment():  # a driver may store games meanwhile
            tournament = find_state(store, name)
            rounds = status_rows(store.progress(name))
            faults = fault_rows(store.fault_counts(tournament=name))
            machines = machine_status_rows(store.machines(tournament=name))
            hosts = host_status_rows(store.hosts(name))
    if as_json:
        finished = rounds[-1].done == rounds[-1].games
        write(
            json_text(
                _status_object(tournament, rounds, machines, hosts, faults, finished=finished)
            )
        )
        return
    printer.show(rounds, name)
    if not as_csv:
        if tournament.stopped_after is not None:
            console.print(describe_stop(tournament), soft_wrap=True)
        show_table(MachineStatusRow, machines, "machines", wide=wide)
        if hosts:
            show_table(HostStatusRow, hosts, "last run on a cluster: workers", wide=wide)
        show_table(FaultRow, faults, "faults", wide=wide)
        for number, part in enumerate(tournament.parts):
            _print_commitment(number, part)


def _status_object(
    tournament: TournamentState,
    rounds: Sequence[StatusRow],
    machines: Sequence[MachineStatusRow],
    hosts: Sequence[HostStatusRow],
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
        "terms": first.terms.text,
        "seed": _seed_text(first),
        "extensions": [
            {
                "matches": part.matches,
                "games": part.games,
                "commitment": part.commitment,
                "terms": part.terms.text,
                "seed": _seed_text(part),
            }
            for part in added
        ],
        "rounds": rounds,
        "machines": machines,
        "hosts": hosts,
        "faults": faults,
    }


@app.command()
def standings(
    name: TournamentArgument,
    by: Annotated[
        str,
        typer.Option(
            "--by", metavar="ORDER", help="What to show and to sort by: rating, or points."
        ),
    ] = "rating",
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    wide: WideOption = False,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show the standings of a tournament: the ratings from its own games, or a table of total points.

    The columns of the ratings are those of `referee ratings`. With `--by points`, the table has the sums of the points, as the
    rulebooks count them. A line below this table names the winner of each ruleset, if all games are played, and if all
    bots have played and started equally often.

    Example: referee tournament standings demo --by points
    """
    if by not in _ORDERS:
        raise UserError(f"--by: unknown order {by!r}; choose one of {', '.join(_ORDERS)}")
    row_type = RatingRow if by == "rating" else PointsRow
    printer = RowsPrinter(row_type, as_json=as_json, as_csv=as_csv, wide=wide, columns=columns)
    choice = GameFilter(tournament=name)
    with League.open(league, create=False, db=db) as store:
        if by == "rating":
            rows, analysed = current_ratings(store, choice)
            printer.show(rows, name, notes=name_deviations(analysed))
            return
        with store.one_moment():  # a driver may store games meanwhile
            totals = points_rows(choice.columns(store).by_ruleset())
            row = store.tournament(name)
    printer.show(totals, name)
    if not (as_json or as_csv):
        for sentence in name_winners(totals, row.games - row.stored):
            console.print(sentence, soft_wrap=True)


@app.command()
def schema() -> None:
    """Print the JSON Schema of tournament files, with which an editor completes and checks them.

    Example: referee tournament schema > tournament.schema.json
    """
    write(json_text(json_schema(TournamentFile)))


def _seed_text(part: Part) -> str | None:
    return None if part.published_seed is None else part.published_seed.hex()


def _print_commitment(number: int, part: Part) -> None:
    where = f" of {part_title(number)}" if number else ""
    seed = _seed_text(part)
    console.print(f"commitment{where} {part.commitment}", soft_wrap=True)
    console.print(
        f"The terms of this commitment, each with its SHA-256:\n{part.terms.text}",
        soft_wrap=True,
        end="",
    )
    console.print(
        f"seed{where} {seed}"
        if seed
        else f"The seed{where} is published when all{' its' if number else ''} games are played.",
        soft_wrap=True,
    )


def describe_stop(tournament: TournamentState) -> str:
    """Return a sentence that says when and why a tournament with looks ended."""
    rounds, after = count_rounds(tournament.config), tournament.stopped_after
    if tournament.config.ladder is not None:
        return (
            "The last planned game is played."
            if after is None
            else f"The time is over after {tournament.games} games."
        )
    if after is None:
        return f"The last of {count_text(rounds, 'round')} is played: not all standings were settled earlier."
    if after < min(stage.matches for stage in tournament.config.stages):
        return f"Settled after {after} of {rounds} rounds."
    return (
        f"Ended after {after} of {rounds} rounds: each ruleset is settled or has no further round."
    )


def announce_verdict(store: League, name: str, out: Output) -> bool:
    """Print to `out` the verdict about the two bots of a finished tournament, one line for each ruleset.

    Return False if a verdict is open. If the tournament has more than two bots or no `until`, print nothing and return True.
    """
    state = find_state(store, name)
    if state.config.until is None or len(state.config.bots) != BOTS_TO_COMPARE:
        return True
    judgement = judge_newest_look(state, GameFilter(tournament=name).columns(store))
    for sentence in judgement.conclusions():
        out.print(sentence, soft_wrap=True)
    return judgement.verdicts.are_settled
