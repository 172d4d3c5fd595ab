"""Where commands print: tables for people, JSON and CSV for programs.

Options that several commands share, and the exit codes.

What bots run under: the options for it, how it is settled, and what is said of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.console import Console

from referee.errors import UserError
from referee.reports.formats import csv_text, json_text
from referee.reports.terminal import RowsTable
from referee.sandbox.ladder import select_isolation
from referee.sandbox.rungs import Isolation, Rung
from referee.store import League, shown_url


class Output(Console):
    """Standard output, which falls silent when nobody reads it any more."""

    def on_broken_pipe(self) -> None:
        """Go on without a word: what is going on may be worth more than its being watched."""
        self.quiet = True
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, sys.stdout.fileno())
        os.close(silence)


console = Output(highlight=False)
notes = Console(stderr=True, highlight=False)
"""For what is no result: that something is going on."""


def show_rows(
    row_type: type, rows: Sequence[object], *, title: str, as_json: bool, as_csv: bool
) -> None:
    """Print rows as a table, or as JSON or CSV where asked. Raises UserError when both are."""
    check_format(as_json=as_json, as_csv=as_csv)
    if as_json:
        write(json_text(rows))
    elif as_csv:
        write(csv_text(row_type, rows))
    else:
        console.print(RowsTable(row_type, rows, title))


def check_format(*, as_json: bool, as_csv: bool) -> None:
    """Raise UserError where two formats are asked for."""
    if as_json and as_csv:
        raise UserError("--json, --csv: choose one of them")


def write(text: str) -> None:
    """Print text as it is: no wrapping, no colours."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


UNSOUND = 1
"""Something is not right: a record does not check, a run cannot go on."""
USER_ERROR = 2
"""Bad input; nothing was changed."""
INTERRUPTED = 130
"""Interrupted; what was finished is stored, and the run can be resumed."""

LeagueOption = Annotated[
    Path,
    typer.Option("--league", envvar="REFEREE_LEAGUE", help="The folder where all games are kept."),
]
DB_VARIABLE = "REFEREE_DB"
DbOption = Annotated[
    str | None,
    typer.Option(
        "--db",
        envvar=DB_VARIABLE,
        metavar="URL",
        help="The league's database, where it is not a file of that folder:"
        " postgresql+psycopg://USER@HOST/DATABASE or sqlite:///FILE.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV, for spreadsheets.")]
TournamentArgument = Annotated[str, typer.Argument(help="The tournament's name.")]

TournamentOption = Annotated[
    str | None,
    typer.Option("--tournament", help="Only games of this tournament; by default, of all."),
]
RulesetOption = Annotated[
    str | None, typer.Option("--ruleset", help="Only this ruleset; by default, all.")
]
SeatsOption = Annotated[
    int | None, typer.Option("--seats", min=2, max=5, help="Only tables of this size.")
]

DEFAULT_LEAGUE = Path("league")


def league_options(store: League) -> list[str]:
    """The options that name a league in a command to be typed; a password is to be filled in.

    What the environment says of the database it will say again.
    """
    words = ["--league", str(store.folder)]
    known = os.environ.get(DB_VARIABLE)
    if store.db is not None and not (known and shown_url(known) == store.db):
        words += ["--db", store.db]
    return words


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
        select_isolation(
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
