"""Create a cgroup for each program, to limit its memory, processes and CPU time.

A hierarchy is a tree of cgroups that Linux shows as folders. A controller limits or counts one resource. In version 1
of cgroups each hierarchy has its own controllers. In version 2 a single hierarchy has all controllers that version 1
does not use. A machine may use both versions at once. `find_hierarchies` finds the hierarchies in which the referee can
create cgroups.
"""

from __future__ import annotations

import errno
import itertools
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import psutil

from referee.errors import SHORTAGES, Shortage, void_game
from referee.sandbox import SPARE_PROCESSES, Limits
from referee.sandbox.process_tree import read_proc_file

_CONTROLLERS = ("memory", "pids", "cpu")
"""The cgroup controllers that the rung `full` needs."""
_CONTROLLERS_V1 = (*_CONTROLLERS, "cpuacct")
"""In version 1, `cpuacct` counts CPU time, and `cpu` only limits it."""
_PREFIX = "referee-"
"""The beginning of the name of every cgroup that a referee creates."""
_PERIOD_US = 100_000
"""The length of the periods in which the kernel enforces a CPU limit."""
_OOM_FILES = {1: "memory.oom_control", 2: "memory.events"}
"""The file that counts the processes killed for lack of memory, by the version of cgroups."""
_PEAK_FILES = {1: "memory.max_usage_in_bytes", 2: "memory.peak"}
"""The file with the largest memory use, by the version of cgroups."""
_NEAR_LIMIT_BYTES = 1 << 20
"""In version 1, the referee assumes that a cgroup has reached its limit if its peak is above the limit minus this value. The
last request for memory before a kill is at most eight pages. It fails, so it is not added to the peak, and the peak can
stay slightly below the limit."""
_NUMBERS = itertools.count(1)
"""The numbers in the names of cgroups. All `Cgroups` objects of a process share this counter, because the rest of the
names is the same in all of them."""
_REMOVAL_LIMIT_S = 2.0
_TCP_BYTES = 64 << 20
"""The limit for the buffers of TCP sockets in version 1. Only version 2 counts these buffers as memory."""
_SANDBOX_MIB = 16
"""Memory that is added to the program's limit, because bubblewrap and `init.py` are in the cgroup too."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One folder of a hierarchy: either the folder in which the referee creates cgroups, or one of these cgroups."""

    folder: Path
    controllers: frozenset[str]
    """The controllers of the hierarchy that limit or count the programs' resources.

    A hierarchy of version 2 is useful even without controllers, because its cgroups can be frozen and killed.
    """
    version: int
    """The version of cgroups, 1 or 2."""


def find_hierarchies(proc: Path) -> Iterator[Hierarchy]:
    """Yield the folders in which the referee can create cgroups. Each controller is in at most one of the folders.

    Raises Shortage if the machine lacks a resource.

    Args:
        proc: the folder of the referee's process in /proc. Its files name the cgroups and mounts of the process.
    """
    mounts = _read_mounts(proc)
    missing = set(_CONTROLLERS_V1)
    for line in _read_own(proc / "cgroup"):
        number, names, path = line.split(":", 2)
        is_v2 = number == "0"
        wanted = missing.intersection(names.split(","))
        for mount in mounts.get(frozenset(wanted), ()) if wanted or is_v2 else ():
            own = mount.find_folder(path)
            if own is None:
                continue
            if is_v2:
                folder, wanted = _find_delegated_folder(own, missing.intersection(_CONTROLLERS))
            else:
                folder = own if _can_create_in(own) else None
            if folder is not None:
                missing -= wanted
                yield Hierarchy(folder, frozenset(wanted), 2 if is_v2 else 1)
                break


@dataclass(frozen=True, slots=True)
class _Mount:
    """A mounted hierarchy, or a part of one."""

    root: str
    """The path, inside the hierarchy, of the cgroup that is mounted."""
    point: Path
    """The folder at which it is mounted."""

    def find_folder(self, path: str) -> Path | None:
        """Return the folder of the cgroup `path`. If that cgroup is not below `root`, return `point`.

        Return None if the folder does not exist.
        """
        below = os.path.relpath(path, self.root)
        folder = self.point if below.startswith("..") else self.point / below
        return folder if folder.is_dir() else None


