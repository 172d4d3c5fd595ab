"""The worker processes of a run, each behind its own single-process executor.

Its own, because an executor whose process dies fails everything that is pending in it: so a dead
worker breaks only itself, and is made anew.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress

from referee.errors import RefereeError
from referee.records import GameRecord
from referee.tournament import worker
from referee.tournament.orders import Assignment, WorkerSettings
from referee.tournament.run_folder import end_processes


class WorkerLostError(RefereeError):
    """A worker process died; what it was playing has to be played again."""


class Workers:
    """All workers of a run, to be closed at its end (`contextlib.aclosing`).

    Args:
        settings: of each worker.
        on_lost: is told the number of a worker that died, unless it was killed here.
    """

    def __init__(
        self, settings: Sequence[WorkerSettings], *, on_lost: Callable[[int], None]
    ) -> None:
        self._settings = settings
        self._on_lost = on_lost
        self._killed = False
        self._executors = [_executor(each) for each in settings]
        self._pids: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._settings)

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the workers that have played something."""
        return tuple(self._pids.values())

    async def play(self, number: int, assignment: Assignment) -> list[GameRecord]:
        """Have a worker play an assignment.

        Raises WorkerLostError when its process dies meanwhile (a new one is there afterwards), and
        `VoidGame` when a game cannot be finished.
        """
        executor = self._executors[number]
        loop = asyncio.get_running_loop()
        try:
            if number not in self._pids:
                with _interrupts_held():
                    starting = loop.run_in_executor(executor, worker.pid)
                self._pids[number] = await starting
            return await loop.run_in_executor(executor, worker.play, assignment)
        except BrokenProcessPool as error:
            if self._executors[number] is executor:  # the first to notice
                end_processes(self._settings[number].folder)
                self._executors[number] = _executor(self._settings[number])
                self._pids.pop(number, None)
                executor.shutdown(wait=False)
                if not self._killed:
                    self._on_lost(number)
            raise WorkerLostError(f"worker {number} died") from error

    async def aclose(self) -> None:
        """End all bots and workers, in peace."""
        await asyncio.gather(*(_stop(self._executors[number]) for number in self._pids))
        for executor in self._executors:
            await asyncio.to_thread(executor.shutdown)

    def kill(self) -> None:
        """End all workers at once; their bots die with them, the rest with the run's folder."""
        self._killed = True
        for process in multiprocessing.active_children():
            process.kill()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """What is started here does not see Ctrl-C, which a terminal sends to it too, until it can."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


async def _stop(executor: ProcessPoolExecutor) -> None:
    """End a worker's bots, where it is still there to do so."""
    with suppress(BrokenProcessPool):
        await asyncio.get_running_loop().run_in_executor(executor, worker.stop)


def _executor(settings: WorkerSettings) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        max_workers=1,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=worker.start,
        initargs=(settings,),
    )
