"""What has to be shown before a tournament stops by itself, and when to look whether it is.

Apart from `settled`, which looks: configurations need this, and not what that takes to load.
"""

from __future__ import annotations

from dataclasses import dataclass

_GROWTH = 1.2
"""The next look comes when there is a fifth more to be seen: else each would say what the last one said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """What must be shown."""

    confidence: float
    """How sure the whole table has to be, above 0.5 and below 1."""
    margin: float
    """Bots whose ratings differ by less are called equal, where that is as sure; 0: never."""


def looks(rounds: int) -> list[int]:
    """After how many rounds to look, of so many; the last look is after the last one."""
    found: list[int] = []
    following = 1
    while following < rounds:
        found.append(following)
        following = max(following + 1, int(following * _GROWTH))
    return [*found, rounds]
