"""What bots run under: the options for it, how it is settled, and what is said of it."""

from __future__ import annotations

from typing import Annotated

import typer
import uvloop
from rich.console import Console

from referee.bots.isolation import Isolation, Rung, settle
from referee.cli.output import notes
from referee.errors import UserError

_RUNGS = ", ".join(rung.value for rung in Rung)

IsolationOption = Annotated[
    str | None,
    typer.Option(
        "--isolation",
        envvar="REFEREE_ISOLATION",
        metavar="RUNG",
        help=f"What bots run under, {_RUNGS}; by default the strongest that there is.",
    ),
]
RequireOption = Annotated[
    str | None,
    typer.Option(
        "--require-isolation", metavar="RUNG", help="Refuse to start bots under less than this."
    ),
]
NetworkOption = Annotated[
    bool,
    typer.Option("--allow-network", help="Builds may use the network, to download what they need."),
]


def settled(wanted: str | Rung | None, required: str | None) -> Isolation:
    """The isolation that a command's bots run under. It has to be announced before they do.

    Raises UserError where it is unknown or cannot be had.
    """
    return uvloop.run(
        settle(
            wanted if isinstance(wanted, Rung) else _rung("--isolation", wanted),
            _rung("--require-isolation", required),
        )
    )


def announce(isolation: Isolation, console: Console) -> None:
    """Say what bots run under, and what that does not protect."""
    console.print(_words(isolation), soft_wrap=True)


def warn(isolation: Isolation, wanted: str | None) -> None:
    """Say so where it is less than everything, unasked."""
    if wanted is None and isolation.rung is not Rung.FULL:
        announce(isolation, notes)


def _rung(option: str, name: str | None) -> Rung | None:
    try:
        return None if name is None else Rung(name)
    except ValueError:
        raise UserError(f"{option}: unknown rung {name!r}; there are {_RUNGS}") from None


def _words(isolation: Isolation) -> str:
    if isolation.rung is Rung.NONE:
        return (
            "Bots run without isolation, with your rights: play only with bots that you trust."
            + (" How to change that: referee doctor" if isolation.refusals else "")
        )
    hint = "" if isolation.rung is Rung.FULL else " (referee doctor says why)"
    return f"Isolation of the bots: {isolation.words}{hint}"
