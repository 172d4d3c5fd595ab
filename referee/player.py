"""The seam between a game and whoever decides in it: one method.

`match` plays whole games over this seam; `bots` puts a process behind it, tests put a function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from referee.clocks import Budget
from referee.rules.actions import Action, Decision
from referee.rules.events import Event
from referee.rules.view import View


@dataclass(slots=True)
class Ask:
    """One decision put to one seat. All of it is already redacted for that seat."""

    number: int
    """Number of the decision in its game, from 1."""
    view: View
    decision: Decision
    news: tuple[Event, ...]
    """What happened since this seat was last asked in this game."""
    budget: Budget


@dataclass(slots=True)
class Answer:
    """What a player decided."""

    action: Action
    """May be illegal; the match checks it."""
    elapsed_us: int
    """Microseconds from the request's write to the reply's arrival, the limit at most."""
    lag_us: int
    """How long after the limit the referee itself took to see the reply."""


class Player(Protocol):
    """Decides for one seat of one game."""

    async def decide(self, ask: Ask) -> Answer:
        """Answer one decision.

        Raises `Strike` when this decision is lost and `Forfeit` when the whole game is; both carry
        the time that had passed. Returns or raises within the budget and a fixed grace.
        """
        ...
