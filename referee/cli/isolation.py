"""`referee doctor`, and functions for all commands that start bots: select the isolation, and build bots."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.console import Console

from referee.bots.manifest import Manifest
from referee.cli.options import JsonOption, console, notes, write
from referee.errors import UserError
from referee.reports.checks import ProtectionRow, RefusalRow, protection_rows, refusal_rows
from referee.reports.formats import json_text
from referee.reports.terminal import RowsTable
from referee.roster.roster import Roster
from referee.roster.workshop import Workshop
from referee.sandbox.ladder import select_isolation
from referee.sandbox.launcher import Launcher
from referee.sandbox.rungs import Isolation, Rung
from referee.store.league import League

app = typer.Typer()

_RUNGS = ", ".join(rung.value for rung in Rung)

IsolationOption = Annotated[
    str | None,
    typer.Option(
        "--isolation",
        envvar="REFEREE_ISOLATION",
        metavar="RUNG",
        help=f"The isolation of bots: {_RUNGS}. By default the strongest that this machine gives.",
    ),
]
RequireOption = Annotated[
    str | None,
    typer.Option(
        "--require-isolation",
        metavar="RUNG",
        help="Start no bots if the isolation is weaker than this rung.",
    ),
]
NetworkOption = Annotated[
    bool,
    typer.Option("--allow-network", help="Let builds use the network, for downloads."),
]


def select_isolation_for(wanted: str | Rung | None, required: str | None) -> Isolation:
    """Select the isolation of the bots that a command starts.

    This function prints nothing. The caller must call `announce_isolation` or `warn_if_not_full` before a bot starts.

    Args:
        wanted: the rung from the option or the tournament file; None for the strongest rung of this machine.
        required: the weakest rung that the user accepts; None for any.

    Raises UserError if the name of a rung is unknown, if this machine does not give the rung `wanted`, or if the
    selected rung is weaker than `required`.
    """
    return uvloop.run(
        select_isolation(
            wanted if isinstance(wanted, Rung) else _rung("--isolation", wanted),
            _rung("--require-isolation", required),
        )
    )


def announce_isolation(isolation: Isolation, console: Console) -> None:
    """Print one line with the isolation of the bots and the protections that are missing."""
    console.print(_description(isolation), soft_wrap=True)


def warn_if_not_full(isolation: Isolation, wanted: str | None) -> None:
    """If the user chose no rung (`wanted` is None) and the isolation is weaker than full, print a warning."""
    if wanted is None and isolation.rung is not Rung.FULL:
        announce_isolation(isolation, notes)


def _rung(option: str, name: str | None) -> Rung | None:
    try:
        return None if name is None else Rung(name)
    except ValueError:
        raise UserError(f"{option}: unknown rung {name!r}; choose one of {_RUNGS}") from None


def _description(isolation: Isolation) -> str:
    if isolation.rung is Rung.NONE:
        return (
            "Bots run without isolation, with your rights: play only with bots that you trust."
            + (" How to change that: referee doctor" if isolation.refusals else "")
        )
    hint = "" if isolation.rung is Rung.FULL else " (referee doctor says why)"
    return f"Isolation of the bots: {isolation.summary}{hint}"


def workshop_at(
    folder: Path, launcher: Launcher | None = None, *, network: bool = False
) -> Workshop:
    """Return the workshop that copies and builds the bots of a league. The workshop prints a line for each build.

    Args:
        folder: the folder of the league.
        launcher: starts the builds; None if the caller builds no bot.
        network: True if builds may use the network.
    """
    return Workshop(folder, launcher, network=network, on_build=_announce)


def roster_of(league: League, launcher: Launcher | None = None, *, network: bool = False) -> Roster:
    """Return the roster of a league. See `workshop_at` for `launcher` and `network`."""
    return Roster(league, workshop_at(league.folder, launcher, network=network))


def now_us() -> int:
    """Return the time in microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1000


def _announce(manifest: Manifest) -> None:
    command = " ".join(manifest.build.command) if manifest.build else ""
    notes.print(f"Building {manifest.name}: {command}", soft_wrap=True)


@app.command()
def doctor(as_json: JsonOption = False) -> None:
    """Test the isolation of bots on this machine, and say what to install for a stronger one.

    Example: referee doctor --json
    """
    isolation = uvloop.run(select_isolation())
    rows, refusals = protection_rows(isolation), refusal_rows(isolation)
    if as_json:
        write(json_text({"rung": isolation.rung, "protections": rows, "higher_rungs": refusals}))
        return
    console.print(RowsTable(ProtectionRow, rows, f"isolation: {isolation.rung.value}"))
    if refusals:
        console.print(
            RowsTable(RefusalRow, refusals, "stronger rungs that this machine does not give")
        )
