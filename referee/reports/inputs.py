"""What rows are made of: the least that must be known of games, faults and schedules.

Protocols, so that results from the store, records and hand-made values all fit.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from referee.errors import Cause


class FinishedGame(Protocol):
    """The result of a game."""

    @property
    def game_id(self) -> str:
        """Names the game in its league."""
        ...

    @property
    def ruleset(self) -> str:
        """Name of the ruleset."""
        ...

    @property
    def round(self) -> int:
        """Its round in its tournament, from 0."""
        ...

    @property
    def match(self) -> Hashable:
        """Equal for the games of one match, and for no others among those given."""
        ...

    @property
    def bots(self) -> tuple[str, ...]:
        """Who sat where, seat 0 first."""
        ...

    @property
    def scores(self) -> tuple[int, ...]:
        """Points of each seat."""
        ...

    @property
    def ranks(self) -> tuple[int, ...]:
        """Final rank of each seat, 1 the best, equal ranks shared."""
        ...

    @property
    def forfeited(self) -> tuple[int, ...]:
        """The seats that forfeited."""
        ...


class ChargedFault(Protocol):
    """A fault, and whose it was."""

    @property
    def game_id(self) -> str:
        """The game in which it happened."""
        ...

    @property
    def bot(self) -> str:
        """The bot it is charged to, as results name it."""
        ...

    @property
    def cause(self) -> Cause:
        """What went wrong."""
        ...

    @property
    def forfeit(self) -> bool:
        """True: it cost the game. False: a strike."""
        ...
