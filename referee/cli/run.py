"""`referee tournament run`, `resume` and `extend`: create a tournament, continue it, or add matches to it."""

from __future__ import annotations

import secrets
import shlex
from typing import Annotated

import typer

from referee import deals
from referee.cli.cluster import (
    AuthorityOption,
    CertificateOption,
    ClusterOption,
    KeyOption,
    check_cluster,
    check_cores,
    check_isolation,
)
from referee.cli.interrupts import Interrupts
from referee.cli.isolation import (
    NewTournamentIsolationOption,
    OldTournamentIsolationOption,
    RequireOption,
    RungChoice,
    choose_rung,
    find_bots,
    now_us,
    roster_of,
    select_isolation_for,
)
from referee.cli.options import (
    DEFAULT_LEAGUE,
    DbOption,
    FinalJsonOption,
    LeagueOption,
    LogsOption,
    MessagesOption,
    TournamentArgument,
)
from referee.cli.playing import (
    PlaySettings,
    choose_settings,
    early_interrupt,
    league_options,
    open_new_tournament,
    play_to_end,
    refresh_bots,
    resume_command,
)
from referee.cli.tournament import LeaguePace
from referee.cli.without_file import (
    BudgetKeyOption,
    MatchesKeyOption,
    NameKeyOption,
    RulesetKeyOption,
    SaveOption,
    SeatsKeyOption,
    SetOption,
    check_new,
    read_arguments,
    save_file,
)
from referee.errors import RefereeError, UserError
from referee.sandbox import Isolation
from referee.store.league import League
from referee.tournament.create import Tournament, find_tournament, plan_extension
from referee.tournament.create import extend_tournament as add_matches

app = typer.Typer()


@app.command()
def run(
    ctx: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|BOT",
            help="The tournament file (TOML), or the bots. As in a tournament file, a bot is the path of a folder, with a slash"
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
    as_json: FinalJsonOption = False,
) -> None:
    """Create a tournament from a file, or from bots and options, and play it.

    Without a file, --ruleset, --seats, and --matches or --budget are required. --set sets any other key of a
    tournament file.

    After Ctrl-C, the games in progress are finished, and the command that resumes the tournament is printed. A
    second Ctrl-C stops at once.

    Example: referee tournament run sample_bots/greedy sample_bots/bait --ruleset duel --seats 2 --matches 20
    """
    keys = {
        "name": name,
        "ruleset": ruleset,
        "seats": seats,
        "matches": matches,
        "budget": budget,
    }
    config, content = read_arguments(words, keys, settings or (), LeaguePace(league, db))
    if save is not None:
        if content is None:
            raise UserError("--save: not allowed with a tournament file")
        check_new(save)
    options = choose_settings(
        cluster, tls_ca, tls_cert, tls_key, logs, messages=messages, as_json=as_json
    )
    with open_new_tournament(
        ctx,
        config,
        league,
        db,
        isolation=isolation,
        require=require,
        settings=options,
    ) as (store, tournament, under, interrupts):
        if save is not None and content is not None:
            kept = tournament.config.isolation
            isolated = {} if kept is None else {"isolation": kept.value}
            try:
                save_file(save, content | isolated, config)
            except OSError as error:
                again = resume_command(store, tournament.name, options.place)
                raise RefereeError(
                    f"--save: {save}: {error.strerror}; the tournament {tournament.name} is stored; resume it with: {again}"
                ) from error
        play_to_end(store, tournament, under, interrupts, options)


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
    as_json: FinalJsonOption = False,
) -> None:
    """Continue a tournament that was interrupted: play its missing games.

    Example: referee tournament resume demo
    """
    settings = choose_settings(
        cluster, tls_ca, tls_cert, tls_key, logs, messages=messages, as_json=as_json
    )
    with (
        Interrupts() as interrupts,
        League.open(league, create=False, db=db) as store,
        store.lock(),  # taken before the games are read, because another referee may still add games
    ):
        wanted = _newest_unfinished(store) if name is None else name
        tournament = find_tournament(store, wanted)
        check_cores(settings.place, tournament.config)
        choice = choose_rung(ctx, isolation, tournament.config.isolation)
        under = _select_isolation_again(store, tournament, choice, require, settings)
        check_isolation(settings.place, under)
        if not all(part.finished for part in tournament.parts):
            refresh_bots(store, tournament, under, interrupts, settings)
        play_to_end(store, tournament, under, interrupts, settings)


@app.command()
def extend(
    ctx: typer.Context,
    name: TournamentArgument,
    matches: Annotated[
        int,
        typer.Option(
            help="The number of matches to add at each table of bots. If the tournament plays only a balanced choice of tables:"
            " the number of matches to add to each stage.",
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
    as_json: FinalJsonOption = False,
) -> None:
    """Add matches to a tournament, finished or not, and play them.

    Existing games stay as they are. The new deals come from a new seed, because the seed of a finished
    tournament is public. A ladder and a tournament that may still stop early cannot be extended.

    Example: referee tournament extend demo --matches 2
    """
    settings = choose_settings(
        cluster, tls_ca, tls_cert, tls_key, logs, messages=messages, as_json=as_json
    )
    with (
        Interrupts() as interrupts,
        League.open(league, create=False, db=db) as store,
        store.lock(),
    ):
        tournament = find_tournament(store, name)
        _check_can_extend(store, tournament, matches)
        check_cores(settings.place, tournament.config)
        for bot in tournament.bots.values():
            roster_of(store).spec(bot)  # raises for a missing bot before the extension is stored
        choice = choose_rung(ctx, isolation, tournament.config.isolation)
        under = _select_isolation_again(store, tournament, choice, require, settings)
        check_isolation(settings.place, under)
        check_cluster(settings.place)
        refresh_bots(store, tournament, under, interrupts, settings)
        seed = secrets.token_bytes(deals.SEED_SIZE)
        longer = add_matches(store, tournament, matches, seed=seed, now_us=now_us())
        play_to_end(store, longer, under, interrupts, settings)


def _check_can_extend(store: League, tournament: Tournament, matches: int) -> None:
    """Raise UserError if these matches cannot be added. To be called before bots are built.

    For a ladder, the error names the command that plays more games.
    """
    if tournament.config.ladder is not None:
        [stage] = tournament.config.stages
        chosen = ("--ruleset", stage.ruleset.name, "--seats", str(stage.seats))
        options = (*chosen, *league_options(store.folder, store.db))
        raise UserError(
            f"{tournament.name}: it is a ladder, which cannot be extended; for more games:"
            f" {shlex.join(['referee', 'ladder', 'run', *options])}"
        )
    plan_extension(tournament, matches)


def _select_isolation_again(
    store: League,
    tournament: Tournament,
    choice: RungChoice,
    required: str | None,
    settings: PlaySettings,
) -> Isolation:
    """Select the isolation of a stored tournament. After a signal, prints how to go on and raises typer.Exit."""
    names = map(str, tournament.bots.values())
    try:
        return select_isolation_for(
            choice.wanted, required, lambda: find_bots((), names, store.folder, store.db)
        )
    except KeyboardInterrupt:
        raise early_interrupt(settings) from None


def _newest_unfinished(store: League) -> str:
    rows = store.tournaments()
    if not rows:
        raise UserError(f"{store.where}: the league has no tournaments; there is none to resume")
    unfinished = [row.name for row in rows if row.stored < row.games]
    if not unfinished:
        raise UserError(f"{store.where}: every tournament is finished; there is none to resume")
    return unfinished[-1]
