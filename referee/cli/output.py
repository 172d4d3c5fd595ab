"""Where commands print: tables for people, JSON and CSV for programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console

from referee.errors import UserError
from referee.reports import RowsTable, csv_text, json_text

console = Console(highlight=False)


def show_rows(
    row_type: type, rows: Sequence[object], *, title: str, as_json: bool, as_csv: bool
) -> None:
    """Print rows as a table, or as JSON or CSV where asked. Raises UserError when both are."""
    if as_json and as_csv:
        raise UserError("--json, --csv: choose one of them")
    if as_json:
        write(json_text(rows))
    elif as_csv:
        write(csv_text(row_type, rows))
    else:
        console.print(RowsTable(row_type, rows, title))


def write(text: str) -> None:
    """Print text as it is: no wrapping, no colours."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
