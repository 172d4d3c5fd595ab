"""Handle Ctrl-C, SIGTERM and SIGHUP while an event loop runs.

Elsewhere these signals raise KeyboardInterrupt, which may come between any two instructions. If it interrupts a loop that is just starting
or closing, this loop cannot be closed any more. So here a signal is only counted, and then calls a function in the loop. `run_loop` lets it
cancel the coroutine.

`referee worker`, and the check of a cluster before a new tournament is stored, use `asyncio.run` without this protection.
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
"""After this many signals, a tournament ends at once. After the first signal, the games in play are finished."""


class Interrupts:
    """Counts SIGINT, SIGTERM and SIGHUP inside a `with` block. Under `nohup`, SIGHUP stays ignored.

    Inside the block, these signals raise no KeyboardInterrupt. This exception could come between any two instructions. If
    it came after a lock was taken, and before the `try` that releases the lock, the lock would stay locked.

    Blocks may be nested. Signals in the inner block do not count in the outer one.

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
        """Run a coroutine in an event loop of its own, and return its result. Each signal cancels the coroutine.

        Signals that came in this block before the loop started cancel it too. Raises KeyboardInterrupt if the coroutine ends because of
        the cancellation.
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

    SIGINT, SIGTERM and SIGHUP cancel the coroutine. After such a signal, raises KeyboardInterrupt instead of returning the result, as soon as
    the loop is closed. If the coroutine itself raises another error, this error is raised.
    """
    with Interrupts() as interrupts:
        result = interrupts.run_loop(work)
    if interrupts.count:
        raise KeyboardInterrupt
    return result
