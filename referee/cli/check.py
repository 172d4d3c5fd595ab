"""`referee bots check`: whether a bot does all that a bot must."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from referee import toml_file
from referee.bots.isolation import launcher
from referee.bots.run_folder import run_folder
from referee.check import Report, Step
from referee.check import check as check_bot
from referee.cli.isolation import IsolationOption, NetworkOption, RequireOption, settled, warn
from referee.cli.options import UNSOUND, JsonOption
from referee.cli.output import console, notes, write
from referee.errors import UserError
from referee.reports import json_text
from referee.reports.check import check_data, check_summary, step_view
from referee.roster import Workshop


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
        workshop = Workshop(Path(folder), launcher(under), on_build=lambda _: None, network=network)
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
