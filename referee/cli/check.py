"""`referee bots check`: whether a bot does all that a bot must."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import uvloop

from referee import toml_file
from referee.check import Report, Step
from referee.check import check as check_bot
from referee.cli.options import UNSOUND, JsonOption
from referee.cli.output import console, notes, write
from referee.errors import UserError
from referee.reports import json_text
from referee.reports.check import check_data, check_summary, step_view


def check(
    path: Annotated[Path, typer.Argument(help="The folder of the bot.", metavar="PATH")],
    as_json: JsonOption = False,
) -> None:
    """Build a bot, start it, play with it, and say what is right and what is not.

    Nothing is written into its folder, and no league is needed. Exits with 0 if no step failed.

    Example: referee bots check my_bot
    """
    if not toml_file.is_folder(path):
        raise UserError(f"{path}: no such folder")
    report = uvloop.run(run_check(path, quiet=as_json))
    if as_json:
        write(json_text(check_data(report)))
    else:
        console.print(check_summary(report))
    if not report.ok:
        raise typer.Exit(UNSOUND)


async def run_check(path: Path, *, quiet: bool) -> Report:
    """Check the bot of a folder; unless quiet, each step is printed when it is done."""
    with (notes if quiet else console).status("") as status:

        def begin(number: int, name: str) -> None:
            status.update(f"{number} {name}")

        def done(step: Step) -> None:
            if not quiet:
                console.print(step_view(step))

        return await check_bot(path, on_begin=begin, on_step=done)
