"""Play a tournament and show it in the terminal, for every command that plays one.

A command makes `PlaySettings` from its options. `open_new_tournament` creates a tournament, and `play_to_end` plays it.
"""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from referee import deals
from referee.bots.logs import LogSettings
from referee.cli.cluster import (
    ClusterChoice,
    check_cluster,
    check_cores,
    check_isolation,
    choose_cluster,
    choose_workers,
)
from referee.cli.interrupts import Interrupts, run_loop
from referee.cli.isolation import (
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
    INTERRUPTED,
    Output,
    choose_logs,
    console,
    notes,
    print_notes,
    show_table,
    write,
)
from referee.cli.progress import conduct
from referee.cli.tournament import (
    announce_verdict,
    check_entries,
    describe_few_cores,
    describe_stop,
)
from referee.errors import RefereeError, StoreError, UserError
from referee.reports.bot_rows import FaultRow, fault_rows
from referee.reports.formats import json_text
from referee.reports.rating_rows import RatingRow
from referee.reports.selection import GameFilter, current_ratings
from referee.reports.verdicts import judge_newest_look, name_deviations
from referee.sandbox import Isolation
from referee.schedule.budget import Unit
from referee.store.league import League, url_without_password
from referee.tournament.config import TournamentConfig, part_title
from referee.tournament.create import (
    Tournament,
    create_tournament,
    enter_bots,
    find_same_seed,
    find_tournament,
)


@dataclass(frozen=True, slots=True)
class PlaySettings:
    """Where a tournament is played, and what is written about it."""

    place: ClusterChoice | None
    """The cluster; None for the cores of this machine."""
    logs: LogSettings | None
    """Where the logs of the bots go; None without logs."""
    as_json: bool
    """Whether standard output gets only the tables at the end, as JSON."""

    @property
    def out(self) -> Output:
        """Where the progress, and every line for people, is printed."""
        return notes if self.as_json else console


def choose_settings(
    cluster: str | None,
    tls_ca: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    logs: Path | None,
    *,
    messages: bool,
    as_json: bool,
) -> PlaySettings:
    """Make the settings from the options of a command. Create the folder for logs.

    Raises UserError for wrong options, also for `--logs` with `--cluster`, because the bots of a cluster run on other
    machines.
    """
    place = choose_cluster(cluster, tls_ca, tls_cert, tls_key)
    if logs is not None and place is not None:
        raise UserError("--logs, --cluster: choose one of them")
    return PlaySettings(place, choose_logs(logs, messages=messages), as_json)


@contextmanager
def open_new_tournament(
    ctx: typer.Context,
    config: TournamentConfig,
    league: Path,
    db: str | None,
    *,
    isolation: str | None,
    require: str | None,
    settings: PlaySettings,
) -> Iterator[tuple[League, Tournament, Isolation, Interrupts]]:
    """Create a tournament, and yield what `play_to_end` needs to play it. The league stays open and locked until the `with` ends.

    `league`, `db`, `isolation` and `require` are options of the command. Raises UserError if options or bots are wrong, or if
    no scheduler can be reached. Raises typer.Exit if a signal arrives while bots are added. In these cases no tournament is
    stored, but bots that were added before stay in the league.
    """
    check_cores(settings.place, config)
    check_entries(config, league, db)
    choice = choose_rung(ctx, isolation, config.isolation)
    config = replace(config, isolation=choice.lasting)  # stored, so it holds for `resume` too
    under = _select_isolation(choice, require, config, league, db)
    check_isolation(settings.place, under)
    check_cluster(settings.place)
    with League.open(league, create=True, db=db) as store, store.lock():
        roster = roster_of(store, under)
        try:
            bots = run_loop(
                enter_bots(config, roster, now_us=now_us(), refreshes=settings.place is None)
            )
        except KeyboardInterrupt:
            settings.out.print("Interrupted before the tournament was created.")
            raise typer.Exit(INTERRUPTED) from None
        with Interrupts() as interrupts:
            twin = None if config.seed is None else find_same_seed(store, config.seed)
            tournament = create_tournament(
                store,
                config,
                bots,
                seed=config.seed or secrets.token_bytes(deals.SEED_SIZE),
                now_us=now_us(),
            )
            if tournament.name != config.name:
                _print_other(store, config.name, tournament.name, settings.out)
            if twin is not None:
                settings.out.print(
                    f"seed: {twin} has the same seed. After the last game of {twin} the seed is public, and whoever knows it can"
                    " compute all decks.",
                    soft_wrap=True,
                )
            budget = config.budget
            if budget is not None and (budget.unit, budget.amount) != (Unit.GAMES, config.games):
                settings.out.print(f"The budget of {budget} is enough for {config.games} games.")
            yield store, tournament, under, interrupts


