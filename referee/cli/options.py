"""Print results, declare the options that several commands share, and define the exit codes.

`referee --help` imports this module too, so it must not load the store, gRPC or numpy.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from referee.errors import UserError
from referee.ratings.stopping import (
    CONFIDENCE,
    MARGIN,
    MAX_CONFIDENCE,
    MAX_MARGIN,
    MIN_CONFIDENCE,
)
from referee.reports.formats import csv_text, json_text


class Output(Console):
    """Standard output. If nobody can read it any more, all further output is discarded.

    This is so if the reader of a pipe closes it, and if the terminal is closed. Other errors of a write, such as those
    of a full disk, are raised.
    """

    def __exit__(self, *exc: object) -> None:
        """Write what was printed. Rich calls this method after each print and after each refresh of a live screen."""
        try:
            super().__exit__(*exc)
        except OSError as error:
            if error.errno != errno.EIO:  # the error of every write to a closed terminal
                raise
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Discard all further output. The command goes on, because a running tournament must still store its games."""
        self.quiet = True
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, sys.stdout.fileno())
        os.close(silence)


console = Output(highlight=False)
notes = Console(stderr=True, highlight=False)
"""Standard error, for progress and warnings."""


def show_rows(
    row_type: type,
    rows: Sequence[object],
    *,
    title: str,
    as_json: bool,
    as_csv: bool,
    notes: Iterable[str] = (),
) -> None:
    """Print rows as a table, as JSON or as CSV. Raises UserError if both `as_json` and `as_csv` are true.

    Args:
        row_type: the type of the rows.
        rows: the rows.
        title: the text above the table.
        as_json: print JSON.
        as_csv: print CSV.
        notes: sentences below the table. JSON and CSV do not have them.
    """
    check_format(as_json=as_json, as_csv=as_csv)
    if as_json:
        write(json_text(rows))
    elif as_csv:
        write(csv_text(row_type, rows))
    else:
        from referee.reports.terminal import RowsTable  # noqa: PLC0415 - not for `--help`

        console.print(RowsTable(row_type, rows, title))
        print_notes(notes)


def print_notes(notes: Iterable[str]) -> None:
    """Print the sentences below a table."""
    for note in notes:
        console.print(note, markup=False)


def check_format(*, as_json: bool, as_csv: bool) -> None:
    """Raise UserError if both `as_json` and `as_csv` are true."""
    if as_json and as_csv:
        raise UserError("--json, --csv: choose one of them")


def write(text: str) -> None:
    """Print a text without wrapping or colours."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


UNSOUND = 1
"""Exit code: a stored game is not correct, a bot failed its check, or a run cannot go on."""
NOT_KNOWN = 1
"""Exit code of `tournament compare`: no verdict after the last game."""
USER_ERROR = 2
"""Exit code: bad input; nothing was changed."""
INTERRUPTED = 130
"""Exit code: interrupted; finished games are stored, and the run can be resumed."""

LeagueOption = Annotated[
    Path,
    typer.Option(
        "--league",
        envvar="REFEREE_LEAGUE",
        help="The folder of the league, with its games and bots.",
    ),
]
DB_VARIABLE = "REFEREE_DB"
DbOption = Annotated[
    str | None,
    typer.Option(
        "--db",
        envvar=DB_VARIABLE,
        metavar="URL",
        help="The database of the league, if it is not the file in the league folder:"
        " postgresql+psycopg:///DB or sqlite:///FILE.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV.")]
TournamentArgument = Annotated[str, typer.Argument(help="The name of the tournament.")]

TournamentOption = Annotated[
    str | None,
    typer.Option("--tournament", help="Only games of this tournament."),
]
RulesetOption = Annotated[str | None, typer.Option("--ruleset", help="Only games of this ruleset.")]
SeatsOption = Annotated[
    int | None, typer.Option("--seats", min=2, max=5, help="Only games with this number of seats.")
]
ConfidenceOption = Annotated[
    float | None,
    typer.Option(
        "--confidence",
        min=MIN_CONFIDENCE,
        max=MAX_CONFIDENCE,
        help="The probability that all verdicts are right."
        f" Default: {CONFIDENCE}, or that of the tournament's `until`.",
    ),
]
MarginOption = Annotated[
    float | None,
    typer.Option(
        "--margin",
        min=0,
        max=MAX_MARGIN,
        help="Two bots are equal if their fits surely differ by less than this."
        f" Default: {MARGIN:g}, or that of the tournament's `until`.",
    ),
]

DEFAULT_LEAGUE = Path("league")
