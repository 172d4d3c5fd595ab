"""Run one untrusted program: start it isolated, limit and measure it, and end every process that it started.

`ladder` finds the strongest isolation that the machine gives and creates the launcher for it. README.md describes
the rungs of the ladder. This package knows no gRPC, no bot and no rule of the game.

This module says what a program may use (`Limits`), what it may reach (`Access`), and what it has used
(`TotalUsage`). It describes the rungs of the isolation ladder, their protections, and what a probe found out about
them (`Isolation`). These are plain values that can be pickled. A launcher enforces the limits and the access as far as
its rung can. `monitor` watches the limits that the kernel does not enforce.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from enum import Enum
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Limits:
    """What a process tree may use."""

    memory_mib: int = 1024
    """Memory of all processes of the tree together, in MiB."""
    processes: int = 64
    """How many threads the whole tree may have at once. Each process has at least one.

    Each rung allows `SPARE_PROCESSES` more.
    """
    cpus: float = 1.0
    """CPU time per second of real time, in cores: 1.0 is one core all the time."""
    scratch_mib: int = 64
    """Disk space in the scratch folder, in MiB.

    If a mount namespace gives the program its own folders for temporary files, such as /dev/shm, each of these folders
    has a limit of the same size.
    """
    open_files: int = 1024
    """Open file descriptors of each process."""
    output_kib: int = 1024
    """How many KiB are kept from the end of standard output. The limit for standard error is the same."""

    def at_most(self, maxima: Limits) -> Limits:
        """Return limits that have, in each field, the lower value of `self` and `maxima`."""
        return Limits(*map(min, astuple(self), astuple(maxima)))


DEFAULT_LIMITS = Limits()
SPARE_PROCESSES = 8
"""What each rung adds to `Limits.processes`. In a sandbox, the cgroup counts bubblewrap and `init.py` too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a program may reach besides the system, the toolchains and its own folder."""

    scratch: Path | None = None
    """An empty folder that the program may write to. It is the program's HOME and TMPDIR."""
    link: Path | None = None
    """The folder of the socket that connects the program with the referee."""
    home: Path | None = None
    """A folder that a build may write to. A sandbox shows this folder at the path that `find_build_home` returns."""
    writable: tuple[Path, ...] = ()
    """Folders in which the program may change everything. The program's own folder may be one of these."""
    readable: tuple[Path, ...] = ()
    """Files and folders that the program may only read."""
    relay: tuple[Path, int] | None = None
    """The path of a UNIX socket, and a port. In the sandbox, a connection to 127.0.0.1:PORT is forwarded to the socket. None if
    no port is forwarded."""


NO_ACCESS = Access()
"""Access to nothing besides the system, the toolchains and the program's own folder."""


@dataclass(frozen=True, slots=True)
class TotalUsage:
    """What a process tree has used since the program was started."""

    cpu_s: float
    """CPU time in seconds."""
    peak_memory_kib: int
    """The largest memory use that was seen, in KiB."""


class Rung(Enum):
    """A level of the isolation ladder, strongest first."""

    FULL = "full"
    """bubblewrap with namespaces, a system call filter, and a cgroup for each program."""
    NAMESPACES = "namespaces"
    """bubblewrap, but the system call filter or the cgroup is missing, or the cgroup lacks a limit or cannot stop a program."""
    UID = "uid"
    """A user id of its own for each program; only if the referee is root."""
    NONE = "none"
    """The referee's own rights for each program; only for trusted bots."""

    @property
    def height(self) -> int:
        """The position on the ladder, from 0 for `none` to 3 for `full`."""
        return len(Rung) - 1 - list(Rung).index(self)


