"""What a machine protects from bots, as its owner wants to see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from referee.bots.isolation import Isolation
from referee.reports.columns import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionRow:
    """One protection."""

    protection: Annotated[str, Column("protection")]
    state: Annotated[str, Column("state")]
    """`on`, `partial` or `off`."""
    reason: Annotated[str, Column("reason", wrap=True)]
    """What was tried and what came of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalRow:
    """A rung of the isolation ladder that the machine does not give."""

    rung: Annotated[str, Column("rung")]
    reason: Annotated[str, Column("reason", wrap=True)]
    advice: Annotated[str, Column("to have it", wrap=True)]


def protection_rows(isolation: Isolation) -> tuple[ProtectionRow, ...]:
    """All protections, in their order."""
    return tuple(
        ProtectionRow(protection=each.protection.value, state=each.state.value, reason=each.reason)
        for each in isolation.findings
    )


def refusal_rows(isolation: Isolation) -> tuple[RefusalRow, ...]:
    """The rungs above the one that was taken, highest first."""
    return tuple(
        RefusalRow(rung=each.rung.value, reason=each.reason, advice=each.advice)
        for each in isolation.refusals
    )
