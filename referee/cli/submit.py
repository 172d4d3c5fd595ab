"""`referee bots init`, `check` and `submit`: make a bot, check it, add it to a league."""

from __future__ import annotations

import getpass
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from referee import toml_file
from referee.bots.logs import LogSettings
from referee.bots.manifest import load_manifest
from referee.check import Report, Step
from referee.check.conformance import QUICK_STEPS, STEPS, check_bot, choose_steps
from referee.cli.interrupts import run_loop
from referee.cli.isolation import (
    IsolationOption,
    RequireOption,
    announce_fetch,
    now_us,
    parse_rung,
    select_isolation_for,
    warn_if_not_full,
    workshop_at,
)
from referee.cli.options import (
    DEFAULT_LEAGUE,
    UNSOUND,
    DbOption,
    JsonOption,
    LeagueOption,
    LogsOption,
    MessagesOption,
    choose_logs,
    console,
    notes,
    parse_path,
    write,
)
from referee.cli.playing import league_options
from referee.errors import UserError
from referee.reports.checks import CheckView, check_data, check_summary
from referee.reports.formats import json_text
from referee.roster.roster import LANGUAGES, Roster, check_path, create_bot
from referee.roster.workshop import Copy, Workshop
from referee.sandbox.folders import run_folder
from referee.store.league import League

app = typer.Typer()


@app.command()
def init(
    name: Annotated[str, typer.Argument(help="The name of the new bot and of its folder.")],
    language: Annotated[
        str, typer.Option("--language", help=f"One of {', '.join(LANGUAGES)}.")
    ] = "python",
    author: Annotated[
        str | None,
        typer.Option("--author", help="The author of the bot. By default your user name."),
    ] = None,
) -> None:
    """Create a new folder with a bot that is ready to be built and to play.

    Example: referee bots init my_bot --language go
    """
    if language not in LANGUAGES:
        languages = ", ".join(LANGUAGES)
        raise UserError(
            f"--language: unknown language {language!r}; choose one of {languages};"
            " section 5 of proto/README.md is about other languages"
        )
    folder = Path(name)
    create_bot(folder, name=name, language=language, author=author or _find_user())
    console.print(f"{name} is in {folder.resolve()}; read its README.md first.", soft_wrap=True)
    console.print(f"To check it: referee bots check {name}", soft_wrap=True)


def _find_user() -> str:
    """Return the name of the user. Raises UserError if the user has none, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # KeyError before Python 3.13
        raise UserError("--author: this user has no name; give --author") from None


@app.command()
def submit(
    path: Annotated[
        Path, typer.Argument(parser=parse_path, help="The folder of the bot.", metavar="PATH")
    ],
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    any_author: Annotated[
        bool,
        typer.Option(
            "--any-author", help="Submit the bot even if a bot of another author has this name."
        ),
    ] = False,
    isolation: IsolationOption = None,
    require: RequireOption = None,
) -> None:
    """Check a bot and copy it into the league.

    A folder with unchanged content keeps its version. Changed content becomes a new version with a rating of its
    own.

    Example: referee bots submit my_bot
    """
    # these raise for a wrong bot.toml or path before a league is created
    manifest = load_manifest(path)
    check_path(path)
    under = select_isolation_for(parse_rung("--isolation", isolation), require, lambda: [path])
    with League.open(league, create=True, db=db) as store:
        workshop = workshop_at(store.folder, under)
        roster = Roster(store, workshop)
        if not any_author:
            roster.check_author(manifest, path)
        warn_if_not_full(under, isolation)
        report = run_check(path, workshop, as_json=False, discard=roster.discard_unused)
        if report.copy is None or not report.ok:
            if report.copy is not None:
                roster.discard_unused(report.copy)
            console.print("The bot was not submitted.")
            raise typer.Exit(UNSOUND)
        entry = roster.add_copy(report.copy, path, now_us=now_us(), any_author=any_author)
        bot = entry.spec.bot
        store.mark_checked(bot, report=json_text(check_data(report)), at_us=now_us())
    note = "" if entry.is_new else ", as it was before"
    console.print(f"{bot} is in the league {store.where}{note}.", soft_wrap=True)
    options = league_options(store.folder, store.db)
    command = shlex.join(["referee", "bots", "challenge", str(bot), *options])
    console.print(f"To rate it (games of `referee play` are not rated): {command}", soft_wrap=True)


@app.command()
def check(
    path: Annotated[
        Path, typer.Argument(parser=parse_path, help="The folder of the bot.", metavar="PATH")
    ],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help='Run only the steps up to the decisions of each ruleset, and the step "goodbye".',
        ),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="STEP",
            help='Run only the steps whose names begin with STEP, such as "decisions: duel", and the steps that they need. Can be repeated.',
        ),
    ] = None,
    as_json: JsonOption = False,
    isolation: IsolationOption = None,
    require: RequireOption = None,
    logs: LogsOption = None,
    messages: MessagesOption = False,
) -> None:
    """Build a bot, play with it, and report step by step what is right and what is not.

    The command writes nothing into the folder and needs no league. The exit code is 0 if no step failed, and 1 if a step failed.

    Example: referee bots check my_bot
    """
    chosen = _choose_steps(only or (), quick=quick)
    if not toml_file.is_folder(path):
        raise UserError(f"{path}: {toml_file.explain_no_folder(path)}")
    under = select_isolation_for(parse_rung("--isolation", isolation), require, lambda: [path])
    warn_if_not_full(under, isolation)
    log_settings = choose_logs(logs, messages=messages)
    with run_folder() as folder:
        workshop = workshop_at(folder, under, on_build=announce_fetch)
        report = run_check(path, workshop, as_json=as_json, logs=log_settings, chosen=chosen)
    if not report.ok:
        raise typer.Exit(UNSOUND)


def _choose_steps(only: Sequence[str], *, quick: bool) -> Collection[str]:
    """Return the names of the steps that the options choose."""
    if only and quick:
        raise UserError("--quick, --only: choose one of them")
    try:
        return QUICK_STEPS if quick else choose_steps(only) if only else STEPS
    except UserError as error:
        raise UserError(f"--only: {error}") from error


def run_check(
    path: Path,
    workshop: Workshop,
    *,
    as_json: bool,
    logs: LogSettings | None = None,
    chosen: Collection[str] = STEPS,
    discard: Callable[[Copy], None] = lambda _: None,
) -> Report:
    """Check the bot in the folder `path`. Print and return the report. For `logs`, `chosen` and `discard` see `check_bot`.

    As text, each step is printed when it is done. As JSON, the report is printed after the last step.
    """
    report = run_loop(_check(path, workshop, logs, chosen, discard, quiet=as_json))
    if as_json:
        write(json_text(check_data(report)))
    else:
        console.print(check_summary(report))
    return report


async def _check(
    path: Path,
    workshop: Workshop,
    logs: LogSettings | None,
    chosen: Collection[str],
    discard: Callable[[Copy], None],
    *,
    quiet: bool,
) -> Report:
    view = CheckView()
    with notes.status("") as status:

        def begin(number: int, name: str) -> None:
            status.update(f"{number} {name}")

        def done(step: Step) -> None:
            if not quiet:
                show(view.add(step))

        def show(lines: Iterable[RenderableType]) -> None:
            # the status line (standard error) and the steps (standard output) may be on the same terminal
            status.stop()
            for line in lines:
                console.print(line)
            status.start()

        report = await check_bot(
            path,
            workshop,
            on_begin=begin,
            on_step=done,
            logs=logs,
            chosen=chosen,
            discard=discard,
        )
        show(view.finish())
        return report
