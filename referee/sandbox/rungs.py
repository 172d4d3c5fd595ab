"""Describe the rungs of the isolation ladder, their protections, and what a probe found out about them.

These are plain values that can be pickled. `ladder` creates them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Rung(Enum):
    """A level of the isolation ladder, strongest first."""

    FULL = "full"
    """bubblewrap with namespaces, a system call filter, and a cgroup for each program."""
    NAMESPACES = "namespaces"
    """bubblewrap as on the rung `full`, but cgroups are missing or cannot limit all resources."""
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
    cgroups: bool = False
    """Whether the launcher creates a cgroup for each program, as far as the machine allows it."""

    def state(self, protection: Protection) -> State:
        """Return whether a protection is in force."""
        return next(each.state for each in self.results if each.protection is protection)

    @property
    def summary(self) -> str:
        """The rung and its protections that are partial or off, such as `namespaces; off: pids, cpu`."""
        if self.rung is Rung.NONE:
            return "none"
        missing = [
            f"{state.value}: {', '.join(each.value for each in found)}"
            for state in (State.PARTIAL, State.OFF)
            if (found := [each for each in Protection if self.state(each) is state])
        ]
        return "; ".join([str(self.rung.value), *missing])


_ALL_RIGHTS = "a bot has the referee's own rights"
_KILLED_IF_FOUND = "the referee ends only those processes of a bot that it can find"
NO_ISOLATION = Isolation(
    Rung.NONE,
    tuple(
        ProbeResult(each, State.PARTIAL, _KILLED_IF_FOUND)
        if each in {Protection.KILL_TREE, Protection.DIES_WITH_REFEREE}
        else ProbeResult(each, State.OFF, _ALL_RIGHTS)
        for each in Protection
    ),
)
"""The isolation on the rung `none`. It is known without a probe."""

_PROTECTED_BY_CGROUP = {Protection.TOTAL_MEMORY, Protection.PIDS, Protection.CPU}


def rung_from_results(results: Sequence[ProbeResult]) -> Rung | None:
    """Return the rung that a sandbox with these results reaches: `full`, `namespaces`, or None.

    None means that a protection is missing that needs neither a cgroup nor the system call filter.
    """
    missing = {each.protection for each in results if each.state is not State.ON}
    if not missing:
        return Rung.FULL
    return Rung.NAMESPACES if missing <= _PROTECTED_BY_CGROUP | {Protection.SYSCALLS} else None
