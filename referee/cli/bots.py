"""`referee bots list`, `show`, `log`, `retire` and `schema`: the bots of a league, their faults, and the schema of bot.toml."""

from __future__ import annotations

import json
import shlex
import time
from contextlib import suppress
from typing import Annotated

import typer
from rich.text import Text

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
    show_table,
    write,
)
from referee.errors import UserError, count_text
from referee.reports.bot_rows import (
    BATCH_GAMES,
    BatchRow,
    BotRow,
    FaultRow,
    LogRow,
    batch_rows,
    bot_rows,
    fault_rows,
    log_rows,
    log_text,
    usage_row,
)
from referee.reports.formats import json_text, visible
from referee.reports.terminal import card
from referee.roster import PERSON, find_bot, look_up_bot
from referee.store import GameChoice, StoredBot
from referee.store.league import League

app = typer.Typer()
LOG_FAULTS = 5
"""The default of `bots log --limit`."""
BotArgument = Annotated[
    str,
    typer.Argument(help="A bot of the league: name or name@version.", metavar="BOT"),
]


@app.command("list")
def list_bots(
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    retired: Annotated[bool, typer.Option("--retired", help="List retired versions too.")] = False,
    wide: WideOption = False,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """List the versions of all bots in the league, without retired versions.

    Example: referee bots list
    """
    printer = RowsPrinter(BotRow, as_json=as_json, as_csv=as_csv, wide=wide, columns=columns)
    with League.open(league, create=False, db=db) as store:
        rows = [row for row in _rows(store) if retired or row.retired_at_us is None]
    keep = ("retired_at_us",) if retired else ()
    printer.show(rows, "bots", keep=keep)


@app.command()
def show(
    bot: BotArgument,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show a version of a bot: its source folder, command, check, ratings, faults, CPU time, memory and batches.

    A name without a version means the newest version that is not retired. If all versions are retired, it means
    the newest one.

    Example: referee bots show greedy
    """
    from referee.reports.checks import check_lines  # noqa: PLC0415
    from referee.reports.rating_rows import RatingRow  # noqa: PLC0415
    from referee.reports.selection import GameFilter, current_ratings  # noqa: PLC0415 - loads scipy

    with League.open(league, create=False, db=db) as store:
        found = look_up_bot(store, bot)
        name = str(found.bot)
        rows = _rows(store)
        ratings = [row for row in current_ratings(store, GameFilter()).rows if row.bot == name]
        faults = fault_rows(store.fault_counts(bot=name))
        usage = next((usage_row(row) for row in store.usage() if row.bot == name), None)
        newest, _ = store.find_games(GameChoice(bot=name), offset=0, limit=BATCH_GAMES)
        batches = batch_rows((store.record(game.summary.game_id) for game in newest), name)
        command = _command(store, found)
    (own,) = (row for row in rows if row.bot == name)
    versions = [row.bot for row in rows if row.bot.partition("@")[0] == found.name]
    if as_json:
        write(
            json_text(
                {
                    "bot": own,
                    "versions": versions,
                    "command": command,
                    "check": json.loads(found.check_report) if found.check_report else None,
                    "ratings": ratings,
                    "faults": faults,
                    "usage": usage,
                    "batches": batches,
                }
            )
        )
        return
    console.print(card(own))
    console.print(Text(visible(f"versions: {', '.join(versions)}")), soft_wrap=True)
    if command is not None:
        console.print(Text(visible(f"command: {shlex.join(command)}")), soft_wrap=True)
    if found.check_report:
        console.print(check_lines(json.loads(found.check_report)))
    if ratings:
        show_table(RatingRow, ratings, "ratings", wide=wide)
    if faults:
        show_table(FaultRow, faults, "faults", wide=wide)
    if usage is not None:
        console.print(card(usage))
    if batches:
        title = f"requests in a message, in the newest {count_text(len(newest), 'game')}"
        show_table(BatchRow, batches, title, wide=wide)


def _command(store: League, bot: StoredBot) -> tuple[str, ...] | None:
    """Return the program of a bot with its arguments; None for a person, or if the league's copy of the bot is gone."""
    from referee.cli.isolation import roster_of  # noqa: PLC0415 - loads gRPC

    with suppress(UserError):
        return roster_of(store).manifest(bot.bot).run.command
    return None


@app.command()
def log(
    bot: BotArgument,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=1,
            help=f"The maximum number of faults. The newest ones are shown. By default {LOG_FAULTS}.",
        ),
    ] = None,
    build: Annotated[
        bool, typer.Option("--build", help="Show the output of the bot's build instead of faults.")
    ] = False,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show the last faults of a bot, each with the end of the bot's standard error.

    A name without a version shows the faults of all versions.

    Example: referee bots log greedy --limit 1
    """
    printer = RowsPrinter(LogRow, as_json=as_json, as_csv=as_csv)
    for option, given in (("--json", as_json), ("--csv", as_csv), ("--limit", limit is not None)):
        if build and given:
            raise UserError(f"--build, {option}: choose one of them")
    with League.open(league, create=False, db=db) as store:
        found = look_up_bot(store, bot)
        if build:
            from referee.cli.isolation import roster_of  # noqa: PLC0415 - loads the sandbox

            roster = roster_of(store)
            roster.stored_copy(found)  # raises UserError for a person or a missing copy
            output = visible(roster.build_log(found.bot), lines=True)
            write(
                output
                if output.strip()
                else f"{found.bot} has no build output: it needs no build, or its build printed nothing."
            )
            return
        rows = log_rows(store.faults(bot=bot, limit=limit or LOG_FAULTS))
    if as_json or as_csv:
        printer.show(rows, "")
    else:
        console.print(log_text(rows) if rows else f"No faults of {bot}.", soft_wrap=True)


@app.command()
def retire(bot: BotArgument, league: LeagueOption = DEFAULT_LEAGUE, db: DbOption = None) -> None:
    """Retire a version of a bot: the version plays in no new tournament, but its games and ratings stay.

    A name without a version means the newest version that is not retired. To use a retired version again, submit
    the same folder again. A variant cannot be submitted: give it another name in the tournament file.

    Example: referee bots retire greedy@1.0
    """
    with League.open(league, create=False, db=db) as store:
        found = find_bot(store, bot)
        if found.language == PERSON:
            raise UserError(f"{found.bot} is a person, not a bot")
        store.mark_retired(found.bot, at_us=time.time_ns() // 1000)
    console.print(f"{found.bot} is retired.", soft_wrap=True)


@app.command()
def schema() -> None:
    """Print the JSON Schema of bot.toml, with which an editor completes and checks the file.

    Example: referee bots schema > bot.schema.json
    """
    from referee.bots.manifest import Manifest  # noqa: PLC0415 - for this command only
    from referee.toml_file import json_schema  # noqa: PLC0415

    write(json_text(json_schema(Manifest)))


def _rows(store: League) -> tuple[BotRow, ...]:
    return bot_rows(store.bots(), store.game_counts(), store.fault_counts())
