"""What bots did wrong, counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from referee.errors import Cause
from referee.reports.columns import Column
from referee.reports.inputs import ChargedFault


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """How often one thing went wrong with a bot."""

    bot: Annotated[str, Column("bot", wrap=True)]
    cause: Annotated[str, Column("cause")]
    """Its name in the list of faults, such as `timeout`."""
    strikes: Annotated[int, Column("strikes", right=True)]
    forfeits: Annotated[int, Column("forfeits", right=True)]
    games: Annotated[int, Column("games", right=True)]
    """Games in which it happened."""


def fault_rows(faults: Iterable[ChargedFault]) -> tuple[FaultRow, ...]:
    """Faults by bot, in the order of the alphabet, and cause, in the order of the list of faults."""
    by_kind = defaultdict[tuple[str, Cause], list[ChargedFault]](list)
    for fault in faults:
        by_kind[fault.bot, fault.cause].append(fault)
    order = list(Cause)
    return tuple(
        FaultRow(
            bot=bot,
            cause=cause.value,
            strikes=sum(not fault.forfeit for fault in by_kind[bot, cause]),
            forfeits=sum(fault.forfeit for fault in by_kind[bot, cause]),
            games=len({fault.game_id for fault in by_kind[bot, cause]}),
        )
        for bot, cause in sorted(by_kind, key=lambda kind: (kind[0], order.index(kind[1])))
    )
