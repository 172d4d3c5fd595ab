"""Run the worker processes of a tournament, each in an executor of its own.

If a process of an executor dies, everything that was submitted to the executor fails. With one executor for each
worker, only the assignments of the dead worker fail. A new worker replaces the dead worker. A worker that hangs is
killed and replaced, too. The code that runs in the process of a worker is in `worker`.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import aclosing, asynccontextmanager, contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeVar

from referee.bots.logs import LogSettings
from referee.errors import RefereeError, describe_shortage
from referee.sandbox import Isolation
from referee.sandbox.folders import kill_programs, run_folder
from referee.sandbox.launcher import ALL_THREADS, check_capacity
from referee.store import HostFigures
from referee.tournament import worker
from referee.tournament.assignments import Assignment, AssignmentResult, WorkerSettings
from referee.tournament.config import TournamentConfig, assign_cores

HANG_TIMEOUT_S = 60.0
"""Seconds without a heartbeat after which a running worker is killed."""
_START_TIMEOUT_S = 120.0
"""Seconds without a first heartbeat after which a starting worker is killed. On a busy machine the start takes long."""
_CHECKS_PER_TIMEOUT = 12
"""How often the heartbeat is read within the timeout of a running worker."""
_SHUTDOWN_POLL_S = 0.01
"""Seconds between two checks at shutdown whether the processes have ended."""
T = TypeVar("T")


class WorkerLostError(RefereeError):
    """A worker is lost, for example because its process died or hung. The games of its assignments must be played again.

    Args:
        message: says which worker is lost, and why.
        was_waiting: True if the worker had not begun to play this assignment, so the assignment is not the reason of the loss.
    """

    def __init__(self, message: str, *, was_waiting: bool = False) -> None:
        super().__init__(message)
        self.was_waiting = was_waiting


# The states of a worker:
#
#                 submit              first heartbeat                 aclose
#     no process ────────► starting ─────────────────► running ──────────────► stopping ──► closed
#         ▲                    │                          │
#         │                    │ died, or no heartbeat    │ died, or no
#         │                    │ within the start timeout │ heartbeat
#         │ replaced           ▼                          ▼
#         └───────────────── lost ◄───────────────────────┘
#
# A running worker plays one assignment after the other and is idle in between. A hung worker is killed before
# it counts as lost. `aclose` can be called in any state. `kill` kills the processes of all workers at once, so a
# worker with an assignment is lost; `aclose` must still be called.


class Workers:
    """Starts, watches and replaces all workers of a run; use it in `contextlib.aclosing`.

    Args:
        settings: the settings of each worker.
        on_worker_lost: called with a sentence about each worker that died or hung; not called after `kill`.
        hang_timeout_s: seconds without a heartbeat after which a running worker is killed.
    """

    def __init__(
        self,
        settings: Sequence[WorkerSettings],
        *,
        on_worker_lost: Callable[[str], None],
        hang_timeout_s: float = HANG_TIMEOUT_S,
    ) -> None:
        self.stretch_s = 0.0  # one bundle for each stretch: sending takes no time, so more bundles would save none
        self._settings = settings
        self._on_worker_lost = on_worker_lost
        self._hang_timeout_s = hang_timeout_s
        self._killed = False
        self._executors = [_make_executor(worker_settings) for worker_settings in settings]
        self._jobs: list[list[asyncio.Future[AssignmentResult]]] = [[] for _ in settings]
        """The unfinished assignments of each executor, the oldest first. The worker plays the oldest one. A new executor gets a new list.
        The list of the old executor does not change any more, so it shows which assignment the lost worker was playing."""
        self._processes: dict[int, BaseProcess] = {}
        """The processes that were started, by the number of their worker."""
        self._hung: set[BaseProcess] = set()
        self._lacking: set[int] = set()
        """The workers that have lacked a resource. Their event loops may be broken, so they may fail to stop."""

    def __len__(self) -> int:
        return len(self._settings)

    async def submit(self, number: int, assignment: Assignment) -> AssignmentResult:
        """Let worker `number` play an assignment.

        Raises WorkerLostError if the worker died or hung. A new worker has then replaced it. Raises VoidGame if a
        game is void again and again, or if the machine lacks the resources to start the worker. Raises RefereeError
        if the machine runs out of a resource, such as descriptors, memory or threads, while the worker starts or plays.
        """
        executor, jobs = self._executors[number], self._jobs[number]
        job: asyncio.Future[AssignmentResult] | None = None
        loop = asyncio.get_running_loop()
        with self._report_shortage(number):
            try:
                with self._remember_process(number):
                    job = loop.run_in_executor(executor, worker.play_games, assignment)
                jobs.append(job)
                return await self._wait_for(number, job)
            except BrokenProcessPool as error:
                if (
                    self._executors[number] is executor
                ):  # otherwise another call has already replaced the worker
                    self._replace(number)
                raise WorkerLostError(
                    f"worker {number} died", was_waiting=job is None or job is not jobs[0]
                ) from error
            finally:
                if self._jobs[number] is jobs and job in jobs:
                    jobs.remove(job)

    def list_hosts(self) -> Sequence[HostFigures]:
        """See `WorkerGroup`."""
        return ()

    def drain(self) -> None:
        """Do nothing: here no call of `submit` waits for a worker that can play. See `WorkerGroup`."""

    async def aclose(self) -> None:
        """End all bots and workers. A worker that does not end by itself is killed.

        This method starts no thread, because the machine may have no room for a thread.
        """
        processes = dict(self._processes)  # `submit` may replace a worker meanwhile
        results = await asyncio.gather(*map(self._stop, processes), return_exceptions=True)
        for executor in self._executors:
            executor.shutdown(wait=False)
        for process, result in zip(processes.values(), results, strict=True):
            if result is not None:
                process.kill()
        deadline = asyncio.get_running_loop().time() + self._hang_timeout_s
        while any(process.is_alive() for process in processes.values()):
            if asyncio.get_running_loop().time() > deadline:
                self.kill()
            await asyncio.sleep(_SHUTDOWN_POLL_S)
        for number, result in zip(processes, results, strict=True):
            if (
                isinstance(result, Exception)
                and number not in self._lacking
                and not _is_expected_at_shutdown(result)
            ):
                raise result

    def kill(self) -> None:
        """Kill all workers at once. Bots that survive are killed when the run folder is removed."""
        self._killed = True
        for process in self._processes.values():
            process.kill()

    async def _stop(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        job = loop.run_in_executor(self._executors[number], worker.stop_worker)
        await self._wait_for(number, job)

    @contextmanager
    def _report_shortage(self, number: int) -> Iterator[None]:
        """If the block raises an error because the machine lacks a resource, raise RefereeError instead; see `describe_shortage`."""
        try:
            yield
        except (OSError, RuntimeError) as error:
            missing = describe_shortage(error)
            if missing is None:
                raise
            self._lacking.add(number)
            raise RefereeError(f"no room for worker {number}: {missing}") from error

    @contextmanager
    def _remember_process(self, number: int) -> Iterator[None]:
        """If the executor of a worker starts the worker's process inside this block, store the process in `_processes`.

        The terminal sends Ctrl-C to the new process, too. So SIGINT is blocked here while the process starts. The process
        inherits this, and unblocks SIGINT in `initialize_worker`.
        """
        if number in self._processes:
            yield
            return
        check_capacity(ALL_THREADS)
        others = set(multiprocessing.active_children())
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            for process in set(multiprocessing.active_children()) - others:
                self._processes[number] = process

    async def _wait_for(self, number: int, job: asyncio.Future[T]) -> T:
        """Return the result of a worker's job; kill the worker if it hangs.

        The time without a heartbeat is the number of checks without a new heartbeat, times the interval. A clock would
        also count the time in which the user has paused the driver and the workers.
        """
        process = self._processes[number]
        last_heartbeat, silent_s, is_gone = None, 0.0, False
        interval_s = self._hang_timeout_s / _CHECKS_PER_TIMEOUT
        try:
            while not (await asyncio.wait((job,), timeout=interval_s))[0]:
                if is_gone:
                    raise BrokenProcessPool("the executor has not noticed that its process is gone")
                is_gone = not process.is_alive()
                heartbeat = worker.read_heartbeat(self._settings[number])
                silent_s = 0.0 if heartbeat != last_heartbeat else silent_s + interval_s
                last_heartbeat = heartbeat
                timeout_s = _START_TIMEOUT_S if heartbeat is None else self._hang_timeout_s
                if silent_s >= timeout_s:
                    self._hung.add(process)
                    process.kill()
            return job.result()
        finally:
            job.cancel()  # has no effect on a job that is done

    def _replace(self, number: int) -> None:
        """Kill the bots of a lost worker, and create an executor for a new one."""
        kill_programs(self._settings[number].folder)
        worker.forget_heartbeat(self._settings[number])
        self._executors[number].shutdown(wait=False)
        self._executors[number] = _make_executor(self._settings[number])
        self._jobs[number] = []
        process = self._processes.pop(number, None)
        if not self._killed:
            reason = "did not respond and was killed" if process in self._hung else "died"
            self._on_worker_lost(f"Worker {number} {reason}")


@asynccontextmanager
async def local_workers(
    config: TournamentConfig,
    isolation: Isolation,
    on_worker_lost: Callable[[str], None],
    logs: LogSettings | None = None,
) -> AsyncIterator[Workers]:
    """Provide the workers of a tournament on this machine. At the end, they and their bots are ended.

    Args:
        config: the configuration of the tournament.
        isolation: the isolation of the bots.
        on_worker_lost: see `Workers`.
        logs: see `make_settings`.
    """
    with run_folder() as folder:
        settings = [
            make_settings(config, isolation, cores, folder, logs) for cores in assign_cores(config)
        ]
        async with aclosing(Workers(settings, on_worker_lost=on_worker_lost)) as workers:
            yield workers


def make_settings(
    config: TournamentConfig,
    isolation: Isolation,
    cores: frozenset[int],
    run_folder: Path,
    logs: LogSettings | None = None,
) -> WorkerSettings:
    """Return the settings of a worker that this process will start.

    Args:
        config: the configuration of the tournament.
        isolation: the isolation of the bots.
        cores: the cores of the worker and its bots.
        run_folder: the run folder of this process. The worker gets a new folder in it.
        logs: where to write what the bots print; None for nowhere.
    """
    return WorkerSettings(
        cores=cores,
        clocks=config.clocks,
        max_processes=config.max_processes,
        isolation=isolation,
        # bots see this path, so its name must not say which worker plays their game
        folder=Path(tempfile.mkdtemp(prefix="", dir=run_folder)),
        parent_pid=os.getpid(),
        pondering=config.pondering,
        logs=logs,
        scale_clocks=config.scale_clocks,
    )


def _is_expected_at_shutdown(error: Exception) -> bool:
    """Return True if a worker was killed, or lacked a resource such as descriptors, memory or threads."""
    return isinstance(error, BrokenProcessPool) or describe_shortage(error) is not None


def _make_executor(settings: WorkerSettings) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        max_workers=1,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=worker.initialize_worker,
        initargs=(settings,),
    )
