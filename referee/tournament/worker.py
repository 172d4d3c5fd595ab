"""A worker: one process, pinned to its cores together with its bots, that plays games one at a time.

`start`, `play` and `stop` are what an executor runs in that process. Everything a game needs comes
with its order.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import uvloop

from referee import configure_process
from referee.records import GameRecord
from referee.sandbox.shim import run_in_short_slices
from referee.tournament.assignments import Assignment, WorkerSettings
from referee.tournament.game_player import GamePlayer

SIGN_S = 0.5
"""How often a worker that is not stuck shows it."""
_PR_SET_PDEATHSIG = 1
_STDERR = 2
T = TypeVar("T")


class Worker:
    """Plays assignments; lives as long as its process."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._player: GamePlayer | None = None
        self._settings = settings

    def play(self, assignment: Assignment) -> list[GameRecord]:
        """Play the games of an assignment. Raises VoidGame when one cannot be finished."""
        return self._runner.run(self._showing_life(self._play(assignment)))

    async def _play(self, assignment: Assignment) -> list[GameRecord]:
        if self._player is None:
            self._player = GamePlayer(self._settings)
        return await self._player.play(assignment)

    def stop(self) -> None:
        """Say goodbye to all bots and end their processes."""
        if self._player is not None:
            self._runner.run(self._showing_life(self._player.close()))
        self._runner.close()

    async def _showing_life(self, work: Coroutine[None, None, T]) -> T:
        showing = asyncio.ensure_future(_show_life(self._settings))
        try:
            return await work
        finally:
            showing.cancel()


async def _show_life(settings: WorkerSettings) -> None:
    """See to it that `last_sign` changes as long as the event loop turns."""
    while True:
        with suppress(OSError):
            _sign(settings).touch()
        await asyncio.sleep(SIGN_S)


def last_sign(settings: WorkerSettings) -> int | None:
    """A number that changes while a worker works; None before it has begun."""
    try:
        return _sign(settings).stat().st_mtime_ns
    except OSError:
        return None


def forget_sign(settings: WorkerSettings) -> None:
    """What the signs said was of a worker that is no more."""
    _sign(settings).unlink(missing_ok=True)


def _sign(settings: WorkerSettings) -> Path:
    return settings.folder / "alive"


# The worker's own process. An executor runs functions by name, so the one worker of the process has
# to be found by name too.

_WORKERS: list[Worker] = []


def start(settings: WorkerSettings) -> None:
    """Make this process a worker: pinned, deaf to Ctrl-C, dead when the driver is."""
    configure_process()
    for descriptor in os.listdir("/dev/fd"):  # noqa: PTH208 - the executor's pipes: not for bots
        with suppress(OSError):
            os.set_inheritable(int(descriptor), int(descriptor) <= _STDERR)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # held while this process started
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if settings.cores:
            with suppress(OSError):  # slower without, but no reason not to play
                os.sched_setaffinity(0, settings.cores)
    if os.getppid() != settings.parent_pid:
        os._exit(1)  # the driver died before it could be watched
    os.setsid()  # Linux shares a core among sessions: not to share with all of the driver's
    _be_on_time()
    _WORKERS.append(Worker(settings))


def _be_on_time() -> None:
    """See that this process runs when it has something to do, however busy its core is.

    It sleeps while bots think and has little to do in between. Where it may it is a real-time process,
    as its bots are not (see `shim`); a user who has made it nice gets what he wants.
    """
    if sys.platform != "linux":
        return
    if os.getpriority(os.PRIO_PROCESS, 0) <= 0:
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
            return
    run_in_short_slices()


def play(assignment: Assignment) -> list[GameRecord]:
    """Play an assignment in this process."""
    return _WORKERS[0].play(assignment)


def stop() -> None:
    """End the bots of this process."""
    _WORKERS.pop().stop()
