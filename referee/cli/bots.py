"""`referee bots`: the bots of a league, from a new folder to the stderr of their last faults.

`referee bots check`: whether a bot does all that a bot must.
"""

from __future__ import annotations

import getpass
import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.text import Text

from referee import toml_file
from referee.bots.manifest import load_manifest
from referee.check import Report, Step
from referee.check import check as check_bot
from referee.cli.lookup import Choice, current_ratings, now_us, roster_of, workshop_at
from referee.cli.options import (
    DEFAULT_LEAGUE,
    UNSOUND,
    CsvOption,
    DbOption,
    IsolationOption,
    JsonOption,
    LeagueOption,
    NetworkOption,
    RequireOption,
    check_format,
    console,
    notes,
    settled,
    show_rows,
    warn,
    write,
)
from referee.errors import UserError
from referee.reports.bot_rows import (
    BotRow,
    FaultRow,
    LogRow,
    UsageRow,
    bot_rows,
    fault_rows,
    log_rows,
    log_text,
    usage_row,
)
from referee.reports.checks import check_data, check_lines, check_summary, step_view
from referee.reports.formats import json_text, visible
from referee.reports.rating_rows import RatingRow
from referee.reports.terminal import RowsTable, card
from referee.roster import Roster, Workshop, roster
from referee.sandbox.folders import run_folder
from referee.sandbox.ladder import make_launcher
from referee.store import League

app = typer.Typer(help="Make, check, submit and look at bots.", no_args_is_help=True)
BotArgument = Annotated[
    str, typer.Argument(help="A bot of the league: name, or name@version.", metavar="BOT")
]


@app.command()
def init(
    name: Annotated[str, typer.Argument(help="The new bot's name; its folder is called so too.")],
    language: Annotated[
        str, typer.Option("--language", help=f"{', '.join(roster.LANGUAGES)}.")
    ] = "python",
    author: Annotated[
        str | None, typer.Option("--author", help="Whose it is; by default the user's name.")
    ] = None,
) -> None:
    """Write a new bot into a folder here: it builds and plays, and waits for your ideas.

    Example: referee bots init my_bot --language go
    """
    if language not in roster.LANGUAGES:
        there = ", ".join(roster.LANGUAGES)
        raise UserError(f"--language: unknown language {language!r}; there are {there}")
    folder = Path(name)
    roster.make(folder, name=name, language=language, author=author or getpass.getuser())
    console.print(f"{name} is in {folder.resolve()}; begin with its README.md.", soft_wrap=True)
    console.print(f"To see whether it is all right: referee bots check {name}", soft_wrap=True)


@app.command()
def submit(
    path: Annotated[Path, typer.Argument(help="The folder of the bot.", metavar="PATH")],
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    any_author: Annotated[
        bool,
        typer.Option("--any-author", help="Also where the league has another's bot of that name."),
    ] = False,
    isolation: IsolationOption = None,
    require: RequireOption = None,
    network: NetworkOption = False,
) -> None:
    """Check a bot and bring it into the league, as it is now.

    The same content is the same version; changed content is a new one, with a rating of its own.

    Example: referee bots submit my_bot
    """
    load_manifest(path)  # before a league is made
    under = settled(isolation, require)
    with League.open(league, create=True, db=db) as store:
        workshop = workshop_at(store.folder, make_launcher(under), network=network)
        roster = Roster(store, workshop)
        if not any_author:
            roster.check_author(path)
        warn(under, isolation)
        report = run_check(path, workshop, as_json=False)
        if report.copy is None or not report.ok:
            if report.copy is not None and not roster.knows(report.copy):
                workshop.discard(report.copy)
            console.print("It was not submitted.")
            raise typer.Exit(UNSOUND)
        entry = roster.admit(report.copy, path, now_us=now_us())
        bot = entry.spec.bot
        store.mark_checked(bot, report=json_text(check_data(report)), at_us=now_us())
    known = "" if entry.is_new else ", as it was before"
    console.print(f"{bot} is in the league {store.where}{known}.", soft_wrap=True)


