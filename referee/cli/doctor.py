"""`referee doctor`: what this machine protects bots from, and everybody else from bots."""

from __future__ import annotations

import uvloop

from referee.bots.isolation import settle
from referee.cli.options import JsonOption
from referee.cli.output import console, write
from referee.reports import ProtectionRow, RefusalRow, RowsTable, json_text
from referee.reports.isolation import protection_rows, refusal_rows


def doctor(as_json: JsonOption = False) -> None:
    """Try what bots are kept from on this machine, and say what to install for more.

    Example: referee doctor --json
    """
    isolation = uvloop.run(settle())
    rows, refusals = protection_rows(isolation), refusal_rows(isolation)
    if as_json:
        write(json_text({"rung": isolation.rung, "protections": rows, "higher_rungs": refusals}))
        return
    console.print(RowsTable(ProtectionRow, rows, f"isolation: {isolation.rung.value}"))
    if refusals:
        console.print(RowsTable(RefusalRow, refusals, "what keeps it from more"))
