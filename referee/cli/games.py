"""`referee game`: list, show and replay the games of a league. Also find a position of a stored game."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from referee.cli.options import (
    DEFAULT_LEAGUE,
    ColumnsOption,
    CsvOption,
    DbOption,
    JsonOption,
    LeagueOption,
    RowsPrinter,
    WideOption,
    console,
    is_move_number,
    show_table,
    write,
)
from referee.errors import Cause, RefereeError, UserError, did_you_mean
from referee.match.play import GameSetup
from referee.match.replay import Difference, make_game, replay_moves
from referee.records import BotId, GameRecord
from referee.reports.formats import json_text
from referee.reports.game_rows import (
    ChargeRow,
    GameRow,
    SeatRow,
    charge_rows,
    game_head,
    game_rows,
    record_json,
    seat_rows,
)
from referee.reports.terminal import card, stderr_tails
from referee.rules.actions import Action
from referee.rules.events import Event
from referee.rules.game import Game
from referee.rules.ruleset import Ruleset
from referee.store import GameChoice
from referee.store.league import League

app = typer.Typer()
TABLE_LIMIT = 20
"""Number of games that `game list` shows in a table if `--limit` is not given."""
GameArgument = Annotated[str, typer.Argument(help="The id of the game, such as demo-17.")]


@app.command("list")
def list_games(
    tournament: Annotated[
        str | None, typer.Option("--tournament", help="Only games of this tournament.")
    ] = None,
    bot: Annotated[
        str | None,
        typer.Option(
            "--bot", help="Only games of this bot: NAME (all its versions) or NAME@VERSION."
        ),
    ] = None,
    cause: Annotated[
        str | None,
        typer.Option("--fault", help="Only games with a fault of this cause, such as crash."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=1,
            help="The maximum number of games. The last ones are listed. By default 20 in a table, and all in JSON or CSV.",
        ),
    ] = None,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    wide: WideOption = False,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """List the games of the league in schedule order.

    Example: referee game list --tournament demo --fault crash
    """
    printer = RowsPrinter(GameRow, as_json=as_json, as_csv=as_csv, wide=wide, columns=columns)
    if cause is not None and cause not in {each.value for each in Cause}:
        causes = ", ".join(each.value for each in Cause)
        raise UserError(f"--fault: unknown fault {cause!r}; choose one of {causes}")
    with League.open(league, create=False, db=db) as store:
        if tournament is not None:
            store.check_tournament(tournament)
        if bot is not None:
            _check_bot(store, bot)
        if limit is None and not (as_json or as_csv):
            limit = TABLE_LIMIT
        choice = GameChoice(tournament=tournament, bot=bot, cause=cause)
        results, total = store.last_results(choice, limit=limit)
    rows = game_rows(results)
    title = "games" if len(rows) == total else f"the last {len(rows)} of {total} games"
    printer.show(rows, title)


def _check_bot(store: League, bot: str) -> None:
    """Raise UserError if `bot` is neither a name nor a `name@version` of the league."""
    versions = [row.bot for row in store.bots()]
    known = {each.name for each in versions} | {str(each) for each in versions}
    if bot in known:
        return
    name = BotId.parse(bot).name
    others = [str(each) for each in versions if each.name == name]
    others = others or list(dict.fromkeys(each.name for each in versions))
    there = f"there are {', '.join(others)}" if others else "there is none"
    similar = did_you_mean(bot, known)
    raise UserError(f"--bot: no bot {bot!r} in the league {store.where}{similar}; {there}")


@app.command()
def show(
    game_id: GameArgument,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show the result and the faults of a game; with --json the whole record.

    Example: referee game show demo-17 --json
    """
    record = load_record(game_id, league, db)
    if as_json:
        write(json_text(record_json(record)))
        return
    show_record(record, wide=wide)


@app.command()
def replay(
    game_id: GameArgument,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    tables: Annotated[
        bool, typer.Option("--tables", help="Draw the table before every turn.")
    ] = False,
) -> None:
    """Show a stored game move by move.

    Example: referee game replay demo-17 --tables
    """
    from referee.reports.playthrough import playthrough  # noqa: PLC0415 - for this command only

    try:
        for part in playthrough(load_record(game_id, league, db), tables=tables):
            console.print(part)
    except Difference as difference:
        raise RefereeError(f"{game_id} is not correct: {difference}") from difference


def show_record(record: GameRecord, *, wide: bool | None = None) -> None:
    """Print the result and the faults of a game. For each fault, print the end of the bot's standard error.

    For the meaning of `wide`, see `RowsPrinter`.
    """
    console.print(card(game_head(record)))
    show_table(SeatRow, seat_rows(record), wide=wide)
    charges = charge_rows(record)
    if charges:
        show_table(ChargeRow, charges, "faults", wide=wide)
        console.print(stderr_tails(charges), soft_wrap=True)


def load_record(game_id: str, league: Path, db: str | None) -> GameRecord:
    """Return a stored game. Raises NotFoundError if the league has no game with this id."""
    with League.open(league, create=False, db=db) as store:
        return store.record(game_id)


class Position(NamedTuple):
    """A position of a stored game."""

    ruleset: Ruleset
    deck: tuple[int, ...]
    opening: tuple[Action, ...]
    """The actions that lead to the position."""
    events: tuple[Event, ...]
    """The events of these actions, unredacted."""
    game: Game

    def apply(self, setup: GameSetup) -> GameSetup:
        """Return `setup` with the deck and the opening of the position.

        `setup` must already have the ruleset of the position.
        """
        return replace(setup, deck=self.deck, opening=self.opening)


def find_position(text: str, bots: int, league: Path, db: str | None) -> Position:
    """Return the position that `--from` names as `GAME:MOVE`.

    Raises UserError if the text is wrong, if the league has no such game, if no decision follows the move, or if the game
    has another number of seats than `bots`. Raises RefereeError if the record is not correct.
    """
    game_id, _, number = text.partition(":")
    if not is_move_number(number):
        raise UserError(f"--from: {text!r}: write GAME:MOVE, such as demo-17:42")
    record = load_record(game_id, league, db)
    if len(record.seating) != bots:
        raise UserError(f"BOTS: {game_id} has {len(record.seating)} seats, not {bots}")
    move = int(number)
    if move >= len(record.moves):
        last = len(record.moves) - 1
        raise UserError(
            f"--from: {game_id} ends with move {last + 1}; choose a number from 0 to {last}"
        )
    events: list[Event] = []
    try:
        game = make_game(record)
        for step in islice(replay_moves(record), move):
            game = step.game
            events += step.events
    except Difference as difference:
        raise RefereeError(f"{game_id} is not correct: {difference}") from difference
    return Position(record.ruleset, record.deck, record.actions[:move], tuple(events), game)
