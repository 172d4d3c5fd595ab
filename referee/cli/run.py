"""`referee tournament run`, `resume` and `extend`: play a tournament and show it in the terminal."""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from referee import deals
from referee.bots.logs import LogSettings
from referee.cli.cluster import (
    AuthorityOption,
    CertificateOption,
    ClusterChoice,
    ClusterOption,
    KeyOption,
    check_cores,
    choose_cluster,
    choose_tournament_logs,
    choose_workers,
)
from referee.cli.isolation import (
    NewTournamentIsolationOption,
    OldTournamentIsolationOption,
    RequireOption,
    RungChoice,
    announce_isolation,
    choose_rung,
    find_bots,
    now_us,
    roster_of,
    select_isolation_for,
)
from referee.cli.options import (
    DB_VARIABLE,
    DEFAULT_LEAGUE,
    INTERRUPTED,
    DbOption,
    LeagueOption,
    LogsOption,
    MessagesOption,
    TournamentArgument,
    console,
    print_notes,
)
from referee.cli.progress import Interrupts, conduct
from referee.cli.tournament import LeaguePace, announce_verdict, check_entries, describe_stop
from referee.cli.without_file import (
    BudgetKeyOption,
    MatchesKeyOption,
    NameKeyOption,
    RulesetKeyOption,
    SaveOption,
    SeatsKeyOption,
    SetOption,
    check_new,
    read_words,
    save_file,
)
from referee.errors import RefereeError, UserError
from referee.reports.bot_rows import FaultRow, fault_rows
from referee.reports.rating_rows import RatingRow
from referee.reports.selection import GameFilter, current_ratings
from referee.reports.terminal import RowsTable
from referee.reports.verdicts import name_deviations
from referee.sandbox import Isolation
from referee.sandbox.ladder import make_launcher
from referee.store.league import League, url_without_password
from referee.tournament.config import TournamentConfig, part_title
from referee.tournament.create import (
    Tournament,
    create_tournament,
    enter_bots,
    find_tournament,
)
from referee.tournament.create import extend_tournament as add_matches

app = typer.Typer()


@app.command()
def run(
    ctx: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|BOT",
            help="The tournament file (TOML). Or the bots, written as in a file: the path of a folder, with a slash"
            " (./my_bot), or a bot of the league: NAME (its newest version) or NAME@VERSION.",
        ),
    ],
    ruleset: RulesetKeyOption = None,
    seats: SeatsKeyOption = None,
    matches: MatchesKeyOption = None,
    budget: BudgetKeyOption = None,
    name: NameKeyOption = None,
    settings: SetOption = None,
    save: SaveOption = None,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    isolation: NewTournamentIsolationOption = None,
    require: RequireOption = None,
    cluster: ClusterOption = None,
    tls_ca: AuthorityOption = None,
    tls_cert: CertificateOption = None,
    tls_key: KeyOption = None,
    logs: LogsOption = None,
    messages: MessagesOption = False,
) -> None:
    """Create a tournament from a file, or from bots and options, and play it.

    Without a file, --ruleset, --seats, and --matches or --budget are required. --set sets any other key of a
    tournament file.

    After Ctrl-C, the games in progress are finished, and the command that resumes the tournament is printed. A
    second Ctrl-C stops at once.

    Example: referee tournament run sample_bots/greedy sample_bots/bait --ruleset duel --seats 2 --matches 20
    """
    place = choose_cluster(cluster, tls_ca, tls_cert, tls_key)
    keys = {
        "name": name,
        "ruleset": ruleset,
        "seats": seats,
        "matches": matches,
        "budget": budget,
    }
    config, content = read_words(words, keys, settings or (), LeaguePace(league, db))
    if save is not None:
        if content is None:
            raise UserError("--save: not allowed with a tournament file")
        check_new(save)
    log_settings = choose_tournament_logs(logs, place, messages=messages)
    with open_new_tournament(
        ctx,
        config,
        league,
        db,
        isolation=isolation,
        require=require,
        place=place,
    ) as (store, tournament, under, interrupts):
        if save is not None and content is not None:
            save_file(save, content, config)
        play_to_end(store, tournament, under, interrupts, place, log_settings)
        announce_verdict(store, tournament.name)


