"""The isolation ladder, what each rung protects, and what is known of this machine's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Rung(Enum):
    """How bots are kept apart, strongest first."""

    FULL = "full"
    """bubblewrap: namespaces of their own, a filter of system calls, and a cgroup for each bot."""
    NAMESPACES = "namespaces"
    """The same without the cgroup, or without a part of it."""
    UID = "uid"
    """A user of its own for each bot; only where the referee is root."""
    NONE = "none"
    """The referee's own rights: for trusted bots."""

    @property
    def height(self) -> int:
        """0 for none; a stronger rung is higher."""
        return len(Rung) - 1 - list(Rung).index(self)


class Protection(Enum):
    """What a bot is kept from, or what is certain of its end."""

    FILESYSTEM = "filesystem"
    """It writes only into its scratch folder, and reads nobody's files."""
    NETWORK = "network"
    """It reaches nobody: no address, no socket but its own."""
    PROCESS_VIEW = "process view"
    """It sees and signals only its own processes."""
    PTRACE = "ptrace"
    """It reads and writes no other process's memory."""
    TOTAL_MEMORY = "total memory"
    """All its processes together have a limit."""
    PIDS = "pids"
    """So has the number of them."""
    CPU = "cpu"
    """So has their share of the cores."""
    SYSCALLS = "syscalls"
    """Dangerous system calls are refused."""
    KILL_TREE = "kill-tree"
    """Its end is the end of all that it started."""
    DIES_WITH_REFEREE = "dies with the referee"
    """However the referee ends."""


class State(Enum):
    """Whether a protection is there."""

    ON = "on"
    PARTIAL = "partial"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a probe has shown of a protection."""

    protection: Protection
    state: State
    reason: str
    """In a sentence: what was tried and what came of it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rung that cannot be taken here."""

    rung: Rung
    reason: str
    advice: str
    """What to install or enable."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """The rung that bots run on, and what is known of it. A plain value that can be pickled."""

    rung: Rung
    findings: tuple[Finding, ...]
    """One for each protection."""
    refusals: tuple[Refusal, ...] = ()
    """Of the rungs above it."""
    cgroups: bool = False
    """Bots have cgroups, where some can be made."""

    def state(self, protection: Protection) -> State:
        """Whether a protection is on."""
        return next(each.state for each in self.findings if each.protection is protection)

    @property
    def words(self) -> str:
        """For records: the rung, and the protections that are not on: `namespaces; off: pids, cpu`."""
        if self.rung is Rung.NONE:
            return "none"
        lacking = [
            f"{state.value}: {', '.join(each.value for each in found)}"
            for state in (State.PARTIAL, State.OFF)
            if (found := [each for each in Protection if self.state(each) is state])
        ]
        return "; ".join([str(self.rung.value), *lacking])


_RIGHTS = "a bot has the referee's own rights"
_HUNTED = "ended as far as it can be found"
NO_ISOLATION = Isolation(
    Rung.NONE,
    tuple(
        Finding(each, State.PARTIAL, _HUNTED)
        if each in {Protection.KILL_TREE, Protection.DIES_WITH_REFEREE}
        else Finding(each, State.OFF, _RIGHTS)
        for each in Protection
    ),
)
"""The lowest rung, which needs no probe."""


_BY_CGROUP = {Protection.TOTAL_MEMORY, Protection.PIDS, Protection.CPU}


def rung_of(findings: Sequence[Finding]) -> Rung | None:
    """What a sandbox comes to; None where it does not even keep what namespaces are for."""
    lacking = {each.protection for each in findings if each.state is not State.ON}
    if not lacking:
        return Rung.FULL
    return Rung.NAMESPACES if lacking <= _BY_CGROUP | {Protection.SYSCALLS} else None
