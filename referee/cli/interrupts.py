"""Handle Ctrl-C, SIGTERM and SIGHUP while an event loop runs.

In other code these signals raise KeyboardInterrupt, which can come between any two instructions. If it comes while an event loop starts or
closes, the loop can no longer be closed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any, Self, TypeVar

import uvloop

from referee.cli import interrupt_signals
from referee.cli.options import INTERRUPTED

Result = TypeVar("Result")
_LAST_RESORT_S = 10.0
"""Seconds from the second signal until this process exits, whatever it still waits for."""
STOP_AT_ONCE = 2
"""After this many signals, a run ends at once. After fewer, the games in play are finished first."""


class Interrupts:
    """Counts SIGINT, SIGTERM and SIGHUP inside a `with` block. Under `nohup`, SIGHUP stays ignored.

    Inside the block, these signals raise no KeyboardInterrupt. This exception could come between any two instructions. If
    it came after a lock was taken, and before the `try` that releases the lock, the lock would stay locked.

    If the block has not ended `_LAST_RESORT_S` seconds after the second signal, this process exits without cleaning up, as if
    it were killed; workers and bots end too. Otherwise a database that does not answer could block the event loop for ever.
    """

    def __init__(self) -> None:
        self.count = 0
        """The number of signals so far."""
        self._call: Callable[[], object] | None = None
        self._last_resort = threading.Timer(_LAST_RESORT_S, _give_up)
        self._last_resort.daemon = True

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in interrupt_signals()}
        return self

    def __exit__(self, *_exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._last_resort.cancel()

    def call_on_interrupt(
        self, loop: asyncio.AbstractEventLoop, call: Callable[[], object]
    ) -> None:
        """Call `call` in the event loop `loop`, once for each signal so far and once for each later signal.

        This method does not use `loop.add_signal_handler`, because the end of the loop would then replace the handlers of
        this class by Python's own handlers.
        """
        for _ in range(self.count):
            loop.call_soon(call)
        self._call = partial(loop.call_soon_threadsafe, call)

    def run_loop(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in an event loop of its own, and return its result. Each signal, also an earlier one, cancels the coroutine.

        Raises KeyboardInterrupt if that ends the coroutine.
        """

        async def run() -> Result:
            task = asyncio.current_task()
            assert task is not None  # noqa: S101 - a coroutine runs in a task
            self.call_on_interrupt(asyncio.get_running_loop(), task.cancel)
            return await work

        try:
            return uvloop.run(run())
        except asyncio.CancelledError:
            if self.count == 0:
                raise
            raise KeyboardInterrupt from None

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.count == STOP_AT_ONCE:
            with suppress(RuntimeError):  # no further thread can be started
                self._last_resort.start()
        if self._call is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._call()


def _give_up() -> None:
    """End this process as if it were killed."""
    show_cursor = "\x1b[?25h" if os.isatty(2) else ""  # the live screen has hidden the cursor
    with suppress(OSError):  # the terminal is closed
        os.write(
            2,
            f"{show_cursor}\nreferee: stopped without waiting any longer; to continue a tournament: referee tournament resume NAME\n".encode(),
        )
    os._exit(INTERRUPTED)


def run_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in an event loop of its own, and return its result.

    SIGINT, SIGTERM and SIGHUP cancel the coroutine. After one of them, raises KeyboardInterrupt when the loop is closed.
    """
    with Interrupts() as interrupts:
        result = interrupts.run_loop(work)
    if interrupts.count:
        raise KeyboardInterrupt
    return result
