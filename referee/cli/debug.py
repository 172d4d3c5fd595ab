"""`referee bots debug`: send the requests of a stored game to a bot again, and compare its replies with the stored ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from referee import toml_file
from referee.bots import BotSpec
from referee.bots.logs import LogSettings
from referee.bots.manifest import load_manifest
from referee.check import dropped_text, fault_text, kind_name
from referee.cli.interrupts import run_loop
from referee.cli.isolation import (
    IsolationOption,
    RequireOption,
    attach_launcher,
    load_folder,
    parse_rung,
    roster_of,
    select_isolation_for,
    warn_if_not_full,
    workshop_at,
)
from referee.cli.options import (
    DEFAULT_LEAGUE,
    UNSOUND,
    DbOption,
    LeagueOption,
    LogsOption,
    MessagesOption,
    choose_logs,
    console,
    is_move_number,
)
from referee.errors import BotFault, Forfeit, RefereeError, UserError, count_text
from referee.match.replay import Difference
from referee.records import BotId, GameRecord, Reply, Request, name_seats
from referee.reports.formats import duration, group_name, quoted, visible
from referee.reports.playthrough import Narrator, seat_view
from referee.roster import find_bot
from referee.roster.roster import Roster, StoredCopy
from referee.rules.actions import Action, DrawDisplay, Play, action_text
from referee.rules.ruleset import layer_name
from referee.sandbox.ladder import make_launcher
from referee.sandbox.launcher import Launcher
from referee.store import StoredBot
from referee.store.league import League
from referee.tournament.rerun import (
    DroppedMessage,
    Exchange,
    StoredSeat,
    find_stored_seat,
    rerun,
)

app = typer.Typer()
_INDENT = 10
"""The width of the column of labels, with the spaces after it. `playthrough` indents its lines by the same number."""


@app.command()
def debug(
    ctx: typer.Context,
    bot: Annotated[
        str,
        typer.Argument(
            metavar="BOT",
            help="The folder of a bot, or a bot of the league: name@version, or name for the version that played the game.",
        ),
    ],
    game: Annotated[
        str,
        typer.Argument(
            metavar="GAME[:MOVE]",
            help="The id of a stored game, such as demo-17. With demo-17:42, requests are sent up to the position after move 42.",
        ),
    ],
    seat: Annotated[
        int | None,
        typer.Option(
            "--seat",
            min=0,
            help="The number of the seat. By default the seat of the version that BOT names. If BOT names no version,"
            " or a version that did not play in the game, it is the seat of the bot with the same name.",
        ),
    ] = None,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    attach: Annotated[
        bool,
        typer.Option(
            "--attach",
            help="Do not start the bot: print address and token, and wait until you have started it, by hand or in a debugger.",
        ),
    ] = False,
    logs: LogsOption = None,
    messages: MessagesOption = False,
    isolation: IsolationOption = None,
    require: RequireOption = None,
) -> None:
    """Send the requests of a stored game to a bot again, and compare its replies with the stored ones.

    Requests are sent up to the first fault of the seat in the stored game, or up to MOVE if you name one. There are no
    time limits. The exit code is 1 if the bot has a fault now, and 0 otherwise.

    Example: referee bots debug my_bot demo-17
    """
    game_id, colon, move = game.partition(":")
    if colon and not is_move_number(move):
        raise UserError(f"{game}: {move!r} is not the number of a move")
    is_path = "/" in bot or (bot != "" and toml_file.is_folder(Path(bot)))
    folder = Path(bot) if is_path else None
    wanted = BotId(load_manifest(folder).name, "") if folder else BotId.parse(bot)
    with League.open(league, create=False, db=db) as store:
        record = store.record(game_id)
        moves = len(record.moves)
        if colon and int(move) > moves:
            raise UserError(
                f"{game}: {game_id} ends with move {moves}; choose a number from 0 to {moves}"
            )
        stored = find_stored_seat(store, record, _choose_seat(record, wanted, seat))
        found: Path | StoredBot = folder or _find_version(store, record, bot, stored.seat)
        settings = choose_logs(logs, messages=messages)

        def list_bots() -> Iterator[Path | StoredCopy]:
            if not attach:
                yield found if isinstance(found, Path) else roster_of(store).stored_copy(found)

        under = select_isolation_for(parse_rung("--isolation", isolation), require, list_bots)
        warn_if_not_full(under, isolation)
        launcher: Launcher = make_launcher(under)
        workshop = workshop_at(store.folder, under)
        if isinstance(found, StoredBot):
            roster = Roster(store, workshop)
            spec = roster.spec(found.bot)
            run_loop(roster.refresh(found.bot))
        else:
            spec = run_loop(load_folder(found, workshop, under, ctx, build=not attach))
    if attach:
        launcher = attach_launcher(spec, stored.seat)
    last_move = int(move) if colon else _first_fault(stored)
    try:
        view = run_loop(_run(stored, spec, launcher, last_move, settings))
    except Difference as difference:
        raise RefereeError(f"{game_id} is not correct: {difference}") from difference
    if view.faults:
        raise typer.Exit(UNSOUND)


def _choose_seat(record: GameRecord, bot: BotId, seat: int | None) -> int:
    """Return the seat whose requests are sent again.

    This is `seat` if it is given. Otherwise it is the seat of the version `bot`. If `bot` has no version, or this version
    did not play, it is the seat of the bot with the same name. Raises UserError if the game has no such seat, or several.
    """
    if seat is not None:
        if seat >= len(record.seating):
            last = len(record.seating) - 1
            raise UserError(f"--seat: {record.game_id} has the seats 0 to {last}")
        return seat
    named = [number for number, each in enumerate(record.seating) if each.name == bot.name]
    seats = [number for number in named if record.seating[number] == bot] or named
    if len(seats) != 1:
        bots = ", ".join(f"{number} {each}" for number, each in enumerate(record.seating))
        found = f"{bot.name} has several seats" if seats else f"no bot is called {bot.name}"
        raise UserError(f"{record.game_id}: {found}; choose a seat with --seat: {bots}")
    return seats[0]


def _find_version(league: League, record: GameRecord, bot: str, seat: int) -> StoredBot:
    """Return the version of a bot of the league that gets the requests.

    This is the version that `bot` names. If `bot` is only a name, it is the version that played on the seat. If
    another bot played there, it is the newest version of `bot` that is not retired.
    """
    own = record.seating[seat]
    return find_bot(league, str(own) if bot == own.name else bot)


def _first_fault(stored: StoredSeat) -> int:
    """Return the number of moves before the first fault of the seat. If it has no fault, return the number of all moves."""
    return min((fault.move for fault in stored.faults), default=len(stored.record.moves))


async def _run(
    stored: StoredSeat,
    spec: BotSpec,
    launcher: Launcher,
    last_move: int,
    logs: LogSettings | None,
) -> RerunView:
    """Run the bot and print each request with the bot's reply or fault."""
    own = stored.record.seating[stored.seat]
    console.print(
        Text(f"{spec.bot} gets the requests of seat {stored.seat}, which {own} played.", "bold")
    )
    if stored.seed is None:
        console.print(
            "The seed for the bot's random numbers is not stored, because the game belongs to no tournament; the bot gets 0."
        )
    view = RerunView(name_seats(stored.record.seating))
    try:
        async for step in rerun(stored, spec, launcher, last_move=last_move, logs=logs):
            for line in view.lines(step):
                console.print(line)
    except Forfeit as fault:
        view.faults += 1
        console.print(Text(visible(fault_text(fault)), "red"))
        if fault.evidence.stderr_tail:
            console.print(Text(quoted(fault.evidence.stderr_tail)), soft_wrap=True, end="")
    console.print(Text(view.summary(), "bold"))
    return view