def _select_isolation(
    choice: RungChoice, required: str | None, config: TournamentConfig, league: Path, db: str | None
) -> Isolation:
    """Select the isolation of a new tournament, before its folders and variants are added to the league."""
    sources = [entry.variant or entry.folder for entry in config.bots]
    folders = [each for each in sources if each is not None]
    names = [entry.text for entry, each in zip(config.bots, sources, strict=True) if each is None]
    return select_isolation_for(
        choice.wanted, required, lambda: find_bots(folders, names, league, db)
    )


def refresh_bots(
    store: League,
    tournament: Tournament,
    isolation: Isolation,
    interrupts: Interrupts,
    settings: PlaySettings,
) -> None:
    """Build bots of a stored tournament again if that is needed; see `Workshop.refresh`. On a cluster, its workers do that instead.

    Raises UserError if a bot cannot be built. After a signal, prints how to go on and raises typer.Exit.
    """
    if settings.place is not None:
        return
    roster = roster_of(store, isolation)

    async def refresh() -> None:
        for bot in tournament.bots.values():
            await roster.refresh(bot)

    try:
        interrupts.run_loop(refresh())
    except KeyboardInterrupt:
        raise early_interrupt(settings) from None


def early_interrupt(settings: PlaySettings) -> typer.Exit:
    """Print how to go on after a signal before the first game. Return the exception that ends the command."""
    settings.out.print(
        "Interrupted before all bots were checked and built. To go on, run this command again.",
        soft_wrap=True,
    )
    return typer.Exit(INTERRUPTED)


def play_to_end(
    store: League,
    tournament: Tournament,
    isolation: Isolation,
    interrupts: Interrupts,
    settings: PlaySettings,
) -> bool:
    """Play the missing games of a tournament, and print ratings and faults. If it is finished, print the seeds and the verdict too.

    Return False if the verdict about two bots is open, see `announce_verdict`.

    Raises typer.Exit if the tournament was interrupted, and RefereeError or OSError if it cannot go on. In these cases,
    this function first prints the `resume` command for the tournament. Exception: without a cluster, it does not print the
    command if the error is a UserError, because `resume` would fail in the same way.

    The `resume` command is printed too if the database fails while the tables, seeds or verdict are printed. For a finished
    tournament, `resume` plays no games, but prints the tables, seeds and verdict again.
    """
    out = settings.out
    try:
        _announce(store, tournament, out)
        announce_isolation(isolation, out)
        roster = roster_of(store)
        workers = choose_workers(settings.place, tournament, roster, isolation, settings.logs)
        finished = conduct(store, tournament, roster, isolation, out, interrupts, workers)
    except (RefereeError, OSError) as error:
        # With a cluster, a UserError may mean that it cannot be reached or cannot play now. The tournament is stored and can be
        # resumed later.
        if settings.place is not None or not isinstance(error, UserError):
            with suppress(OSError):  # a second error would hide the first one
                again = resume_command(store, tournament.name, settings.place)
                out.print(f"Stopped. To try again: {again}", soft_wrap=True)
        raise
    again = resume_command(store, tournament.name, settings.place)
    hint = f"Interrupted. To resume: {again}"
    if finished:
        hint = f"The tournament is finished. To see its tables: {again}"
    try:
        # read again, because the tournament may have stopped early
        tournament = find_tournament(store, tournament.name)
        _print_tables(store, tournament, finished=finished, as_json=settings.as_json)
        if finished:
            _print_seeds(tournament, out)
            return announce_verdict(store, tournament.name, out)
    except StoreError:
        with suppress(OSError):
            out.print(hint, soft_wrap=True)
        raise
    out.print(hint, soft_wrap=True)
    raise typer.Exit(INTERRUPTED)