@contextmanager
def open_new_tournament(
    ctx: typer.Context,
    config: TournamentConfig,
    league: Path,
    db: str | None,
    *,
    isolation: str | None,
    require: str | None,
    place: ClusterChoice | None,
) -> Iterator[tuple[League, Tournament, Isolation, Interrupts]]:
    """Create a tournament, and yield what `play_to_end` needs to play it. The league stays open and locked until the `with` ends.

    The arguments after `config` are the options of `run`. Raises UserError for wrong options or bots, before anything is stored.
    """
    check_cores(place, config)
    check_entries(config, league, db)
    choice = choose_rung(ctx, isolation, config.isolation)
    config = replace(config, isolation=choice.lasting)  # stored, so it holds for `resume` too
    under = _select_isolation(choice, require, config, league, db)
    with League.open(league, create=True, db=db) as store, store.lock():
        roster = roster_of(store, make_launcher(under))
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
                _print_other(store, config.name, tournament.name)
            if config.budget is not None:
                console.print(f"The budget of {config.budget} is enough for {config.games} games.")
            yield store, tournament, under, interrupts


@app.command()
def resume(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(help="The name of the tournament. By default the newest unfinished one."),
    ] = None,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    isolation: OldTournamentIsolationOption = None,
    require: RequireOption = None,
    cluster: ClusterOption = None,
    tls_ca: AuthorityOption = None,
    tls_cert: CertificateOption = None,
    tls_key: KeyOption = None,
    logs: LogsOption = None,
    messages: MessagesOption = False,
) -> None:
    """Continue a tournament that was interrupted: play its missing games.

    Example: referee tournament resume demo
    """
    place = choose_cluster(cluster, tls_ca, tls_cert, tls_key)
    log_settings = choose_tournament_logs(logs, place, messages=messages)
    with Interrupts() as interrupts, League.open(league, create=False, db=db) as store:
        tournament = find_tournament(store, name or _newest_unfinished(store))
        check_cores(place, tournament.config)
        choice = choose_rung(ctx, isolation, tournament.config.isolation)
        under = _select_isolation_again(store, tournament, choice, require)
        with store.lock():
            play_to_end(store, tournament, under, interrupts, place, log_settings)
        announce_verdict(store, tournament.name)


@app.command()
def extend(
    ctx: typer.Context,
    name: TournamentArgument,
    matches: Annotated[
        int,
        typer.Option(
            help="The number of matches to add at each table of bots. In a stage with a balanced choice of tables: the number"
            " of matches to add to the stage.",
            min=1,
        ),
    ],
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    isolation: OldTournamentIsolationOption = None,
    require: RequireOption = None,
    cluster: ClusterOption = None,
    tls_ca: AuthorityOption = None,
    tls_cert: CertificateOption = None,
    tls_key: KeyOption = None,
    logs: LogsOption = None,
    messages: MessagesOption = False,
) -> None:
    """Add matches to a tournament, finished or not, and play them.

    Existing games stay as they are. The new deals come from a new seed, because the seed of a finished
    tournament is public.

    Example: referee tournament extend demo --matches 2
    """
    place = choose_cluster(cluster, tls_ca, tls_cert, tls_key)
    log_settings = choose_tournament_logs(logs, place, messages=messages)
    with (
        Interrupts() as interrupts,
        League.open(league, create=False, db=db) as store,
        store.lock(),
    ):
        tournament = find_tournament(store, name)
        check_cores(place, tournament.config)
        for bot in tournament.bots.values():
            roster_of(store).spec(bot)  # a missing bot must fail before the extension is stored
        choice = choose_rung(ctx, isolation, tournament.config.isolation)
        under = _select_isolation_again(store, tournament, choice, require)
        seed = secrets.token_bytes(deals.SEED_SIZE)
        longer = add_matches(store, tournament, matches, seed=seed, now_us=now_us())
        play_to_end(store, longer, under, interrupts, place, log_settings)


