"""What a program and its family take of the machine, as Linux tells it in /proc, and whether it is too much.

A look costs some ten microseconds for each thread and process of the family, so that it can be taken
during games. What has ended between two looks is seen where its parent has waited for it.

Holds a bot to its limits while it runs: looks from time to time at what it takes.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from typing import NamedTuple

from referee.errors import Cause, Evidence, Forfeit
from referee.sandbox.folders import BotFolder
from referee.sandbox.launcher import RunningProgram
from referee.sandbox.limits import Limits, TotalUsage
from referee.sandbox.process_tree import PROCESS_TREES, read

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_WHOLE_PROCESS = 2
"""What `clock_getcpuclockid` makes of a pid (Linux): CPUCLOCK_SCHED."""
_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


class TreeUsage(NamedTuple):
    """How much there is of a family at one moment, without what is spared."""

    processes: int
    """Without those that have ended and that nobody has waited for."""
    memory_kib: int
    """Resident; what several processes share counts in each of them."""


class _Stat(NamedTuple):
    runs: bool
    cpu_ticks: int
    memory_kib: int


class ResourceMonitor:
    """Measures one program and its family.

    Args:
        pid: of the program, which has just been started.
        limits: what they may take; None: what they like.
        held: what the kernel refuses them beyond its limit, and nobody has to look at: controllers of a
            cgroup, `memory` and `pids`.
    """

    def __init__(self, pid: int, limits: Limits | None, held: Container[str] = frozenset()) -> None:
        self._pid = pid
        self._limits = limits
        self._held = held
        self.spared: Container[int] = frozenset()
        """Processes of the family that are the sandbox's: no limit is for them."""
        self._members = [pid]
        self._cpu_ticks = 0
        self._peak_kib = 0

    def look(self) -> TreeUsage:
        """See who belongs to the family now, and how much all of it is."""
        self._gather()
        return self._read()

    def breach(self) -> Forfeit | None:
        """What limit of memory or processes is broken now, if any."""
        if self._limits is None:
            return None
        size, most_mib = self.look(), self._limits.memory_mib
        if size.memory_kib > most_mib * 1024 and "memory" not in self._held:
            limited = [pid for pid in self._members if pid not in self.spared]
            shared_kib = sum(map(_proportional_kib, limited))  # takes milliseconds
            if shared_kib > most_mib * 1024:
                taken = f"takes {shared_kib // 1024} MiB of memory; its limit is {most_mib}"
                return Forfeit(Cause.OOM, Evidence(detail=taken))
        if size.processes > self._limits.processes and "pids" not in self._held:
            many = f"runs {size.processes} processes; its limit is {self._limits.processes}"
            return Forfeit(Cause.TOO_MANY_PROCESSES, Evidence(detail=many))
        return None

    def usage(self) -> TotalUsage:
        """What it has taken so far, looking only at those that were there before."""
        self._read()
        self._peak_kib = max(self._peak_kib, _peak_kib(self._pid))
        return TotalUsage(self._cpu_ticks * _TICK_S, self._peak_kib)

    def busy_ns(self) -> int | None:
        """See `RunningProgram.busy_ns`."""
        self._gather()
        busy = any(state == b"R" for pid in self._members for state in _states(pid))
        return sum(map(_cpu_ns, self._members)) if busy else None

    def _gather(self) -> None:
        self._members = [self._pid, *PROCESS_TREES.pids(self._pid)]

    def _read(self) -> TreeUsage:
        stats = {pid: stat for pid in self._members if (stat := _stat(pid)) is not None}
        self._cpu_ticks = max(self._cpu_ticks, sum(stat.cpu_ticks for stat in stats.values()))
        limited = [stat for pid, stat in stats.items() if pid not in self.spared]
        memory_kib = sum(stat.memory_kib for stat in limited)
        self._peak_kib = max(self._peak_kib, memory_kib)
        return TreeUsage(sum(stat.runs for stat in limited), memory_kib)


def _stat(pid: int) -> _Stat | None:
    """CPU time, with that of children that were waited for, and memory; None where it is gone."""
    try:
        fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return None
    cpu_ticks = sum(map(int, fields[11:15]))
    return _Stat(fields[0] != b"Z", cpu_ticks, int(fields[21]) * _PAGE_KIB)


def _states(pid: int) -> Iterator[bytes]:
    """Of each thread of a process; R: it has a core or waits for one."""
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names, not paths
            with suppress(OSError):
                yield read(f"/proc/{pid}/task/{thread}/stat").rpartition(b")")[2].split()[0]


def _cpu_ns(pid: int) -> int:
    """CPU time with that of threads that have ended, exactly, and of children that were waited for, in ticks."""
    with suppress(OSError):
        children = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[13:15]
        clock = ~pid << 3 | _WHOLE_PROCESS
        return time.clock_gettime_ns(clock) + int(sum(map(int, children)) * _TICK_S * 1e9)
    return 0


def _peak_kib(pid: int) -> int:
    with suppress(OSError):
        return _kib(read(f"/proc/{pid}/status"), b"VmHWM")
    return 0


def _proportional_kib(pid: int) -> int:
    """Memory of which every process that shares it counts a part."""
    with suppress(OSError):
        return _kib(read(f"/proc/{pid}/smaps_rollup"), b"Pss")
    return 0


def _kib(lines: bytes, name: bytes) -> int:
    """What one of the lines says, but for the first, which may have a program's own words; else 0."""
    value = lines.partition(b"\n" + name + b":")[2]
    return int(value.split(None, 1)[0]) if value else 0


LOOK_S = 0.5
"""How often a bot in a game is looked at."""
_IDLE_LOOKS = 10
"""One that is in none, only at each look of so many."""


async def breach(
    launched: RunningProgram, folder: BotFolder, limits: Limits, *, playing: Callable[[], bool]
) -> Forfeit:
    """Wait until a bot breaks a limit, for ever if it never does; returns what to charge it with.

    Args:
        launched: the bot's program.
        folder: its own.
        limits: its own.
        playing: whether it is in a game.
    """
    enough_kib = limits.scratch_mib * 1024 + 1
    for look in itertools.count():
        await asyncio.sleep(LOOK_S)
        if look % _IDLE_LOOKS and not playing():
            continue
        if (fault := launched.breach()) is not None:
            return fault
        if await asyncio.to_thread(folder.scratch_kib, enough_kib) >= enough_kib:
            break
    what = f"has more than {limits.scratch_mib} MiB, its limit, in its scratch folder"
    return Forfeit(Cause.SCRATCH_FULL, Evidence(detail=what))
