"""What a tournament consists of: its games as it was created, and those of each extension.

Each part has a secret of its own. The seed of a tournament that is over is known to everybody; deals
that came from it would be, too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """Games that follow each other in a schedule, and the secret that their deals come from."""

    first: int
    """Index of its first game in the schedule."""
    games: int
    matches: int | None
    """Of an extension: how many more it adds, at each table or to each choice of tables; None for the
    first part."""
    commitment: str
    """SHA-256 of the seed, in hexadecimal."""
    seed: bytes | None
    """None where it is not known."""
    finished: bool
    """All its games were played once; from then on its seed is no secret."""

    @property
    def published_seed(self) -> bytes | None:
        """The seed, if it is no secret."""
        return self.seed if self.finished else None


def extensions(parts: Sequence[Part]) -> list[int]:
    """How many matches each of the extensions adds, at each table or to each choice of tables."""
    return [part.matches for part in parts if part.matches is not None]


def part_of(parts: Sequence[Part], index: int) -> Part:
    """The part that has the game of this index."""
    return parts[bisect_right(parts, index, key=lambda part: part.first) - 1]


def title(number: int) -> str:
    """What people call a part, by its number: empty for the first one."""
    return f"extension {number}" if number else ""
