"""Where commands print: tables for people, JSON and CSV for programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from rich.console import Console

from referee.errors import UserError
from referee.reports import RowsTable, csv_text, json_text


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