def _print_seeds(tournament: Tournament, out: Output) -> None:
    """Say why a finished tournament has ended, and print the seed of each part."""
    ended = describe_stop(tournament) if tournament.config.has_looks else "All games are played."
    for number, part in enumerate(tournament.parts):
        seed = part.seed.hex() if part.seed is not None else ""
        label = f"Seed of {part_title(number)}" if number else f"{ended} Seed"
        out.print(f"{label}: {seed}", soft_wrap=True)


def _announce(store: League, tournament: Tournament, out: Output) -> None:
    before = store.tournament(tournament.name).stored
    played = f" of which {before} {'is' if before == 1 else 'are'} played," if before else ""
    out.print(
        f"{tournament.name}: {'at most ' if tournament.may_stop else ''}"
        f"{len(tournament.schedule)} games,{played}"
        f" {len(tournament.config.bots)} bots."
        f" Commitment: {tournament.parts[0].commitment}",
        soft_wrap=True,
    )
    for number, part in enumerate(tournament.parts[1:], 1):
        out.print(
            f"{part_title(number).capitalize()}: {part.games} of the games."
            f" Commitment: {part.commitment}",
            soft_wrap=True,
        )
    if few_cores := describe_few_cores(tournament.config):
        out.print(few_cores, soft_wrap=True)


def _print_tables(store: League, tournament: Tournament, *, finished: bool, as_json: bool) -> None:
    """Print the ratings and the faults of a tournament, as tables or as one JSON object, which also has the verdicts.

    For a ladder, print the ratings of its ruleset in the whole league.
    """
    own, title = GameFilter(tournament=tournament.name), tournament.name
    choice = own
    if tournament.config.ladder is not None:
        choice = GameFilter(ruleset=tournament.config.stages[0].ruleset.name)
        title = "the league"
    rows, analysed = current_ratings(store, choice)
    faults = fault_rows(store.fault_counts(tournament=tournament.name))
    if as_json:
        verdicts = []
        if tournament.config.until is not None:
            verdicts = judge_newest_look(tournament, own.columns(store)).neighbour_rows()
        found = {"ratings": rows, "faults": faults, "neighbours": verdicts}
        write(json_text({"tournament": tournament.name, "finished": finished, **found}))
        return
    if rows:
        show_table(RatingRow, rows, title)
        print_notes(name_deviations(analysed))
    if faults:
        show_table(FaultRow, faults, "faults")


def resume_command(store: League, name: str, place: ClusterChoice | None = None) -> str:
    """Return the command that resumes a tournament on the cluster `place`; if that is None, on the cores of this machine."""
    words = ["referee", "tournament", "resume", name, *league_options(store.folder, store.db)]
    return shlex.join(words if place is None else [*words, *place.options()])


def submit_command(bot: str | Path, league: Path, db: str | None) -> str:
    """Return the command that adds the bot in the folder `bot` to a league; see `league_options`."""
    return shlex.join(["referee", "bots", "submit", str(bot), *league_options(league, db)])


def league_options(league: Path, db: str | None) -> list[str]:
    """Return the options that select a league, for a command that the user can type. They contain no password.

    `--db` is left out if the environment variable REFEREE_DB names the same database.
    """
    words = ["--league", str(league)]
    url = None if db is None else url_without_password(db)
    if url is not None and url != _db_of_variable():
        words += ["--db", url]
    return words


def _db_of_variable() -> str | None:
    """Return the URL in REFEREE_DB without its password; None if the variable has no URL, or a wrong one."""
    url = os.environ.get(DB_VARIABLE)
    with suppress(UserError):
        return url_without_password(url) if url else None
    return None


def _print_other(store: League, wanted: str, name: str, out: Output) -> None:
    out.print(
        f"The league has a tournament {wanted} already; the new one is called {name}.",
        soft_wrap=True,
    )
    other = store.tournament(wanted)
    if other.stored < other.games:
        out.print(
            f"To play the missing games of {wanted}: {resume_command(store, wanted)}",
            soft_wrap=True,
        )
