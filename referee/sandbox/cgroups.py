"""Where the referee may make cgroups, in version 1 and 2 of them.

Nothing is known by version: where a cgroup can be made and limits be written is found by doing it.

A cgroup for each bot, in version 1 and 2 of them, wherever the referee may make some.

Where some can be made is found by `hierarchies`.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from referee.errors import VoidGame
from referee.sandbox.limits import Limits, TotalUsage

CONTROLLERS = ("memory", "pids", "cpu")
"""Those that a full isolation needs."""
PREFIX = "referee-"
"""Of the names of all cgroups that referees make."""
_V1 = (*CONTROLLERS, "cpuacct")


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A folder in which the referee may make cgroups."""

    folder: Path
    controllers: frozenset[str]
    version: int


def usable(proc: Path) -> Iterator[Hierarchy]:
    """Where the referee may make cgroups.

    Args:
        proc: the folder of a process in /proc: it says which cgroups it is in, and where they are.
    """
    mounts = _mounts(proc)
    left = set(_V1)
    for line in lines(proc / "cgroup"):
        number, names, path = line.split(":", 2)
        its = left.intersection(names.split(","))
        for mount in mounts.get(frozenset(its), ()) if its or number == "0" else ():
            own = mount.folder(path)
            if own is None:
                continue
            if number == "0":
                found, its = _delegated(own, left.intersection(CONTROLLERS))
            else:
                found = own if _may_make(own) else None
            if found is not None and its:
                left -= its
                yield Hierarchy(found, frozenset(its), 2 if number == "0" else 1)
                break


@dataclass(frozen=True, slots=True)
class _Mount:
    root: str
    point: Path

    def folder(self, path: str) -> Path | None:
        """Where a cgroup of the hierarchy is, if it can be seen."""
        below = os.path.relpath(path, self.root)
        folder = self.point if below.startswith("..") else self.point / below
        return folder if folder.is_dir() else None


def _mounts(proc: Path) -> dict[frozenset[str], list[_Mount]]:
    """By those of our controllers that they have; version 2 has none here."""
    found: dict[frozenset[str], list[_Mount]] = {}
    for line in lines(proc / "mountinfo"):
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        fields = before.split()
        if kind in {"cgroup", "cgroup2"}:
            names = frozenset(options.split(",") if kind == "cgroup" else ()).intersection(_V1)
            if names or kind == "cgroup2":
                found.setdefault(names, []).append(_Mount(fields[3], Path(fields[4])))
    return found


def lines(file: Path) -> list[str]:
    """The lines of a file; none where it cannot be read."""
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def _may_make(folder: Path) -> bool:
    trial = folder / f"{PREFIX}trial-{os.getpid()}"
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError:
        return False
    return True


def _delegated(own: Path, wanted: set[str]) -> tuple[Path | None, set[str]]:
    """Where in version 2 cgroups with controllers can be made: below the referee's own, or beside it.

    A cgroup with processes in it has no controllers for those below (but for the root), so it is mostly
    beside it, in what a service manager has delegated.
    """
    for folder in (own, own.parent):
        trial = folder / f"{PREFIX}trial-{os.getpid()}"
        with suppress(OSError):
            trial.mkdir()
            try:
                for controller in wanted:
                    with suppress(OSError):
                        (folder / "cgroup.subtree_control").write_text(f"+{controller}")
                there = {each for each in wanted if (trial / f"{each}.max").exists()}
            finally:
                trial.rmdir()
            if there and os.access(folder / "cgroup.procs", os.W_OK):
                return folder, there
    return None, set()


_PERIOD_US = 100_000
_OOM_FILES = {1: "memory.oom_control", 2: "memory.events"}
_REMOVAL_S = 2.0
_OWN_MIB = 16
"""What the sandbox's own processes take."""
_OWN_PROCESSES = 8
"""The sandbox's own processes, and the threads of a relay."""


class Cgroups:
    """Makes cgroups.

    Args:
        hierarchies: where; each controller in at most one.
    """

    def __init__(self, hierarchies: tuple[Hierarchy, ...]) -> None:
        self._hierarchies = hierarchies
        self._numbers = itertools.count(1)
        self._name = _name_of(psutil.Process())
        for hierarchy in hierarchies:
            _sweep(hierarchy.folder)

    @classmethod
    def find(cls, proc: Path = Path("/proc/self")) -> Cgroups:
        """Those of this machine; none where the referee may make none."""
        return cls(tuple(usable(proc)))

    @property
    def controllers(self) -> frozenset[str]:
        """What can be limited."""
        return frozenset().union(*(each.controllers for each in self._hierarchies))

    def make(self, limits: Limits) -> Cgroup:
        """A cgroup with these limits. Raises VoidGame where there is no room for one."""
        name = f"{self._name}-{next(self._numbers)}"
        parts: list[Hierarchy] = []
        cgroup = Cgroup(parts)
        try:
            for each in self._hierarchies:
                folder = each.folder / name
                folder.mkdir()
                parts.append(Hierarchy(folder, each.controllers, each.version))
            cgroup.limit(limits)
        except OSError as error:
            cgroup.remove()
            raise VoidGame(f"no cgroup for a bot: {error}") from error
        return cgroup


