"""What a program and its family take of the machine, as Linux tells it in /proc.

A look costs some ten microseconds for each thread and process of the family, so that it can be taken
during games. What has ended between two looks is seen where its parent has waited for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from referee.bots.families import FAMILIES, read
from referee.bots.limits import Usage

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


class Size(NamedTuple):
    """How much there is of a family at one moment."""

    processes: int
    """Without those that have ended and that nobody has waited for."""
    memory_kib: int
    """Resident; what several processes share counts in each of them."""


class _Stat(NamedTuple):
    runs: bool
    cpu_ticks: int
    memory_kib: int


class Gauge:
    """Measures one program and its family.

    Args:
        pid: of the program, which has just been started.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._members = [pid]
        self._cpu_ticks = 0
        self._peak_kib = 0

    def look(self) -> Size:
        """See who belongs to the family now, and how much all of it is."""
        self._members = [self._pid, *FAMILIES.pids(self._pid)]
        return self._read()

    def shared_kib(self) -> int:
        """The memory of the family as it was last seen, with what is shared counted once.

        That costs milliseconds.
        """
        return sum(map(_proportional_kib, self._members))

    def usage(self) -> Usage:
        """What it has taken so far, looking only at those that were there before."""
        self._read()
        self._peak_kib = max(self._peak_kib, _peak_kib(self._pid))
        return Usage(self._cpu_ticks * _TICK_S, self._peak_kib)

    def _read(self) -> Size:
        stats = [stat for pid in self._members if (stat := _stat(pid)) is not None]
        memory_kib = sum(stat.memory_kib for stat in stats)
        self._cpu_ticks = max(self._cpu_ticks, sum(stat.cpu_ticks for stat in stats))
        self._peak_kib = max(self._peak_kib, memory_kib)
        return Size(sum(stat.runs for stat in stats), memory_kib)


def _stat(pid: int) -> _Stat | None:
    """CPU time, with that of children that were waited for, and memory; None where it is gone."""
    try:
        fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return None
    cpu_ticks = sum(map(int, fields[11:15]))
    return _Stat(fields[0] != b"Z", cpu_ticks, int(fields[21]) * _PAGE_KIB)


def _peak_kib(pid: int) -> int:
    with suppress(OSError):
        return _kib(read(f"/proc/{pid}/status").splitlines(), b"VmHWM:")
    return 0


def _proportional_kib(pid: int) -> int:
    with suppress(OSError):
        return _kib(read(f"/proc/{pid}/smaps_rollup").splitlines(), b"Pss:")
    return 0


def _kib(lines: Iterable[bytes], name: bytes) -> int:
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)
