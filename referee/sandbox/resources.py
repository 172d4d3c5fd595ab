"""Create the sandbox resources of a program, and remove them when the program is gone.

The sandbox resources are a user id, a cgroup, and the ownership of the program's folders while the program runs. If
the referee is not root, it cannot give a program another user id. Then the program has the referee's user id.
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
from referee.sandbox import Access, Limits, TotalUsage
from referee.sandbox.cgroups import Cgroup, Cgroups

_USER_IDS = (range(66_000, 67_000), range(61_184, 62_184))
"""Linux distributions leave the first range free. The second belongs to systemd, which uses few ids of it."""
_READABLE_FOR_ALL = 0o005
"""The mode bits that let other users read and enter a folder."""


class UserIdLease:
    """A user id that no referee on this machine gives to another program until the lease is released.

    The lock is an abstract socket. The kernel frees the socket when the referee's process ends, so a killed referee
    leaves no lock behind.
    """

    def __init__(self, uid: int, lock: socket.socket) -> None:
        self.uid = uid
        self._lock = lock

    def release(self) -> None:
        """Free the user id. Call this when no process has it any more."""
        self._lock.close()


def lease_user_id() -> UserIdLease | None:
    """Lock a free user id; return None if the referee is not root.

    Raises VoidGame if no id is free.
    """
    if os.geteuid() != 0:
        return None
    for uid in _available_user_ids():
        lock = socket.socket(socket.AF_UNIX)
        try:
            lock.bind(f"\0referee-uid-{uid}")
        except OSError as error:
            lock.close()
            if error.errno != errno.EADDRINUSE:
                raise VoidGame(f"no user id for a bot: {error}") from error
        else:
            return UserIdLease(uid, lock)
    raise VoidGame(
        "no user id for a bot is free: end other referees, or give the container the user ids 61184 to 62183"
    )


def _available_user_ids() -> range:
    """Return the first range of `_USER_IDS` that this machine has.

    Return an empty range if this machine has neither range. For instance, a container may have few user ids.
    """
    spans = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    for ids in _USER_IDS:
        for first, _, count in spans:
            if int(first) <= ids.start and ids.stop <= int(first) + int(count):
                return ids
    return range(0)


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """The arguments of `Launcher.launch` as one value."""

    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    limits: Limits
    access: Access


class SandboxResources:
    """The user id, the cgroup and the folders of one program. `release` gives all of them back.

    If one of them cannot be prepared, gives back the others and raises VoidGame.

    Args:
        cgroups: creates the cgroup.
        program: the program to start. If the referee is root, the program's user becomes the owner of the folders
            `scratch`, `link`, `home` and `writable` of `program.access`, and must be able to read `program.folder`.
    """

    def __init__(self, cgroups: Cgroups, program: ProgramSpec) -> None:
        self._lease = lease_user_id()
        self._folders: list[Path] = []
        """The folders that belong to the program's user until `release`."""
        self._limits = program.limits
        self.kernel_limits = cgroups.controllers
        """Names of the cgroup controllers that limit this program; empty if no cgroup can be created."""
        self.cgroup: Cgroup | None = None
        try:
            if self.kernel_limits:
                self.cgroup = cgroups.create(program.limits)
            if self._lease is not None:
                self._hand_over(self._lease.uid, program.folder, program.access)
        except BaseException:
            self.release()
            raise

    @property
    def uid(self) -> int | None:
        """The user id of the program; None if the program runs as the referee's user."""
        return None if self._lease is None else self._lease.uid

    @property
    def join_options(self) -> list[str]:
        """The options that tell the shim to join the cgroup."""
        files = [] if self.cgroup is None else self.cgroup.procs_files
        return [word for file in files for word in ("--join", file)]

    def breach(self) -> Forfeit | None:
        """Return the fault if the kernel has ended a process of the cgroup for lack of memory, otherwise None.

        Also works after `release`.
        """
        if self.cgroup is None or not self.cgroup.ran_out_of_memory:
            return None
        detail = f"ended by the kernel: it has used up its {self._limits.memory_mib} MiB of memory"
        return Forfeit(Cause.OOM, Evidence(detail=detail))

    def usage(self) -> TotalUsage | None:
        """Return what the cgroup has counted for the program; None without a cgroup."""
        return None if self.cgroup is None else self.cgroup.usage()

    def release(self) -> None:
        """Remove the cgroup, take back the folders and free the user id. Call this when the program is gone.

        Processes that are left in the cgroup are killed.
        """
        if self.cgroup is not None:
            self.cgroup.remove()
        for folder in self._folders:
            _change_owner(folder, os.getuid())
        if self._lease is not None:
            self._lease.release()

    def _hand_over(self, uid: int, folder: Path, access: Access) -> None:
        """Make user `uid` the owner of the folders in `access`. Raises VoidGame if this user cannot read `folder`."""
        for path in (access.scratch, access.link, access.home, *access.writable):
            if path is not None:
                self._folders.append(path)
                _change_owner(path, uid)
        mode = folder.stat().st_mode
        if folder not in access.writable and mode & _READABLE_FOR_ALL != _READABLE_FOR_ALL:
            raise VoidGame(
                f"{folder} must be readable for everybody, because the referee is root and each bot runs as"
                f" another user: chmod -R o+rX {folder}"
            )


def _change_owner(folder: Path, uid: int) -> None:
    """Make a user the owner of a folder and of everything in the folder. Follows no link."""
    with suppress(OSError):
        os.chown(folder, uid, uid)
    for parent, folders, files, descriptor in os.fwalk(folder):
        del parent
        for name in (*folders, *files):
            with suppress(OSError):
                os.chown(name, uid, uid, dir_fd=descriptor, follow_symlinks=False)