def play_to_end(
    store: League,
    tournament: Tournament,
    isolation: Isolation,
    interrupts: Interrupts,
    place: ClusterChoice | None,
    logs: LogSettings | None,
) -> None:
    """Play the missing games of a tournament. Print ratings and faults. If the tournament is finished, print the seeds.

    Raises typer.Exit if the tournament was interrupted. Raises RefereeError or OSError if the tournament cannot go
    on. Then the command that resumes the tournament is printed. It is not printed for a UserError without a cluster.
    """
    try:
        _announce(store, tournament)
        announce_isolation(isolation, console)
        roster = roster_of(store)
        workers = choose_workers(place, tournament, roster, isolation, logs)
        finished = conduct(store, tournament, roster, isolation, console, interrupts, workers)
    except (RefereeError, OSError) as error:
        # a cluster may be missing or unable to play, and the tournament is stored all the same
        if place is not None or not isinstance(error, UserError):
            with suppress(OSError):  # a second error would hide the first one
                again = resume_command(store, tournament.name, place)
                console.print(f"Stopped. To try again: {again}", soft_wrap=True)
        raise
    tournament = find_tournament(store, tournament.name)  # may have stopped early: read again
    choice, title = GameFilter(tournament=tournament.name), tournament.name
    if tournament.config.ladder is not None:
        choice = GameFilter(ruleset=tournament.config.stages[0].ruleset.name)
        title = "the league"
    rows, analysed = current_ratings(store, choice)
    if rows:
        console.print(RowsTable(RatingRow, rows, title))
        print_notes(name_deviations(analysed))
    faults = fault_rows(store.faults(tournament=tournament.name))
    if faults:
        console.print(RowsTable(FaultRow, faults, "faults"))
    if not finished:
        console.print(
            f"Interrupted. To resume: {resume_command(store, tournament.name, place)}",
            soft_wrap=True,
        )
        raise typer.Exit(INTERRUPTED)
    ended = describe_stop(tournament) if tournament.config.has_looks else "All games are played."
    for number, part in enumerate(tournament.parts):
        seed = part.seed.hex() if part.seed is not None else ""
        label = f"Seed of {part_title(number)}" if number else f"{ended} Seed"
        console.print(f"{label}: {seed}", soft_wrap=True)


def _announce(store: League, tournament: Tournament) -> None:
    before = len(store.forfeits(tournament.name))
    console.print(
        f"{tournament.name}: {'at most ' if tournament.may_stop else ''}"
        f"{len(tournament.schedule)} games,"
        f"{f' of which {before} are played,' if before else ''}"
        f" {len(tournament.config.bots)} bots."
        f" Commitment: {tournament.parts[0].commitment}",
        soft_wrap=True,
    )
    for number, part in enumerate(tournament.parts[1:], 1):
        console.print(
            f"{part_title(number).capitalize()}: {part.games} of the games."
            f" Commitment: {part.commitment}",
            soft_wrap=True,
        )


def resume_command(store: League, name: str, place: ClusterChoice | None = None) -> str:
    """Return the command that resumes a tournament at the same place."""
    words = ["referee", "tournament", "resume", name, *league_options(store)]
    return shlex.join(words if place is None else [*words, *place.options()])


def league_options(store: League) -> list[str]:
    """Return the options that select a league, for a command that the user can type. They contain no password.

    `--db` is left out if the environment variable REFEREE_DB names the same database.
    """
    words = ["--league", str(store.folder)]
    from_environment = os.environ.get(DB_VARIABLE)
    if store.db is not None and not (
        from_environment and url_without_password(from_environment) == store.db
    ):
        words += ["--db", store.db]
    return words


def _print_other(store: League, wanted: str, name: str) -> None:
    console.print(
        f"The league has a tournament {wanted} already; the new one is called {name}.",
        soft_wrap=True,
    )
    other = store.tournament(wanted)
    if other.stored < other.games:
        console.print(
            f"To play the missing games of {wanted}: {resume_command(store, wanted)}",
            soft_wrap=True,
        )


def _select_isolation(
    choice: RungChoice, required: str | None, config: TournamentConfig, league: Path, db: str | None
) -> Isolation:
    """Select the isolation of a tournament from a file; its bots may be missing in the league."""
    folders = [entry.variant or entry.folder for entry in config.bots if entry.folder is not None]
    names = [entry.text for entry in config.bots if entry.folder is None]
    return select_isolation_for(
        choice.wanted, required, lambda: find_bots(folders, names, league, db)
    )


def _select_isolation_again(
    store: League, tournament: Tournament, choice: RungChoice, required: str | None
) -> Isolation:
    """Select the isolation of a stored tournament."""
    names = map(str, tournament.bots.values())
    return select_isolation_for(
        choice.wanted, required, lambda: find_bots((), names, store.folder, store.db)
    )


def _newest_unfinished(store: League) -> str:
    unfinished = [row.name for row in store.tournaments() if row.stored < row.games]
    if not unfinished:
        raise UserError(f"{store.where}: every tournament is finished; there is none to resume")
    return unfinished[-1]