class Cgroup:
    """The cgroup of one bot: one folder for each hierarchy."""

    def __init__(self, parts: list[Hierarchy]) -> None:
        self._parts = parts
        self._last = TotalUsage(0.0, 0)
        self._oom = False

    @property
    def doors(self) -> list[str]:
        """The files by which a process comes in, by writing its pid."""
        return [str(part.folder / "cgroup.procs") for part in self._parts]

    def limit(self, limits: Limits) -> None:
        """Set its limits. Raises OSError."""
        memory = (limits.memory_mib + _OWN_MIB) << 20
        pids = limits.processes + _OWN_PROCESSES
        for part in self._parts:
            if "memory" in part.controllers:
                _limit_memory(part, memory)
            if "pids" in part.controllers:
                (part.folder / "pids.max").write_text(str(pids))
        self.limit_cpu(limits.cpus)

    def limit_cpu(self, cpus: float) -> None:
        """Set how many cores' time it may take. Raises OSError."""
        quota_us = max(1000, round(cpus * _PERIOD_US))
        for part in self._having("cpu"):
            if part.version == 1:
                (part.folder / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
                (part.folder / "cpu.cfs_quota_us").write_text(str(quota_us))
            else:
                (part.folder / "cpu.max").write_text(f"{quota_us} {_PERIOD_US}")

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has ended a process here because of the limit; known also after its removal."""
        for part in self._having("memory"):
            kills = _figures(part.folder / _OOM_FILES[part.version]).get("oom_kill", 0)
            self._oom = self._oom or kills > 0
        return self._oom

    @property
    def throttled(self) -> int:
        """How often it had to wait since its share of the cores was used up."""
        return sum(
            _figures(part.folder / "cpu.stat").get("nr_throttled", 0)
            for part in self._having("cpu")
        )

    def usage(self) -> TotalUsage:
        """What it has used so far; after its removal what it had used by then."""
        for part in self._parts:
            with suppress(OSError, ValueError):
                self._last = _usage(part, self._last)
        return self._last

    def kill(self) -> None:
        """Send SIGKILL to all in it."""
        for part in self._parts:
            with suppress(OSError):
                if (part.folder / "cgroup.kill").exists():
                    (part.folder / "cgroup.kill").write_text("1")
                else:
                    for pid in (part.folder / "cgroup.procs").read_text().split():
                        with suppress(ProcessLookupError):
                            os.kill(int(pid), signal.SIGKILL)

    def remove(self) -> None:
        """End all in it and remove it; waits a moment for what is about to end."""
        self.usage()
        self._oom = self.ran_out_of_memory
        until_s = time.monotonic() + _REMOVAL_S
        for part in self._parts:
            while part.folder.exists():
                try:
                    part.folder.rmdir()
                except OSError:
                    if time.monotonic() > until_s:
                        break
                    self.kill()
                    time.sleep(0.005)

    def _having(self, controller: str) -> Iterator[Hierarchy]:
        return (part for part in self._parts if controller in part.controllers)


def _figures(file: Path) -> dict[str, int]:
    """What a file of lines with a name and a number says; nothing where it is gone."""
    pairs = (line.split() for line in lines(file))
    return {key: int(value) for key, value in pairs if value.isdecimal()}


def _limit_memory(part: Hierarchy, size: int) -> None:
    """Memory, and no swap beside it."""
    if part.version == 1:
        (part.folder / "memory.limit_in_bytes").write_text(str(size))
        with suppress(FileNotFoundError):  # a kernel that does not account swap
            (part.folder / "memory.memsw.limit_in_bytes").write_text(str(size))
    else:
        (part.folder / "memory.max").write_text(str(size))
        with suppress(FileNotFoundError):
            (part.folder / "memory.swap.max").write_text("0")


def _usage(part: Hierarchy, known: TotalUsage) -> TotalUsage:
    cpu_s, memory_kib = known.cpu_s, known.peak_memory_kib
    if part.version == 1:
        if "cpuacct" in part.controllers:
            cpu_s = int((part.folder / "cpuacct.usage").read_text()) / 1e9
        if "memory" in part.controllers:
            memory_kib = int((part.folder / "memory.max_usage_in_bytes").read_text()) >> 10
    else:
        cpu_s = _figures(part.folder / "cpu.stat").get("usage_usec", 0) / 1e6
        if "memory" in part.controllers:
            memory_kib = int((part.folder / "memory.peak").read_text()) >> 10
    return TotalUsage(cpu_s, memory_kib)


def _name_of(process: psutil.Process) -> str:
    return f"{PREFIX}{process.pid}-{process.create_time():.2f}"


def _sweep(folder: Path) -> None:
    """Remove what referees have left that were killed. What still has processes in it stays."""
    for left in folder.glob(f"{PREFIX}*-*-*"):
        with suppress(OSError, ValueError, psutil.Error):
            pid = int(left.name.split("-")[1])
            if not psutil.pid_exists(pid) or not left.name.startswith(
                _name_of(psutil.Process(pid))
            ):
                left.rmdir()
