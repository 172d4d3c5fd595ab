"""A user id for each bot process, so that no two have the same at the same time. Only for root.

An id is taken by a lock that the kernel frees with its holder, so that neither another referee on this
machine has the same one nor anything is left of it.

What is made for one program before it starts, and undone when nothing of it runs any more.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from referee.errors import Cause, Evidence, Forfeit, VoidGame
from referee.sandbox.cgroups import Cgroup, Cgroups
from referee.sandbox.limits import Access, Limits, TotalUsage

_RANGES = (range(66_000, 67_000), range(61_184, 62_184))
"""Ids that distributions leave unused, and those that systemd gives to services for a while."""


class UserIdLease:
    """An id that nobody else has until it is freed."""

    def __init__(self, uid: int, lock: socket.socket) -> None:
        self.uid = uid
        self._lock = lock

    def free(self) -> None:
        """Let others have it: when nothing runs with it any more."""
        self._lock.close()


def take() -> UserIdLease | None:
    """A free id; None where the referee is not root and must share its own.

    Raises VoidGame when all are taken.
    """
    if os.geteuid() != 0:
        return None
    for uid in _mapped():
        lock = socket.socket(socket.AF_UNIX)
        try:
            lock.bind(f"\0referee-uid-{uid}")
        except OSError as error:
            lock.close()
            if error.errno != errno.EADDRINUSE:
                raise VoidGame(f"no user id for a bot: {error}") from error
        else:
            return UserIdLease(uid, lock)
    raise VoidGame("no user id for a bot is left")


def _mapped() -> range:
    """Those ids that there are here: a container may have few."""
    spans = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    for ids in _RANGES:
        for first, _, count in spans:
            if int(first) <= ids.start and ids.stop <= int(first) + int(count):
                return ids
    return range(0)


_READABLE = 0o005


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """What is to be started, as `Launcher.launch` is told it."""

    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    limits: Limits
    access: Access


class SandboxResources:
    """A user id, where the referee is root; a cgroup; and folders that are the user's meanwhile.

    Args:
        cgroups: makes the cgroup.
        program: its user must be able to read its folder, and becomes the owner of what is its own.

    Raises VoidGame where it cannot be done; then nothing has been.
    """

    def __init__(self, cgroups: Cgroups, program: ProgramSpec) -> None:
        self._slot = take()
        self._lent: list[Path] = []
        self._limits = program.limits
        self.held = cgroups.controllers
        """What the kernel holds the program to."""
        self.cgroup: Cgroup | None = None
        try:
            if self.held:
                self.cgroup = cgroups.make(program.limits)
            if self._slot is not None:
                self._lend(self._slot.uid, program.folder, program.access)
        except BaseException:
            self.give_back()
            raise

    @property
    def uid(self) -> int | None:
        """Of the program; None: the referee's own."""
        return None if self._slot is None else self._slot.uid

    @property
    def doors(self) -> list[str]:
        """For the shim: how to come into the cgroup."""
        files = [] if self.cgroup is None else self.cgroup.doors
        return [word for file in files for word in ("--join", file)]

    def breach(self) -> Forfeit | None:
        """The fault of having used up the memory; known also after the end."""
        if self.cgroup is None or not self.cgroup.ran_out_of_memory:
            return None
        detail = f"ended by the kernel: it has used up its {self._limits.memory_mib} MiB of memory"
        return Forfeit(Cause.OOM, Evidence(detail=detail))

    def usage(self) -> TotalUsage | None:
        """What the program has used so far; None where no cgroup counts it."""
        return None if self.cgroup is None else self.cgroup.usage()

    def give_back(self) -> None:
        """Undo it all. Nothing of the program may run any more; what is left in its cgroup is ended."""
        if self.cgroup is not None:
            self.cgroup.remove()
        for folder in self._lent:
            _give(folder, os.getuid())
        if self._slot is not None:
            self._slot.free()

    def _lend(self, uid: int, folder: Path, access: Access) -> None:
        for path in (access.scratch, access.link, access.home, *access.writable):
            if path is not None:
                self._lent.append(path)
                _give(path, uid)
        if folder not in access.writable and folder.stat().st_mode & _READABLE != _READABLE:
            raise VoidGame(
                f"{folder} must be readable for everybody, since the referee is root and gives each bot a"
                f" user of its own: chmod -R o+rX {folder}"
            )


def _give(folder: Path, uid: int) -> None:
    """Make somebody the owner of a folder and of all in it; no link is followed."""
    with suppress(OSError):
        os.chown(folder, uid, uid)
    for parent, folders, files, descriptor in os.fwalk(folder):
        del parent
        for name in (*folders, *files):
            with suppress(OSError):
                os.chown(name, uid, uid, dir_fd=descriptor, follow_symlinks=False)
