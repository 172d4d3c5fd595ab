"""Make records whose replays have everything: all kinds of events, faults, and texts from strangers."""

from __future__ import annotations

from dataclasses import replace

from referee.errors import Evidence
from referee.records import BotId, GameRecord

HOSTILE = '</script><script>alert(1)</script>"\u202e\x1b[31m\u2028\u2029 é 🃏 ' + 50 * "long name "
"""A text that would end a script, start another one, turn the direction of writing, or colour a terminal."""


def hostile(record: GameRecord) -> GameRecord:
    """Return the record with hostile names and details."""
    return replace(
        record,
        seating=tuple(BotId(f"{seat}{HOSTILE}", "1") for seat in range(len(record.seating))),
        faults=tuple(
            replace(fault, evidence=Evidence(detail=HOSTILE, stderr_tail=f"{HOSTILE}\nsecond line"))
            for fault in record.faults
        ),
    )