class RerunView:
    """Shows a rerun, and counts its outcomes. The outcome of a request is the reply or the fault of the bot.

    Args:
        names: the names of the bots of the game, seat 0 first.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._narrator = Narrator(names)
        self._requests = 0
        self._dropped = 0
        """How many messages of the bot were dropped."""
        self._differences = 0
        """How many outcomes were not as stored."""
        self.faults = 0
        """How many faults the bot has had, illegal actions included."""

    def lines(self, step: Request | DroppedMessage | Exchange) -> Iterator[RenderableType]:
        """Yield the lines of a step of the rerun."""
        match step:
            case Request():
                yield from map(self._narrator.line, step.events)
                kind = kind_name(step.decision.kind)
                yield Text(f"request {step.number}, turn {step.view.turn}: {kind}", "bold cyan")
            case DroppedMessage(pending):
                hint = (
                    "a message came that belongs to no pending request, such as a reply with a wrong game_id or decision_id;"
                    f" the pending request has the decision_id {pending.number}"
                )
                yield _part("dropped", hint, "yellow")
            case Exchange():
                yield from self._exchange_lines(step)

    def _exchange_lines(self, exchange: Exchange) -> Iterator[RenderableType]:
        """Yield the lines after a request: the outcome, and what the bot has printed.

        The view and the legal actions are shown only if the bot has a fault, if the stored game has a fault here, or if
        the outcome is not as stored.
        """
        request = exchange.request
        is_fault = exchange.is_illegal or isinstance(exchange.outcome, BotFault)
        self._requests += 1
        self._dropped += exchange.dropped
        self._differences += not exchange.is_as_stored
        self.faults += is_fault
        if is_fault or exchange.stored_fault is not None or not exchange.is_as_stored:
            shown = seat_view(request.view, self._names)
            yield Padding(shown, (0, 0, 0, _INDENT), expand=False)
            yield _part("legal", ", ".join(map(_short_text, request.decision.legal)))
        style = "red" if is_fault else "" if exchange.is_as_stored else "yellow"
        is_reply = isinstance(exchange.outcome, Reply)
        yield _part("reply" if is_reply else "fault", _outcome_text(exchange), style)
        if not exchange.is_as_stored:
            yield _part("stored", _stored_text(exchange))
        if exchange.printed.strip():
            yield _part("printed", exchange.printed.rstrip("\n"))

    def summary(self) -> str:
        """Return the last line: how many requests were sent, and how many outcomes were not as stored.

        It also says how many messages were dropped, if any. If no request was sent, the line is `0 requests.`
        """
        if not self._requests:
            return "0 requests."
        differing = f"{self._differences} not as stored" if self._differences else "all as stored"
        dropped = f" {dropped_text(self._dropped)}." if self._dropped else ""
        return f"{count_text(self._requests, 'request')}: {differing}.{dropped}"


def _short_text(action: Action) -> str:
    """Return an action in few characters, for a list of many actions."""
    match action:
        case Play(layer):
            return layer_name(layer)
        case DrawDisplay(slot, cards):
            return f"slot {slot} ({group_name(cards)})"
    return action_text(action)


def _outcome_text(exchange: Exchange) -> str:
    outcome, as_stored = exchange.outcome, ", as stored" if exchange.is_as_stored else ""
    if isinstance(outcome, BotFault):
        return f"{fault_text(outcome)}{as_stored}"
    illegal = ", which is illegal," if exchange.is_illegal else ""
    time = duration(outcome.elapsed_us + outcome.lag_us)
    late = f" (the limit is {duration(exchange.request.time.limit_us)})" if outcome.lag_us else ""
    if exchange.is_late_as_stored and exchange.stored_fault is not None:
        as_stored = f", late as stored ({exchange.stored_fault.cause.value})"
    return f"{action_text(outcome.action)}{illegal} after {time}{late}{as_stored}"


def _stored_text(exchange: Exchange) -> str:
    move, fault = exchange.stored, exchange.stored_fault
    if fault is None:
        return f"{action_text(move.action)} after {duration(move.elapsed_us)}"
    return f"{fault.evidence.detail} ({fault.cause.value})"


def _part(label: str, text: str, style: str = "") -> Table:
    """Return a line with a label. A text of several lines, or a long one, stays right of the label."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=_INDENT - 2, no_wrap=True, justify="right")
    grid.add_column(overflow="fold")
    grid.add_row(Text(label, "dim"), Text(visible(text, lines=True), style))
    return grid
