"""Play games in a worker process, which runs on its own cores together with its bots.

The parent process is the driver or a Dask worker. It has an executor for each worker process; see `workers`. The executor
calls `initialize_worker`, `play_games` and `stop_worker` in the worker process. Everything that a game needs comes with the
settings of the worker or with the assignment. A heartbeat file shows the parent that the event loop of the worker process is
not blocked.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import time
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import uvloop

from referee import configure_process
from referee.errors import VoidGame
from referee.records import GameRecord
from referee.sandbox.shim import run_in_short_slices
from referee.tournament.assignments import Assignment, AssignmentResult, GameTask, WorkerSettings
from referee.tournament.game_player import GamePlayer
from referee.tournament.machine import MachineMonitor

HEARTBEAT_S = 0.5
"""Seconds between two heartbeats of a worker."""
_PR_SET_PDEATHSIG = 1
_STDERR = 2


class Worker:
    """Keeps the event loop and the bots of a worker process between two assignments."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._settings = settings
        self._heartbeat: asyncio.Task[None] | None = None
        self._player: GamePlayer | None = None
        self._monitor: MachineMonitor | None = None

    @property
    def player(self) -> GamePlayer:
        """The `GamePlayer` for all games. The first assignment creates it. If that fails, the assignment fails with the same error."""
        if self._heartbeat is None:
            self._heartbeat = self.runner.get_loop().create_task(_beat(self._settings))
        if self._player is None:
            self._player = GamePlayer(self._settings)
        return self._player

    @property
    def monitor(self) -> MachineMonitor:
        """Measures this machine. The first assignment creates it."""
        if self._monitor is None:
            self._monitor = MachineMonitor(self._settings.cores)
        return self._monitor

    def adapt(self, task: GameTask) -> GameTask:
        """Return the task with clocks that fit the speed of this machine, if the tournament scales them."""
        if not self._settings.scale_clocks:
            return task
        clocks = task.setup.clocks.scale(self.monitor.speed)
        return replace(task, setup=replace(task.setup, clocks=clocks))

    def stop(self) -> None:
        """Say goodbye to all bots, end their processes and close the event loop."""
        if self._player is not None:
            self.runner.run(self._player.close())
        self.runner.close()


# The one worker of this process. An executor calls only module-level functions, and these functions need the worker.
_WORKERS: list[Worker] = []


def initialize_worker(settings: WorkerSettings) -> None:
    """Make this process a worker, on the cores of `settings`; see `prepare_process`."""
    prepare_process(settings.parent_pid, settings.cores)
    _WORKERS.append(Worker(settings))


def prepare_process(parent_pid: int, cores: AbstractSet[int] = frozenset()) -> None:
    """Prepare this process for playing games: it ignores Ctrl-C, and on Linux it dies when its parent dies.

    Args:
        parent_pid: the process id of the parent.
        cores: the CPU cores for this process and its bots; empty for all cores.
    """
    configure_process()
    for descriptor in os.listdir("/dev/fd"):  # noqa: PTH208 - bots must not inherit the pipes to the parent
        with suppress(OSError):
            os.set_inheritable(int(descriptor), int(descriptor) <= _STDERR)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # the parent may have blocked SIGINT while this process started
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if cores:
            with suppress(OSError):  # without pinning, games are slower but still correct
                os.sched_setaffinity(0, cores)
    if os.getppid() != parent_pid:
        os._exit(1)  # the parent died before the death signal was set
    os.setsid()  # Linux can divide CPU time by session, so the worker needs a session of its own
    _raise_priority()


def play_games(assignment: Assignment) -> AssignmentResult:
    """Play games of an assignment in this process. It may return before all games are played; see `Assignment.least_s`.

    Forfeits are counted from portion to portion, because they can suspend bots in later portions. Raises VoidGame as
    `GamePlayer.play_portion` does, but only if no game of the assignment was played before.
    """
    worker, forfeits, singles = _WORKERS[0], assignment.forfeits, set(assignment.singles)
    monitor = worker.monitor  # measures the speed before the first game
    began_s = time.monotonic()
    monitor.begin()
    records: list[GameRecord] = []
    small_portion: int | None = None
    for bundle in assignment.bundles:
        missing = [worker.adapt(task) for task in bundle]
        indices = {task.setup.game_id: task.index for task in bundle}
        while missing:
            play = worker.player.play_portion(
                assignment.lane, missing, forfeits.suspended(), singles
            )
            try:
                played = {record.game_id: record for record in worker.runner.run(play)}
            except VoidGame:
                if records:  # the driver stores these first; the next assignment of the lane has the void game again
                    return AssignmentResult(records, small_portion)
                raise
            small_portion = small_portion or worker.player.small_portion
            for record in played.values():
                index = indices[record.game_id]
                forfeits.note(index, map(str, record.seating), record.forfeited)
                singles |= record.failed_processes
            machine = monitor.measure()
            records += [replace(record, machine=machine) for record in played.values()]
            missing = [task for task in missing if task.setup.game_id not in played]
            if time.monotonic() - began_s >= assignment.least_s:
                return AssignmentResult(records, small_portion)
    return AssignmentResult(records, small_portion)


def stop_worker() -> None:
    """End all bots of this worker and close its event loop. The executor ends the process."""
    _WORKERS.pop().stop()


def read_heartbeat(settings: WorkerSettings) -> int | None:
    """Return a number that changes with every heartbeat of a worker; None before the first heartbeat."""
    try:
        return _heartbeat_file(settings).stat().st_mtime_ns
    except OSError:
        return None


def forget_heartbeat(settings: WorkerSettings) -> None:
    """Remove the heartbeat file of a lost worker, so that the new worker starts without a heartbeat."""
    _heartbeat_file(settings).unlink(missing_ok=True)


async def _beat(settings: WorkerSettings) -> None:
    """Write heartbeats until this task is cancelled; a blocked event loop writes none."""
    while True:
        with suppress(OSError):
            _heartbeat_file(settings).touch()
        await asyncio.sleep(HEARTBEAT_S)


def _heartbeat_file(settings: WorkerSettings) -> Path:
    return settings.folder / "alive"


def _raise_priority() -> None:
    """Let the worker run before its bots even on a busy core, so that no bot pays for a delay of the worker.

    The worker needs little CPU time, and sleeps while bots think. It becomes a real-time process if the system allows that
    and the user has not lowered its priority with `nice`. Otherwise it only asks for short time slices, and keeps its
    priority. Its bots do not become real-time processes; see `sandbox/shim.py`.
    """
    if sys.platform != "linux":
        return
    if os.getpriority(os.PRIO_PROCESS, 0) <= 0:
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
            return
    run_in_short_slices()
