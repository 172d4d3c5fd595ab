"""Compute how fast a tournament is played, and how long the missing games will take at this speed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from referee.clocks import SECOND_US

SPEED_GAMES = 500
"""The speed is computed from at most this number of the newest games, even if more were played in the last minute."""
_WINDOW_US = 60 * SECOND_US


class Speed(NamedTuple):
    """The speed of a tournament in the last minute of play."""

    games_per_s: float
    left_us: int
    """Time in microseconds for all missing games at this speed."""


def speed(ends_us: Iterable[int], missing: int) -> Speed | None:
    """Return the speed in the last minute of play. Return None if no two games ended at different times in this minute.

    The last minute of play ends at the end of the newest game, not now. So an interrupted tournament keeps its speed.

    Args:
        ends_us: when each of the newest games ended, in microseconds since 1970-01-01 UTC, in any order.
        missing: number of games that are not played yet.
    """
    ends = sorted(ends_us)
    recent = [end_us for end_us in ends if ends[-1] - end_us < _WINDOW_US]
    if not recent or recent[-1] == recent[0]:
        return None
    span_us = recent[-1] - recent[0]
    games = len(recent) - 1  # the span begins at the end of the first game
    return Speed(games * SECOND_US / span_us, missing * span_us // games)