@app.command("list")
def list_bots(
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    retired: Annotated[
        bool, typer.Option("--retired", help="Also those that play no more.")
    ] = False,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """List the versions of all bots that the league knows.

    Example: referee bots list
    """
    with League.open(league, create=False, db=db) as store:
        rows = [row for row in _rows(store) if retired or row.retired_at_us is None]
    show_rows(BotRow, rows, title="bots", as_json=as_json, as_csv=as_csv)


@app.command()
def show(
    bot: BotArgument,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a version of a bot: where it came from, its check, ratings, faults, CPU time and memory.

    Example: referee bots show greedy
    """
    with League.open(league, create=False, db=db) as store:
        found = roster_of(store).look_up(bot)
        name = str(found.bot)
        rows = _rows(store)
        ratings = [row for row in current_ratings(store, Choice()) if row.bot == name]
        faults = fault_rows(fault for fault in store.faults() if fault.bot == name)
        usage = _usage(store, name)
    (own,) = (row for row in rows if row.bot == name)
    versions = [row.bot for row in rows if row.bot.partition("@")[0] == found.name]
    if as_json:
        write(
            json_text(
                {
                    "bot": own,
                    "versions": versions,
                    "check": json.loads(found.check_report) if found.check_report else None,
                    "ratings": ratings,
                    "faults": faults,
                    "usage": usage,
                }
            )
        )
        return
    console.print(card(own))
    console.print(Text(visible(f"versions: {', '.join(versions)}")), soft_wrap=True)
    if found.check_report:
        console.print(check_lines(json.loads(found.check_report)))
    if ratings:
        console.print(RowsTable(RatingRow, ratings, "ratings"))
    if faults:
        console.print(RowsTable(FaultRow, faults, "faults"))
    if usage is not None:
        console.print(card(usage))


@app.command()
def log(
    bot: BotArgument,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="At most so many faults, the last ones.")
    ] = 5,
    build: Annotated[
        bool, typer.Option("--build", help="What the build printed, in place of faults.")
    ] = False,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show the last faults of a bot with what it had written to standard error.

    By name alone, those of all its versions.

    Example: referee bots log greedy --limit 1
    """
    check_format(as_json=as_json, as_csv=as_csv)
    with League.open(league, create=False, db=db) as store:
        found = roster_of(store).look_up(bot)
        if build:
            write(visible(roster_of(store).build_log(found.bot), lines=True))
            return
        faults = [fault for fault in store.faults() if _is_of(fault.bot, bot)]
    rows = log_rows(faults[-limit:])
    if as_json or as_csv:
        show_rows(LogRow, rows, title="", as_json=as_json, as_csv=as_csv)
    else:
        console.print(log_text(rows) if rows else f"No faults of {bot}.", soft_wrap=True)


@app.command()
def retire(bot: BotArgument, league: LeagueOption = DEFAULT_LEAGUE, db: DbOption = None) -> None:
    """Let a version of a bot play no more new tournaments; its games and ratings stay.

    To let it play again, submit it again.

    Example: referee bots retire greedy@1.0
    """
    with League.open(league, create=False, db=db) as store:
        found = roster_of(store).find(bot)
        store.mark_retired(found.bot, at_us=now_us())
    console.print(f"{found.bot} is retired.", soft_wrap=True)


def _rows(store: League) -> tuple[BotRow, ...]:
    return bot_rows(store.bots(), store.results(free=True), store.faults())


def _usage(store: League, bot: str) -> UsageRow | None:
    return next((usage_row(row) for row in store.usage() if row.bot == bot), None)


def _is_of(bot: str, wanted: str) -> bool:
    return wanted in (bot, bot.partition("@")[0])


@app.command()
def check(
    path: Annotated[Path, typer.Argument(help="The folder of the bot.", metavar="PATH")],
    as_json: JsonOption = False,
    isolation: IsolationOption = None,
    require: RequireOption = None,
    network: NetworkOption = False,
) -> None:
    """Build a bot, start it, play with it, and say what is right and what is not.

    Nothing is written into its folder, and no league is needed. Exits with 0 if no step failed.

    Example: referee bots check my_bot
    """
    if not toml_file.is_folder(path):
        raise UserError(f"{path}: no such folder")
    under = settled(isolation, require)
    warn(under, isolation)
    with (
        run_folder() as parent,
        tempfile.TemporaryDirectory(dir=parent, ignore_cleanup_errors=True) as folder,
    ):
        workshop = Workshop(
            Path(folder), make_launcher(under), on_build=lambda _: None, network=network
        )
        report = run_check(path, workshop, as_json=as_json)
    if not report.ok:
        raise typer.Exit(UNSOUND)


def run_check(path: Path, workshop: Workshop, *, as_json: bool) -> Report:
    """Check the bot of a folder and print what is found, each step when it is done."""
    report = uvloop.run(_check(path, workshop, quiet=as_json))
    if as_json:
        write(json_text(check_data(report)))
    else:
        console.print(check_summary(report))
    return report


async def _check(path: Path, workshop: Workshop, *, quiet: bool) -> Report:
    with (notes if quiet else console).status("") as status:

        def begin(number: int, name: str) -> None:
            status.update(f"{number} {name}")

        def done(step: Step) -> None:
            if not quiet:
                console.print(step_view(step))

        return await check_bot(path, workshop, on_begin=begin, on_step=done)
