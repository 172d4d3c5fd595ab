"""Measure what a process tree uses, from Linux's /proc, and compare it with the limits.

A measurement takes about ten microseconds for each thread and process, so it does not disturb games. The CPU time of
a process that has ended is included only after its parent has waited for it.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from typing import NamedTuple, TypeVar

from referee.errors import Cause, Evidence, Forfeit, Shortage, VoidGame, describe_shortage
from referee.sandbox import SPARE_PROCESSES, Limits, TotalUsage
from referee.sandbox.folders import ProgramFolder
from referee.sandbox.launcher import RunningProgram
from referee.sandbox.process_tree import PROCESS_TREES, read_proc_file

T = TypeVar("T")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_CPUCLOCK_SCHED = 2
"""The low bits in the id of a CPU clock that mean the exact CPU time in Linux. With the flag 4 too, the id would mean the
clock of one thread instead of a whole process; see `clock_getcpuclockid`."""
_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024
MONITOR_PERIOD_S = 0.5
"""The time between two checks of a program that is in use."""
_RESIDENT_MULTIPLE = 16
"""The resident memory of a process tree may be at most this multiple of its memory limit.

Here shared memory counts once for each mapping. To count it only once, the kernel takes about 40 ms for each mapped GiB,
even if all mappings show the same few pages. This multiple limits that time. It is enough for 16 processes that share
all their memory.
"""
_ENDED_PER_PROCESS = 16
"""The number of orphan processes that end between two checks may be at most this multiple of the limit of processes."""
_ENDED_NS = 1_000_000_000
"""How many ns `ResourceMonitor.busy_ns` adds to the last measured CPU time of a process that has ended. It is not known how
much the process computed after that measurement."""
_IDLE_PERIODS = 10
"""A program that is not in use is checked only once in this many periods."""


class CurrentUsage(NamedTuple):
    """What a process tree uses at one moment, without bubblewrap and `init.py`."""

    threads: int
    """The number of threads of all processes, zombies excluded. A process has at least one."""
    memory_kib: int
    """Resident memory. Memory that several processes share counts in each of them."""


class _ProcessStat(NamedTuple):
    """Three values from /proc/PID/stat."""

    threads: int
    """The number of threads that have not ended. A zombie has such threads if its main thread has ended before them."""
    cpu_ticks: int
    """CPU time in units of `_TICK_S`. Includes the time of ended children that the process has waited for."""
    memory_kib: int
    """Resident memory."""


class ResourceMonitor:
    """Measures one process tree and compares it with its limits.

    Args:
        pid: the process id of the program, or of bubblewrap if the program runs in a sandbox.
        limits: the limits that the monitor checks.
        kernel_limits: the controllers of the program's cgroup. The kernel enforces the limits of these controllers, so
            the monitor does not check them.
    """

    def __init__(self, pid: int, limits: Limits, kernel_limits: Container[str]) -> None:
        self._pid = pid
        self._limits = limits
        self._kernel_limits = kernel_limits
        self.unlimited_pids: Container[int] = frozenset()
        """The pids of bubblewrap and `init.py`, which do not count against the limits."""
        self._members = [pid]
        """The process ids of the tree at the last call of `find_members`."""
        self._cpu_ticks = 0
        self._peak_kib = 0
        self._clocks_ns: dict[int, int] = {}
        """The CPU time of each process at the last measurement for `busy_ns`."""
        self._ended_ns = 0
        """What the result of `busy_ns` includes for processes that have ended."""

    def measure(self) -> CurrentUsage:
        """Find the processes of the tree and return what they use now."""
        self.find_members()
        return self._measure_members()

    async def breach(self) -> Forfeit | Shortage | None:
        """Return the fault if the tree exceeds its limit of memory or processes now, otherwise None.

        It is also a fault if too many orphan processes of the tree have ended since the last call. If the machine lacks
        a thread to measure the memory, return a `Shortage`.
        """
        current, limit = self.measure(), self._limits.processes
        if "memory" not in self._kernel_limits:
            fault = await self._find_excess_memory(current.memory_kib)
            if fault is not None:
                return fault
        if self._has_too_many(current):
            detail = (
                f"the program runs {current.threads} processes and threads; its limit is {limit}"
            )
            return Forfeit(Cause.TOO_MANY_PROCESSES, Evidence(detail=detail))
        ended, most = PROCESS_TREES.count_ended(self._pid), limit * _ENDED_PER_PROCESS
        if ended > most:
            detail = f"{ended} orphan processes of the program have ended since the last check; at most {most} are allowed"
            return Forfeit(Cause.TOO_MANY_PROCESSES, Evidence(detail=detail))
        return None

    async def _find_excess_memory(self, resident_kib: int) -> Forfeit | Shortage | None:
        """Return the fault if the tree exceeds its memory limit, otherwise None. See `breach`.

        Args:
            resident_kib: the resident memory of the tree. Here shared memory counts once for each mapping.
        """
        limit_mib = self._limits.memory_mib
        if resident_kib <= limit_mib * 1024:
            return None
        if resident_kib > limit_mib * 1024 * _RESIDENT_MULTIPLE:
            detail = (
                f"the program has {resident_kib // 1024} MiB of resident memory, with shared memory counted in each mapping;"
                f" at most {_RESIDENT_MULTIPLE} times its limit of {limit_mib} MiB are allowed"
            )
            return Forfeit(Cause.OOM, Evidence(detail=detail))
        # measure in a thread, because the kernel can take a second if the program maps the same memory many times
        taken_kib = await _measure_in_thread(_total_proportional_kib, self._limited_members())
        if isinstance(taken_kib, Shortage):
            return taken_kib
        if taken_kib <= limit_mib * 1024:
            return None
        detail = (
            f"the program takes {taken_kib // 1024} MiB of memory; its limit is {limit_mib} MiB"
        )
        return Forfeit(Cause.OOM, Evidence(detail=detail))

    def total(self) -> TotalUsage:
        """Return what the tree has used since the start. A call is cheap, because it searches for no new processes."""
        self._measure_members()
        self._peak_kib = max(self._peak_kib, _peak_kib(self._pid))
        return TotalUsage(self._cpu_ticks * _TICK_S, self._peak_kib)

    def busy_ns(self) -> int | None:
        """See `RunningProgram.busy_ns`."""
        # A tree with too many threads counts as busy: reading thousands of them here would block the event loop. The
        # next call of `breach` makes the bot forfeit.
        is_busy = self._has_too_many(self._measure_members())
        if not is_busy:
            self.find_members()
            is_busy = self._has_too_many(self._measure_members()) or any(
                state == b"R" for pid in self._members for state in _thread_states(pid)
            )
        return self._sum_cpu_ns() if is_busy else None

    def _sum_cpu_ns(self) -> int:
        """Return the CPU time of the tree. The end of a process never makes it smaller, even if no parent waits for the process."""
        clocks_ns = {pid: cpu_ns(pid) for pid in self._members}
        for pid, before_ns in self._clocks_ns.items():
            if clocks_ns.get(pid, -1) < before_ns:  # it has ended; a new process may have its pid
                self._ended_ns += before_ns + _ENDED_NS
        self._clocks_ns = clocks_ns
        return self._ended_ns + sum(clocks_ns.values())

    def find_members(self) -> list[int]:
        """Search for the processes of the tree, and return their pids without bubblewrap and `init.py`."""
        self._members = [self._pid, *PROCESS_TREES.list_pids(self._pid)]
        return self._limited_members()

    def _has_too_many(self, current: CurrentUsage) -> bool:
        """Return whether the tree has more processes and threads than allowed, and the kernel does not prevent it."""
        most = self._limits.processes + SPARE_PROCESSES
        return current.threads > most and "pids" not in self._kernel_limits

    def _limited_members(self) -> list[int]:
        return [pid for pid in self._members if pid not in self.unlimited_pids]

    def _measure_members(self) -> CurrentUsage:
        stats = {pid: stat for pid in self._members if (stat := _read_stat(pid)) is not None}
        self._cpu_ticks = max(self._cpu_ticks, sum(stat.cpu_ticks for stat in stats.values()))
        limited = [stat for pid, stat in stats.items() if pid not in self.unlimited_pids]
        memory_kib = sum(stat.memory_kib for stat in limited)
        self._peak_kib = max(self._peak_kib, memory_kib)
        return CurrentUsage(sum(stat.threads for stat in limited), memory_kib)


def _read_stat(pid: int) -> _ProcessStat | None:
    """Return the values of a process; None if the process is gone."""
    try:
        fields = read_proc_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return None
    threads = int(fields[17]) - (fields[0] == b"Z")  # the kernel still counts the ended main thread
    cpu_ticks = sum(map(int, fields[11:15]))
    return _ProcessStat(max(0, threads), cpu_ticks, int(fields[21]) * _PAGE_KIB)


def _thread_states(pid: int) -> Iterator[bytes]:
    """Yield the state of each thread of a process; R means that the thread has a core or waits for one."""
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names, not paths
            with suppress(OSError):
                stat = read_proc_file(f"/proc/{pid}/task/{thread}/stat")
                yield stat.rpartition(b")")[2].split()[0]


def cpu_ns(pid: int) -> int:
    """Return the CPU time of a process and of the ended children that it has waited for; 0 if the process is gone.

    The time of a sleeping or waiting process is exact. The time of a running process can be one tick too old, for example 4 ms.
    The time of the children is in units of `_TICK_S`.
    """
    with suppress(OSError):
        children = read_proc_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()[13:15]
        clock = ~pid << 3 | _CPUCLOCK_SCHED
        return time.clock_gettime_ns(clock) + int(sum(map(int, children)) * _TICK_S * 1e9)
    return 0


def _peak_kib(pid: int) -> int:
    """Return the largest resident memory that a process has had; 0 if the process is gone."""
    with suppress(OSError):
        return _parse_kib(read_proc_file(f"/proc/{pid}/status"), b"VmHWM")
    return 0


def _total_proportional_kib(pids: list[int]) -> int:
    return sum(map(_proportional_kib, pids))


def _proportional_kib(pid: int) -> int:
    """Return the memory of a process; 0 if it is gone. Shared memory is divided among the processes that share it."""
    with suppress(OSError):
        return _parse_kib(read_proc_file(f"/proc/{pid}/smaps_rollup"), b"Pss")
    return 0


def _parse_kib(lines: bytes, name: bytes) -> int:
    """Return the number in the line that begins with `name`; 0 if no line does.

    The first line is skipped, because a program can choose the text of the first line of /proc/PID/status.
    """
    value = lines.partition(b"\n" + name + b":")[2]
    return int(value.split(None, 1)[0]) if value else 0


async def _measure_in_thread(measure: Callable[[T], int], argument: T) -> int | Shortage:
    """Call `measure` in a thread and return its result. If the machine lacks a thread, return a `Shortage`."""
    try:
        return await asyncio.to_thread(measure, argument)
    except RuntimeError as error:
        missing = describe_shortage(error)
        if missing is None:
            raise
        return Shortage(f"the bot cannot be measured: {missing}")


async def wait_for_breach(
    program: RunningProgram, folder: ProgramFolder, limits: Limits, *, is_in_use: Callable[[], bool]
) -> Forfeit | VoidGame:
    """Wait until a program exceeds a limit, or the machine lacks memory or a thread, and return the failure.

    Cancel this call when the program ends.

    Args:
        program: the running program.
        folder: the program's folder, with its scratch folder.
        limits: the program's limits.
        is_in_use: returns whether the program plays a game now.
    """
    enough_kib = limits.scratch_mib * 1024 + 1
    for period in itertools.count():
        await asyncio.sleep(MONITOR_PERIOD_S)
        if period % _IDLE_PERIODS and not is_in_use():
            continue
        if (fault := await program.breach()) is not None:
            return fault
        scratch_kib = await _measure_in_thread(folder.scratch_kib, enough_kib)
        if isinstance(scratch_kib, Shortage):
            return scratch_kib
        if scratch_kib >= enough_kib:
            break
    detail = (
        f"the program has more than its limit of {limits.scratch_mib} MiB in its scratch folder"
    )
    return Forfeit(Cause.SCRATCH_FULL, Evidence(detail=detail))
