"""Say how fast a tournament is played, and how long the missing games take at this speed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from referee.clocks import SECOND_US

SPEED_GAMES = 500
"""How many of the newest games are enough to compute a speed."""
_WINDOW_US = 60 * SECOND_US


class Speed(NamedTuple):
    """The speed of the last minute of play."""

    games_per_s: float
    left_us: int
    """Time for the missing games in microseconds, if all of them are played at this speed."""


def speed(ends_us: Iterable[int], missing: int) -> Speed | None:
    """Return the speed from the ends of the newest games. None if the last minute of play has fewer than two ends.

    The minute ends with the newest game and not now. So a tournament that was interrupted keeps its speed.

    Args:
        ends_us: when each game ended, in microseconds since 1970-01-01 UTC, in any order.
        missing: number of games that are not played yet.
    """
    ends = sorted(ends_us)
    recent = [end_us for end_us in ends if ends[-1] - end_us < _WINDOW_US]
    if not recent or recent[-1] == recent[0]:
        return None
    span_us = recent[-1] - recent[0]
    games = len(recent) - 1  # the first end only begins the span
    return Speed(games * SECOND_US / span_us, missing * span_us // games)
