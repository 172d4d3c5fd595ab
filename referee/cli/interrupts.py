"""Ctrl-C and SIGTERM while something goes on that must not be broken off anywhere."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
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
        self._tell: Callable[[], object] | None = None

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        return self

    def __exit__(self, *_exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def tell(self, loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
        """Call in an event loop for each interrupt so far and each that comes while it runs.

        The loop has no handlers of its own: when it ends, it would leave Python's in their place.
        """
        for _ in range(self._count):
            loop.call_soon(call)
        self._tell = partial(loop.call_soon_threadsafe, call)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._tell is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._tell()
