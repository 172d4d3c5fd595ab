"""`referee play`: play one game between bots, without a tournament."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from referee import toml_file
from referee.bots import BotSpec
from referee.bots.logs import LogSettings
from referee.bots.manifest import load_manifest
from referee.cli.games import Position, find_position, show_record
from referee.cli.interrupts import run_loop
from referee.cli.isolation import (
    IsolationOption,
    RequireOption,
    attach_launcher,
    find_bots,
    load_folder,
    now_us,
    parse_rung,
    select_isolation_for,
    warn_if_not_full,
    workshop_at,
)
from referee.cli.options import (
    DEFAULT_LEAGUE,
    DbOption,
    JsonOption,
    LeagueOption,
    LogsOption,
    MessagesOption,
    choose_logs,
    console,
    write,
)
from referee.clocks import Clocks
from referee.errors import NotFoundError, RefereeError, StoreError, UserError, did_you_mean
from referee.match.play import Watcher
from referee.records import Fault, GameRecord, Move, name_seats
from referee.reports.formats import json_text
from referee.reports.game_rows import record_json
from referee.reports.playthrough import Narrator, table_view
from referee.roster.roster import Roster
from referee.roster.workshop import Workshop
from referee.rules.actions import Decision
from referee.rules.events import Event
from referee.rules.ruleset import RULESETS, Ruleset
from referee.sandbox import Isolation
from referee.sandbox.launcher import Launcher
from referee.store.database import write_patiently
from referee.store.league import League, url_without_password
from referee.tournament.config_file import MAX_SECONDS, MIN_SECONDS, ClocksTable, check_bank
from referee.tournament.config_reader import make_clocks
from referee.tournament.game_player import make_free_task, play_free_game

app = typer.Typer()

_RULESET = "basic"
_NOT_RATED = "It is not rated: only the games of tournaments are."


def _seconds_option(name: str, key: str, meaning: str) -> Any:
    default = ClocksTable.model_fields[key].default
    return typer.Option(
        name,
        min=MIN_SECONDS,
        max=MAX_SECONDS,
        metavar="SECONDS",
        help=f"{meaning}. Default: {default}.",
    )


StartUpOption = Annotated[
    float | None,
    _seconds_option("--start-up", "start_up", "The time from the start of a bot to its hello"),
]
GameStartOption = Annotated[
    float | None,
    _seconds_option("--game-start", "game_start", "The time until a bot is ready for the game"),
]
DecisionOption = Annotated[
    float | None, _seconds_option("--decision", "decision", "The time for a decision")
]
BankOption = Annotated[
    str | None,
    typer.Option(
        "--bank",
        metavar="SECONDS[+INCREMENT]",
        help="Seconds for all decisions of a bot in the game, and seconds added after each decision, such as 30+0.1. By default there is no bank.",
    ),
]
NoClocksOption = Annotated[
    bool,
    typer.Option(
        "--no-clocks",
        help="Let bots take any time, for example in a debugger. They are told the usual limits.",
    ),
]
AttachOption = Annotated[
    int | None,
    typer.Option(
        "--attach",
        metavar="SEAT",
        min=0,
        help="Do not start the bot of this seat: print address and token, and wait until you have started it, by hand or in a debugger."
        " There are no time limits.",
    ),
]


@app.command()
def play(
    ctx: typer.Context,
    bots: Annotated[
        list[str],
        typer.Argument(
            help="Folders of bots, or names of bots in the league, in the order of the seats."
        ),
    ],
    ruleset: Annotated[
        str | None,
        typer.Option("--ruleset", help=f"One of {', '.join(RULESETS)}. By default {_RULESET}."),
    ] = None,
    seed: Annotated[
        str | None,
        typer.Option(
            "--seed", help="Any text. The same text deals the same cards. By default a random text."
        ),
    ] = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Show every move and every fault while the game is played."),
    ] = False,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="Store the game in the league. Bots given as folders are added to the league, which is created if it does not exist.",
        ),
    ] = False,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="GAME:MOVE",
            help="Continue a stored game of the league from the position after move MOVE.",
        ),
    ] = None,
    start_up: StartUpOption = None,
    game_start: GameStartOption = None,
    decision: DecisionOption = None,
    bank: BankOption = None,
    no_clocks: NoClocksOption = False,
    attach: AttachOption = None,
    logs: LogsOption = None,
    messages: MessagesOption = False,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    as_json: JsonOption = False,
    isolation: IsolationOption = None,
    require: RequireOption = None,
) -> None:
    """Play one game between bots; the first bot starts.

    A bot may be given several times, to play against itself; its second seat is called NAME#2. The game is not rated.

    With --from, the game has the ruleset, the deal and the first moves of a stored game. Such a game cannot be kept.

    Example: referee play sample_bots/greedy sample_bots/random --ruleset duel --watch
    """
    if watch and as_json:
        raise UserError("--watch, --json: choose one of them")
    if start is not None and (keep or ruleset is not None):
        raise UserError(f"--from, {'--keep' if keep else '--ruleset'}: choose one of them")
    position = None if start is None else find_position(start, len(bots), league, db)
    rules = (
        position.ruleset
        if position
        else _select_ruleset(_RULESET if ruleset is None else ruleset, len(bots))
    )
    limits = {"start_up": start_up, "game_start": game_start, "decision": decision, "bank": bank}
    if attach is not None:
        _check_attach(attach, len(bots), keep=keep)
    no_limit_option = "--no-clocks" if no_clocks else "" if attach is None else "--attach"
    clocks = _make_clocks(limits, no_limit_option)
    seed_text = secrets.token_hex(8) if seed is None else seed
    log_settings = choose_logs(logs, messages=messages)
    options = _BotOptions(ctx, league, db, attach, keep)
    under, specs = _prepare_bots(bots, rules, options, isolation, require)
    task = make_free_task(specs, rules, seed_text, under, clocks)
    if position is not None:
        task = replace(task, setup=position.apply(task.setup))
    record = run_loop(
        play_free_game(
            task,
            under,
            _make_watcher(specs, position) if watch else None,
            is_timed=not no_limit_option,
            logs=log_settings,
            launchers=_attach_launchers(task.bots, attach),
        )
    )
    if as_json:
        write(json_text(record_json(record)))
    else:
        _print_record(record, seed_text, position)
        if log_settings is not None:
            _print_logs(log_settings, record.game_id)
    if keep:
        _store(record, league, db)
        if not as_json:
            console.print(f"Stored as {record.game_id}. {_NOT_RATED}", soft_wrap=True)


def _print_logs(settings: LogSettings, game_id: str) -> None:
    """Print where the logs of a game are, and why they are incomplete if a write has failed."""
    folder = settings.folder / game_id
    if not folder.exists():  # no bot has printed anything in the game
        folder = settings.folder
    console.print(f"Logs of the bots: {folder}", soft_wrap=True)
    for error in settings.errors:
        console.print(f"The logs are incomplete: {error}", soft_wrap=True)


def _store(record: GameRecord, folder: Path, db: str | None) -> None:
    """Store a game in the league. If the database fails, try again for about a minute.

    Raises StoreError if the game could not be stored, also if the league could not be opened.
    """

    def write() -> None:
        with League.open(folder, create=True, db=db) as league:
            league.add_game_once(record)

    try:
        write_patiently(write)
    except RefereeError as error:
        raise StoreError(f"{record.game_id} was played, but not stored: {error}") from error


def _check_attach(seat: int, seats: int, *, keep: bool) -> None:
    """Raise UserError if `--attach` names no seat of the game, or if `--keep` is given too.

    A game with `--attach` cannot be kept, because the person may start another program than the league's copy of the bot.
    """
    if seat >= seats:
        raise UserError(f"--attach: the game has the seats 0 to {seats - 1}")
    if keep:
        raise UserError("--keep, --attach: choose one of them")


def _attach_launchers(specs: Sequence[BotSpec | None], seat: int | None) -> dict[str, Launcher]:
    """Return the launcher for the bot of `--attach`, in a dict by `name@version`. Without this option, the dict is empty."""
    spec = None if seat is None else specs[seat]
    return {} if seat is None or spec is None else {str(spec.bot): attach_launcher(spec, seat)}


def _make_clocks(limits: Mapping[str, float | str | None], no_limit_option: str) -> Clocks:
    """Return the clocks of a game. Raises UserError for wrong options.

    Args:
        limits: the values of the options by the keys of `ClocksTable`, with None for each option that was not given.
        no_limit_option: the given option that lets bots take any time; empty if there is none.
    """
    given = {key: value for key, value in limits.items() if value is not None}
    if given and no_limit_option:
        options = ", ".join(f"--{key.replace('_', '-')}" for key in given)
        raise UserError(f"{no_limit_option}, {options}: choose one of them")
    try:  # `ClocksTable` checks the bank too, but its message would not name the option
        check_bank(str(given.get("bank", "1")))  # without the option, "1" passes the check
    except ValueError as error:
        raise UserError(f"--bank: {error}") from None
    return make_clocks(ClocksTable.model_validate(given))


def _print_record(record: GameRecord, seed: str, position: Position | None) -> None:
    """Print a record. The printed numbers of decisions and the printed times leave out the moves before the `position`."""
    if position is None:
        show_record(record)
        again = "To deal the same cards"
    else:
        show_record(replace(record, moves=record.moves[len(position.opening) :]))
        again = "To give the bots the same seeds"
    write(f"{again}: --seed {shlex.quote(seed)}")  # Rich would replace tabs


def _select_ruleset(name: str, players: int) -> Ruleset:
    rules = RULESETS.get(name)
    if rules is None:
        known, similar = ", ".join(RULESETS), did_you_mean(name, RULESETS)
        raise UserError(f"--ruleset: unknown ruleset {name!r}{similar}; choose one of {known}")
    try:
        rules.check_players(players)
    except ValueError as error:
        raise UserError(f"BOTS: {error}") from None
    return rules


class _BotOptions(NamedTuple):
    """The options that say where bots are found, and whether they are built and kept."""

    ctx: typer.Context
    """The context of the command. When the command ends, this context removes some copies of bots; see `load_folder`."""
    league: Path
    """The folder of the league."""
    db: str | None
    """The URL of the database; None for the file in the league folder."""
    attach: int | None
    """The seat whose bot a person starts; None if there is none. If this bot is given as a folder, it is not built."""
    keep: bool
    """Whether bots given as folders are added to the league."""


def _prepare_bots(
    texts: Sequence[str],
    rules: Ruleset,
    options: _BotOptions,
    isolation: str | None,
    require: str | None,
) -> tuple[Isolation, tuple[BotSpec, ...]]:
    """Select the isolation, and return it with what is needed to start each bot. Copy and build the bots if needed.

    `isolation` and `require` are the options. Raises UserError for wrong options or bots, also for a bot that does not
    play the ruleset.
    """
    for folder in filter(_is_path, texts):  # wrong bots must fail before a league is created
        manifest = load_manifest(Path(folder))
        if rules.name not in manifest.rulesets:
            raise UserError(f"{manifest.bot}: rulesets: the bot does not play {rules.name}")
    started = [text for number, text in enumerate(texts) if number != options.attach]
    folders = [Path(text) for text in started if _is_path(text)]
    names = [text for text in started if not _is_path(text)]
    under = select_isolation_for(
        parse_rung("--isolation", isolation),
        require,
        lambda: find_bots(folders, names, options.league, options.db),
    )
    workshop = workshop_at(options.league, under)
    specs = run_loop(_load_bots(texts, options, workshop, under))
    for spec in specs:
        if rules.name not in spec.rulesets:
            raise UserError(f"{spec.bot}: rulesets: the bot does not play {rules.name}")
    warn_if_not_full(under, isolation)
    return under, specs


async def _load_bots(
    texts: Sequence[str], options: _BotOptions, workshop: Workshop, isolation: Isolation
) -> tuple[BotSpec, ...]:
    """Return what is needed to start each bot. If the bots are kept, create the league if it does not exist.

    Raises StoreError if the game is to be kept and no game can be stored at the moment.
    """
    needs_league = options.keep or not all(map(_is_path, texts))
    has_league = options.keep or (needs_league and League.exists_at(options.league, options.db))
    opened = (
        League.open(options.league, create=options.keep, db=options.db)
        if has_league
        else nullcontext()
    )
    with opened as league:
        if league is not None and options.keep:
            league.check_writable()  # or else the game would be played and lost
        roster = None if league is None else Roster(league, workshop)
        specs = []
        for seat, text in enumerate(texts):
            if not _is_path(text):
                specs.append(await _find_version(text, roster, options))
            elif roster is not None and options.keep:
                specs.append((await roster.submit(Path(text), now_us=now_us())).spec)
            else:
                must_build = seat != options.attach
                specs.append(
                    await load_folder(
                        Path(text), workshop, isolation, options.ctx, build=must_build
                    )
                )
        return tuple(specs)


async def _find_version(text: str, roster: Roster | None, options: _BotOptions) -> BotSpec:
    """Return a bot of the league; `roster` is None if there is no league. Build its copy again if that is needed."""
    if roster is None:
        league = options.league if options.db is None else url_without_password(options.db)
        raise UserError(f"BOTS: {text!r} is no folder, and {league}: there is no league here")
    try:
        spec = roster.active_spec(text)
    except NotFoundError as error:
        raise UserError(f"BOTS: {text!r} is no folder, and {error}") from error
    await roster.refresh(spec.bot)
    return spec


def _is_path(text: str) -> bool:
    # `Path("")` is the current folder
    return "/" in text or text.startswith(".") or (text != "" and toml_file.is_folder(Path(text)))


def _make_watcher(specs: Sequence[BotSpec], position: Position | None) -> Watcher:
    """Print the table of the `position`, if there is one. Return a function that prints every move."""
    names = name_seats([spec.bot for spec in specs])
    narrator = Narrator(names)
    if position is not None:
        for event in position.events:
            narrator.line(event)  # only counts the turns: these lines are not printed
        console.print(table_view(position.game, names))

    def watch(
        _decision: Decision, move: Move, events: tuple[Event, ...], faults: tuple[Fault, ...]
    ) -> None:
        for line in narrator.move(move, events, faults):
            console.print(line)

    return watch