def _read_mounts(proc: Path) -> dict[frozenset[str], list[_Mount]]:
    """Return the mounts of version 2, and of the hierarchies of version 1 with a controller in `_CONTROLLERS_V1`.

    The key is the set of those controllers in `_CONTROLLERS_V1` that the hierarchy has; for version 2 it is empty.
    """
    mounts: dict[frozenset[str], list[_Mount]] = {}
    for line in _read_own(proc / "mountinfo"):
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        fields = before.split()
        if kind in {"cgroup", "cgroup2"}:
            names = frozenset(options.split(",") if kind == "cgroup" else ())
            controllers = names.intersection(_CONTROLLERS_V1)
            if controllers or kind == "cgroup2":
                mounts.setdefault(controllers, []).append(_Mount(fields[3], Path(fields[4])))
    return mounts


def _can_create_in(folder: Path) -> bool:
    trial = folder / _trial_name()
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError:
        return False
    return True


def _find_delegated_folder(own: Path, wanted: set[str]) -> tuple[Path | None, set[str]]:
    """Return a folder of version 2 in which new cgroups have wanted controllers, and return these controllers.

    The folder is the referee's own cgroup `own` or the parent of `own`. A cgroup that contains processes gives
    controllers to new cgroups only if it is the root cgroup. So if `own` is not the root cgroup, the referee needs the
    parent, which a service manager may have delegated to it.

    If neither folder gives a controller, returns `own` and an empty set, because new cgroups can still be frozen and
    killed. If in addition no cgroup can be created in `own`, returns None and an empty set.
    """
    for folder in (own, own.parent) if wanted else ():
        trial = folder / _trial_name()
        with suppress(OSError):
            trial.mkdir()
            try:
                for controller in wanted:
                    with suppress(OSError):
                        (folder / "cgroup.subtree_control").write_text(f"+{controller}")
                found = {each for each in wanted if (trial / f"{each}.max").exists()}
            finally:
                trial.rmdir()
            if found and os.access(folder / "cgroup.procs", os.W_OK):
                return folder, found
    return (own if _can_create_in(own) else None), set()


class Cgroups:
    """Creates cgroups for the programs of one referee process, and removes cgroups that killed referees have left.

    Args:
        hierarchies: the folders in which to create cgroups. Each controller is in at most one of the folders.
    """

    def __init__(self, hierarchies: tuple[Hierarchy, ...]) -> None:
        self._hierarchies = hierarchies
        self._name = _name_for(os.getpid())
        for hierarchy in hierarchies:
            _remove_abandoned(hierarchy.folder)

    @classmethod
    def find(cls, proc: Path = Path("/proc/self")) -> Cgroups:
        """Return an object that uses all hierarchies of this machine in which the referee can create cgroups.

        Raises Shortage if the machine lacks a resource.
        """
        return cls(tuple(find_hierarchies(proc)))

    @property
    def controllers(self) -> frozenset[str]:
        """The controllers that can limit a program or count what it uses."""
        return frozenset().union(*(each.controllers for each in self._hierarchies))

    @property
    def can_create(self) -> bool:
        """Whether a program can get a cgroup, even one without controllers."""
        return bool(self._hierarchies)

    def create(self, limits: Limits) -> Cgroup:
        """Create a cgroup with limits. Raises VoidGame if the kernel refuses the cgroup or a limit."""
        name = f"{self._name}{next(_NUMBERS)}"
        parts: list[Hierarchy] = []
        cgroup = Cgroup(parts)
        try:
            for each in self._hierarchies:
                folder = each.folder / name
                folder.mkdir()
                parts.append(Hierarchy(folder, each.controllers, each.version))
            cgroup.set_limits(limits)
        except OSError as error:
            cgroup.remove()
            raise void_game(f"no cgroup for a bot: {error}") from error
        return cgroup


class MemoryShortage(Enum):
    """Which limit of memory was reached when the kernel killed a process of a cgroup."""

    OWN = "own"
    """The limit of the cgroup."""
    OTHER = "other"
    """The limit of a cgroup above, such as that of a container, or the memory of the machine."""


