"""Calculate how much time a seat has for a decision, from the time limits of the game.

A bank is the time for all decisions of a game together. This module reads no clock; callers pass the times.
All durations are integer microseconds, so that sums are exact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_SECONDS = r"[0-9]{1,9}(?:\.[0-9]{1,9})?"
_BANK = re.compile(rf"(?P<bank>{_SECONDS})(?:\+(?P<increment>{_SECONDS}))?")
SECOND_US = 1_000_000
UNLIMITED_US = 10 * 86_400 * SECOND_US
"""The timeout where bots have no time limits: ten days."""
REFERENCE_SPEED = 100_000
"""A tournament file that scales its clocks states the limits for a machine with this `Machine.speed`. A core of a cheap
server has this speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """The time limits of a game."""

    start_up_us: int = 20 * SECOND_US
    """The time for the start of a bot. It begins when the referee begins to start the program, and ends when the bot's hello
    arrives."""
    game_start_us: int = 10 * SECOND_US
    """The time from the message that starts a game to the bot's message that it is ready."""
    decision_us: int = 5 * SECOND_US
    """The time from writing a request to the arrival of its reply."""
    bank_us: int | None = None
    """The time for all decisions of one game together; None for a game without a bank."""
    increment_us: int = 0
    """The time that is added to the bank after each decision."""

    def scale(self, speed: int) -> Clocks:
        """Return the clocks for a machine with this `Machine.speed`, so that slow machines give more time for decisions.

        The limit of a decision, the bank and its increment are multiplied by REFERENCE_SPEED / speed. On a machine with half
        the `REFERENCE_SPEED`, they are twice as long. The factor is at least 1/4 and at most 4, so that a wrong
        measurement of the speed gives no senseless limits.
        """
        factor = min(4.0, max(0.25, REFERENCE_SPEED / max(1, speed)))
        return replace(
            self,
            decision_us=max(1, round(self.decision_us * factor)),
            bank_us=None if self.bank_us is None else max(1, round(self.bank_us * factor)),
            increment_us=round(self.increment_us * factor),
        )


def parse_bank(text: str) -> tuple[int, int]:
    """Parse a bank and an increment in seconds, such as `30+0.1`, or a bank alone, such as `30`.

    Returns bank and increment in microseconds. The increment is 0 if the text has none. Raises ValueError
    for any other text. Chess programs use the same notation.
    """
    match = _BANK.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not SECONDS or SECONDS+INCREMENT, such as 30+0.1")
    increment = match["increment"] or "0"
    return round(float(match["bank"]) * SECOND_US), round(float(increment) * SECOND_US)


@dataclass(slots=True)
class DecisionTime:
    """The time for one decision."""

    limit_us: int
    """The decision limit or the rest of the bank, whichever is less."""
    bank_left_us: int | None
    """The rest of the bank; None in a game without a bank."""
    last_elapsed_us: int
    """The time that the seat's previous decision in the game took; 0 for the first decision."""

    @property
    def ends_the_bank(self) -> bool:
        """True if a decision that takes `limit_us` empties the bank."""
        return self.bank_left_us is not None and self.limit_us >= self.bank_left_us


class SeatClock:
    """The clock of one seat in one game."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._bank_us = clocks.bank_us
        self._last_us = 0

    def decision_time(self) -> DecisionTime:
        """Return the time for the seat's next decision."""
        limit = self._clocks.decision_us
        if self._bank_us is not None:
            limit = min(limit, self._bank_us)
        return DecisionTime(limit, self._bank_us, self._last_us)

    def spend(self, elapsed_us: int) -> None:
        """Subtract the time of a decision from the bank and add the increment."""
        self._last_us = elapsed_us
        if self._bank_us is not None:
            self._bank_us = max(0, self._bank_us - elapsed_us) + self._clocks.increment_us