class Protection(Enum):
    """One thing that isolation prevents or ensures."""

    FILESYSTEM = "filesystem"
    """The program writes only into its scratch folder, and cannot read the files of users."""
    NETWORK = "network"
    """The program reaches no address and no socket except its own."""
    PROCESS_VIEW = "process view"
    """The program sees and signals only its own processes."""
    PTRACE = "ptrace"
    """The program cannot read or write the memory of other processes."""
    TOTAL_MEMORY = "total memory"
    """All processes of the program together have a memory limit."""
    PIDS = "pids"
    """The number of the program's processes is limited."""
    CPU = "cpu"
    """The program's share of the cores is limited."""
    SYSCALLS = "syscalls"
    """Dangerous system calls are refused."""
    NO_SHARED_LOCKS = "no shared locks"
    """The program cannot pass messages to other programs through shared files, neither by locks nor by notifications."""
    IDLE_BOTS_STOPPED = "idle bots stopped"
    """While the program is `IDLE`, it gets only cores that nobody else wants; while it is `STOPPED`, it gets none; see `scheduling`."""
    KILL_TREE = "kill-tree"
    """When the program is killed, all processes that it started end too."""
    DIES_WITH_REFEREE = "dies with the referee"
    """The program ends when the referee ends, even if the referee is killed."""


class State(Enum):
    """Whether a protection is in force."""

    ON = "on"
    PARTIAL = "partial"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of a probe for one protection."""

    protection: Protection
    state: State
    reason: str
    """What was tried and what happened, as a short text."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rung that this machine does not give."""

    rung: Rung
    reason: str
    """Why the machine does not give the rung."""
    advice: str
    """What to install or enable."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """The rung that programs run on, and the protections in force there."""

    rung: Rung
    results: tuple[ProbeResult, ...]
    """One result for each protection."""
    refusals: tuple[Refusal, ...] = ()
    """The stronger rungs that were tried and that this machine does not give."""
    controllers: frozenset[str] | None = None
    """The controllers of the cgroups that the launcher creates for programs; None if it creates no cgroups."""
    bubblewrap: Path | None = None
    """The bubblewrap that makes the sandboxes; None on the rungs `uid` and `none`."""

    def state(self, protection: Protection) -> State:
        """Return whether a protection is in force."""
        return next(each.state for each in self.results if each.protection is protection)

    @property
    def is_fallback(self) -> bool:
        """Whether programs would run on the rung `none` only because this machine gives no other rung."""
        return self.rung is Rung.NONE and bool(self.refusals)

    @property
    def summary(self) -> str:
        """The rung and its protections that are partial or off, such as `namespaces; off: pids, cpu`. For `none` only the rung."""
        if self.rung is Rung.NONE:
            return "none"
        missing = [
            f"{state.value}: {', '.join(each.value for each in found)}"
            for state in (State.PARTIAL, State.OFF)
            if (found := [each for each in Protection if self.state(each) is state])
        ]
        return "; ".join([str(self.rung.value), *missing])


_ALL_RIGHTS = "a bot has the referee's own rights"
_ONLY_IF_FOUND = "the referee can end or stop a process of a bot only if it finds the process"
NO_ISOLATION = Isolation(
    Rung.NONE,
    tuple(
        ProbeResult(each, State.PARTIAL, _ONLY_IF_FOUND)
        if each
        in {Protection.IDLE_BOTS_STOPPED, Protection.KILL_TREE, Protection.DIES_WITH_REFEREE}
        else ProbeResult(each, State.OFF, _ALL_RIGHTS)
        for each in Protection
    ),
)
"""The isolation on the rung `none`. It is known without a probe."""

_MISSING_ON_NAMESPACES = {
    Protection.TOTAL_MEMORY,
    Protection.PIDS,
    Protection.CPU,
    Protection.SYSCALLS,
    Protection.NO_SHARED_LOCKS,
    Protection.IDLE_BOTS_STOPPED,
}
"""The protections that the rung `namespaces` may lack: they need a cgroup or the system call filter."""


def rung_from_results(results: Sequence[ProbeResult]) -> Rung | None:
    """Return the rung that a sandbox with these results reaches: `full`, `namespaces`, or None.

    None means that the sandbox lacks a protection that the rung `namespaces` must have.
    """
    missing = {each.protection for each in results if each.state is not State.ON}
    if not missing:
        return Rung.FULL
    return Rung.NAMESPACES if missing <= _MISSING_ON_NAMESPACES else None
