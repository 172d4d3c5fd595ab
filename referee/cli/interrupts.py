"""Ctrl-C and SIGTERM while something goes on that must not be broken off anywhere."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import FrameType
from typing import Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Within `with`, an interrupt is only counted, until `tell` says what to do about it.

    Python raises KeyboardInterrupt wherever it happens to be, even between the taking of a lock and the
    block that gives it back: what is said to be interruptible then never ends.
    """

    def __init__(self) -> None:
        self._count = 0

    def __enter__(self) -> Self:
        self._before = {number: signal.getsignal(number) for number in _SIGNALS}
        self.hold()
        return self

    def __exit__(self, *_exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def hold(self) -> None:
        """Only count them again: an event loop that ends leaves them as Python has them."""
        for number in _SIGNALS:
            signal.signal(number, self._note)

    def tell(self, loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
        """Call in an event loop for each interrupt so far and each that comes while it runs."""
        for number in _SIGNALS:
            loop.add_signal_handler(number, call)
        for _ in range(self._count):
            loop.call_soon(call)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1