class Cgroup:
    """The cgroup of one program.

    Args:
        parts: the folders of the cgroup, one for each hierarchy. `Cgroups.create` adds to this list.
    """

    def __init__(self, parts: list[Hierarchy]) -> None:
        self._parts = parts
        self._cpu_s: float | None = None
        self._peak_memory_kib: int | None = None
        self._shortage: MemoryShortage | None = None

    @property
    def procs_files(self) -> list[str]:
        """The files `cgroup.procs` of the cgroup. A process joins by writing its pid to each of these files."""
        return [str(part.folder / "cgroup.procs") for part in self._parts]

    def set_limits(self, limits: Limits) -> None:
        """Set the limits of memory, processes and CPU time. Raises OSError if the kernel refuses one."""
        memory = (limits.memory_mib + _SANDBOX_MIB) << 20
        pids = limits.processes + SPARE_PROCESSES
        for part in self._parts:
            if "memory" in part.controllers:
                _limit_memory(part, memory)
            if "pids" in part.controllers:
                (part.folder / "pids.max").write_text(str(pids))
        self.limit_cpu(limits.cpus)

    @property
    def limits_cpu(self) -> bool:
        """Whether the cgroup has the controller `cpu`."""
        return any("cpu" in part.controllers for part in self._parts)

    def limit_cpu(self, cpus: float) -> None:
        """Allow `cpus` seconds of CPU time in each second of real time. Raises OSError if the kernel refuses.

        If a cgroup above allows less, its limit holds.
        """
        quota_us = max(1000, round(cpus * _PERIOD_US))
        for part in self._parts_with("cpu"):
            if part.version == 1:
                (part.folder / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
                _limit_quota(part, quota_us)
            else:
                (part.folder / "cpu.max").write_text(f"{quota_us} {_PERIOD_US}")

    def find_file(self, name: str) -> Path | None:
        """Return a file of the cgroup; None if no hierarchy has a file of this name."""
        files = (part.folder / name for part in self._parts)
        return next((file for file in files if file.exists()), None)

    @property
    def shortage(self) -> MemoryShortage | None:
        """Why the kernel has killed a process of this cgroup for lack of memory; None if it has killed none.

        Also works after `remove`.
        """
        for part in self._parts_with("memory"):
            self._shortage = _find_shortage(part) or self._shortage
        return self._shortage

    @property
    def throttle_count(self) -> int:
        """How often the kernel has paused the cgroup because its CPU time was used up."""
        return sum(
            _read_numbers(part.folder / "cpu.stat").get("nr_throttled", 0)
            for part in self._parts_with("cpu")
        )

    @property
    def cpu_s(self) -> float | None:
        """The CPU time that the cgroup has used; None if it is not counted. After `remove`, the last known value."""
        for part in self._parts:
            if part.controllers:
                with suppress(OSError, ValueError, KeyError):
                    self._cpu_s = _read_cpu_s(part)
        return self._cpu_s

    @property
    def peak_memory_kib(self) -> int | None:
        """The largest memory use of the cgroup; None if it is not counted. After `remove`, the last known value.

        Version 2 counts it only from Linux 5.19 on.
        """
        for part in self._parts_with("memory"):
            with suppress(OSError, ValueError):
                text = (part.folder / _PEAK_FILES[part.version]).read_text()
                self._peak_memory_kib = int(text) >> 10
        return self._peak_memory_kib

    def kill(self) -> None:
        """Send SIGKILL to all processes in the cgroup."""
        for part in self._parts:
            with suppress(OSError):
                if (part.folder / "cgroup.kill").exists():
                    (part.folder / "cgroup.kill").write_text("1")
                else:
                    for pid in (part.folder / "cgroup.procs").read_text().split():
                        with suppress(ProcessLookupError):
                            os.kill(int(pid), signal.SIGKILL)

    def remove(self) -> None:
        """Kill all processes in the cgroup and remove the cgroup. Gives up if processes remain after two seconds."""
        self._cpu_s, self._peak_memory_kib = self.cpu_s, self.peak_memory_kib
        self._shortage = self.shortage
        until_s = time.monotonic() + _REMOVAL_LIMIT_S
        for part in self._parts:
            while part.folder.exists():
                try:
                    part.folder.rmdir()
                except OSError:
                    if time.monotonic() > until_s:
                        break
                    self.kill()
                    time.sleep(0.005)

    def _parts_with(self, controller: str) -> Iterator[Hierarchy]:
        return (part for part in self._parts if controller in part.controllers)


def _limit_memory(part: Hierarchy, size: int) -> None:
    """Limit memory to `size` bytes, swap included."""
    if part.version == 1:
        (part.folder / "memory.limit_in_bytes").write_text(str(size))
        with suppress(FileNotFoundError):  # this kernel does not count swap
            (part.folder / "memory.memsw.limit_in_bytes").write_text(str(size))
        with suppress(OSError):  # not all kernels have this limit
            (part.folder / "memory.kmem.tcp.limit_in_bytes").write_text(str(_TCP_BYTES))
    else:
        (part.folder / "memory.max").write_text(str(size))
        with suppress(FileNotFoundError):
            (part.folder / "memory.swap.max").write_text("0")


def _limit_quota(part: Hierarchy, quota_us: int) -> None:
    """Limit the CPU time in each period, with version 1."""
    file = part.folder / "cpu.cfs_quota_us"
    try:
        file.write_text(str(quota_us))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        file.write_text("-1")  # a cgroup above has a lower limit, which then holds for this one


def _find_shortage(part: Hierarchy) -> MemoryShortage | None:
    """Return why the kernel has killed a process of this folder for lack of memory; None if it has killed none.

    `oom_kill` counts each killed process, whichever limit was reached. In version 2, `oom` counts only how often a request
    for memory was about to fail because of the limit of this cgroup or of a cgroup below it. Linux's
    `admin-guide/cgroup-v2.rst` describes these counters. Version 1 has no counter like `oom`, and its
    `memory.memsw.failcnt` stays 0 on Linux 6.18. So in version 1 the peak decides.
    """
    numbers = _read_numbers(part.folder / _OOM_FILES[part.version])
    if not numbers.get("oom_kill"):
        return None
    if part.version == 1:
        limit = _read_int(part.folder / "memory.limit_in_bytes")
        peaks = (f"memory.{each}max_usage_in_bytes" for each in ("", "memsw."))
        is_own = any(_read_int(part.folder / each) > limit - _NEAR_LIMIT_BYTES for each in peaks)
    else:
        is_own = numbers.get("oom", 0) > 0
    return MemoryShortage.OWN if is_own else MemoryShortage.OTHER


def _read_cpu_s(part: Hierarchy) -> float:
    """Return the CPU time of this folder of a cgroup. Raises OSError, ValueError or KeyError if it is not counted."""
    if part.version == 1:
        return int((part.folder / "cpuacct.usage").read_text()) / 1e9
    return _read_numbers(part.folder / "cpu.stat")["usage_usec"] / 1e6


def _read_numbers(file: Path) -> dict[str, int]:
    """Parse a file with a name and a number on each line; return {} if it cannot be read."""
    pairs = (line.split() for line in _read_lines(file))
    return {key: int(value) for key, value in pairs if value.isdecimal()}


def _read_int(file: Path) -> int:
    """Return the number in a file; 0 if it cannot be read."""
    return sum(map(int, _read_lines(file)))


def _read_own(file: Path) -> list[str]:
    """Return the lines of a file about the referee's process; [] if the file is missing or cannot be read.

    Raises Shortage if the reason is that the machine lacks a resource. From [] the referee would conclude
    that the machine has no cgroups.
    """
    try:
        return file.read_text().splitlines()
    except OSError as error:
        if error.errno in SHORTAGES:
            raise Shortage(f"the cgroups cannot be found: {error}") from error
        return []


def _read_lines(file: Path) -> list[str]:
    """Return the lines of a file; [] if it cannot be read."""
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def _name_for(pid: int) -> str:
    """Return the beginning of the name of each cgroup that the referee's process `pid` creates.

    It contains the start time of the process, because pids are reused.

    Raises OSError if the process is gone.
    """
    return f"{_PREFIX}{_pid_namespace()}-{pid}-{_start_ticks(pid)}-"


def _trial_name() -> str:
    """Return the name for a trial cgroup, which this process creates and removes at once.

    If this process is killed in between, `_remove_abandoned` removes the cgroup later.
    """
    return f"{_name_for(os.getpid())}trial"


def _start_ticks(pid: int) -> int:
    """Return when a process was started, in clock ticks since the boot. A change of the wall clock does not change it."""
    return int(read_proc_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()[19])


def _pid_namespace() -> int:
    """Return the inode number of the PID namespace of this process, which identifies the namespace."""
    return Path("/proc/self/ns/pid").stat().st_ino


def _remove_abandoned(folder: Path) -> None:
    """Remove the empty cgroups that killed referees of this PID namespace have left.

    Cgroups of other PID namespaces stay, because this process cannot find out whether their referees still run.
    """
    for cgroup in folder.glob(f"{_PREFIX}{_pid_namespace()}-*"):
        with suppress(OSError, ValueError):
            pid = int(cgroup.name.split("-")[2])
            if not psutil.pid_exists(pid) or not cgroup.name.startswith(_name_for(pid)):
                cgroup.rmdir()
