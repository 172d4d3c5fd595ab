"""The worker processes of a run, each behind its own single-process executor.

Its own, because an executor whose process dies fails everything that is pending in it: so a dead
worker breaks only itself, and is made anew. A worker that hangs is ended, and is a dead one then.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.process import BaseProcess
from typing import TypeVar

from referee.errors import RefereeError
from referee.records import GameRecord
from referee.sandbox.folders import end_processes
from referee.sandbox.starting import ALL_THREADS, check_room, shortage
from referee.tournament import worker
from referee.tournament.assignments import Assignment, WorkerSettings

PATIENCE_S = 60.0
"""How long a worker that has begun may show no sign of life."""
_START_S = 120.0
"""How long it may take to begin: longer, where a machine is very busy."""
_STEPS = 12
"""How often one looks for a sign in that time."""
_LOOK_S = 0.01
"""How often one looks whether a worker that is ending has ended."""
T = TypeVar("T")


class WorkerLostError(RefereeError):
    """A worker process died or hung; what it was playing has to be played again."""


class Workers:
    """All workers of a run, to be closed at its end (`contextlib.aclosing`).

    Args:
        settings: of each worker.
        on_lost: is told which worker died, and of what, unless it was killed here.
        patience_s: a worker is ended that shows no sign of life for so long.
    """

    def __init__(
        self,
        settings: Sequence[WorkerSettings],
        *,
        on_lost: Callable[[str], None],
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._settings = settings
        self._on_lost = on_lost
        self._patience_s = patience_s
        self._killed = False
        self._executors = [_executor(each) for each in settings]
        self._processes: dict[int, BaseProcess] = {}
        """Those that were started, by the number of the worker."""
        self._hung: set[BaseProcess] = set()

    def __len__(self) -> int:
        return len(self._settings)

    async def play(self, number: int, assignment: Assignment) -> list[GameRecord]:
        """Have a worker play an assignment.

        Raises WorkerLostError when its process dies or hangs meanwhile (a new one is there afterwards),
        `VoidGame` when a game cannot be finished or the machine has no room for the process, and
        RefereeError when that gets stuck for want of room.
        """
        executor = self._executors[number]
        try:
            return await self._ask(number, partial(worker.play, assignment))
        except BrokenProcessPool as error:
            if self._executors[number] is executor:  # the first to notice
                self._replace(number)
            raise WorkerLostError(f"worker {number} died") from error
        except (OSError, RuntimeError) as error:
            if (missing := shortage(error)) is not None:
                raise RefereeError(f"no room for worker {number}: {missing}") from error
            raise

    async def aclose(self) -> None:
        """End all bots and workers, in peace where that is possible. Starts no thread: there may be no room."""
        numbers = list(self._processes)
        stopping = (self._ask(number, worker.stop) for number in numbers)
        ends = await asyncio.gather(*stopping, return_exceptions=True)
        for executor in self._executors:
            executor.shutdown(wait=False)
        for number, end in zip(numbers, ends, strict=True):
            if end is not None:
                self._processes[number].kill()
        limit = asyncio.get_running_loop().time() + self._patience_s
        while any(process.is_alive() for process in self._processes.values()):
            if asyncio.get_running_loop().time() > limit:
                self.kill()
            await asyncio.sleep(_LOOK_S)
        for end in ends:
            if isinstance(end, Exception) and not _expected(end):
                raise end

    def kill(self) -> None:
        """End all workers at once; their bots die with them, the rest with the run's folder."""
        self._killed = True
        for process in self._processes.values():
            process.kill()

    async def _ask(self, number: int, what: Callable[[], T]) -> T:
        """Have something done by a worker's process, which is started where there is none."""
        executor = self._executors[number]
        loop = asyncio.get_running_loop()
        if number in self._processes:
            asked = loop.run_in_executor(executor, what)
        else:
            check_room(ALL_THREADS)
            others = set(multiprocessing.active_children())
            try:
                with _interrupts_held():
                    asked = loop.run_in_executor(executor, what)
            finally:
                for process in set(multiprocessing.active_children()) - others:
                    self._processes[number] = process
        return await self._patiently(number, self._processes[number], asked)

    async def _patiently(self, number: int, process: BaseProcess, asked: asyncio.Future[T]) -> T:
        """Wait for a worker's answer, and end the worker if it hangs.

        Only the time counts in which this process was awake: both may have been stopped together.
        """
        seen, silent_s, gone = None, 0.0, False
        step_s = self._patience_s / _STEPS
        try:
            while not (await asyncio.wait((asked,), timeout=step_s))[0]:
                if gone:
                    raise BrokenProcessPool("the executor has not noticed that its process is gone")
                gone = not process.is_alive()
                sign = worker.last_sign(self._settings[number])
                silent_s = 0.0 if sign != seen else silent_s + step_s
                seen = sign
                if silent_s >= (_START_S if sign is None else self._patience_s):
                    self._hung.add(process)
                    process.kill()
            return asked.result()
        finally:
            asked.cancel()  # where nobody wants to know any more

    def _replace(self, number: int) -> None:
        """A worker's process is gone: end what is left of it, and have another one."""
        end_processes(self._settings[number].folder)
        worker.forget_sign(self._settings[number])
        self._executors[number].shutdown(wait=False)
        self._executors[number] = _executor(self._settings[number])
        process = self._processes.pop(number, None)
        if not self._killed:
            what = "showed no sign of life and was ended" if process in self._hung else "died"
            self._on_lost(f"Worker {number} {what}")


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """What is started here does not see Ctrl-C, which a terminal sends to it too, until it can."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _expected(error: Exception) -> bool:
    """Whether a worker may have failed to stop of it: then it was killed."""
    return isinstance(error, BrokenProcessPool) or shortage(error) is not None


def _executor(settings: WorkerSettings) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        max_workers=1,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=worker.start,
        initargs=(settings,),
    )
