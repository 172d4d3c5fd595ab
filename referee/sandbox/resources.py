"""Create the sandbox resources of a program, and remove them when the program is gone.

The sandbox resources are a user id, a cgroup, and the ownership of the program's folders while the program runs. If
the referee is not root, it cannot give a program another user id. Then the program has the referee's user id.
"""

from __future__ import annotations

import os
import stat
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from referee.errors import Cause, Evidence, Forfeit, VoidGame, void_game
from referee.sandbox import Access, Limits, TotalUsage
from referee.sandbox.cgroups import Cgroup, Cgroups, MemoryShortage
from referee.sandbox.folders import walk_folders
from referee.sandbox.user_ids import lease_user_id

_READABLE_FOR_ALL = 0o005
"""The mode bits that let other users read and enter a folder."""


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

    If one of them cannot be prepared, the constructor gives back the others and raises VoidGame.

    Until `limit_cpu` is called, the CPU limit is at least one core, because the shim, bubblewrap and `init.py` are in the
    cgroup too. With only 0.01 cores, they would need seconds to start the program.

    Args:
        cgroups: creates the cgroup.
        program: the program to start. If the referee is root, the program's user becomes the owner of the folders
            `scratch`, `link`, `home` and `writable` of `program.access`, and must be able to read `program.folder`.
    """

    def __init__(self, cgroups: Cgroups, program: ProgramSpec) -> None:
        self._lease = lease_user_id()
        self._lock = threading.Lock()
        """Held as long as processes are killed by their user id, so that no other thread frees the id meanwhile."""
        self._folders: list[Path] = []
        """The folders that belong to the program's user until `release`."""
        self._limits = program.limits
        self.kernel_limits = cgroups.controllers
        """Names of the cgroup controllers that limit this program or count what it uses. Empty without a cgroup, or without controllers."""
        self.cgroup: Cgroup | None = None
        try:
            if cgroups.can_create:
                enough = max(1.0, program.limits.cpus)
                self.cgroup = cgroups.create(replace(program.limits, cpus=enough))
            if self._lease is not None:
                self._hand_over(self._lease.uid, program.folder, program.access)
        except BaseException:
            self.release()
            raise

    @property
    def uid(self) -> int | None:
        """The user id of the program; None if the program runs as the referee's user, and after `release`."""
        lease = self._lease
        return None if lease is None else lease.uid

    @property
    def lock_file(self) -> Path | None:
        """The file whose lock reserves the user id; None if the program runs as the referee's user, and after `release`."""
        return None if self._lease is None else self._lease.path

    @property
    def join_options(self) -> list[str]:
        """The options that tell the shim to join the cgroup."""
        files = [] if self.cgroup is None else self.cgroup.procs_files
        return [word for file in files for word in ("--join", file)]

    def limit_cpu(self) -> None:
        """Set the program's own limit of CPU time. Call this as soon as the program runs.

        Raises VoidGame if the kernel refuses the limit.
        """
        if self.cgroup is not None:
            try:
                self.cgroup.limit_cpu(self._limits.cpus)
            except OSError as error:
                raise void_game(f"no CPU limit for a bot: {error}") from error

    def breach(self) -> Forfeit | VoidGame | None:
        """Return a failure if the kernel has ended a process of the cgroup for lack of memory, otherwise None.

        The program is charged only if it has reached its own limit. Also works after `release`.
        """
        shortage = None if self.cgroup is None else self.cgroup.shortage
        if shortage is None:
            return None
        if shortage is MemoryShortage.OTHER:
            return VoidGame(
                "the kernel has ended a process of a bot that was below its memory limit, because this machine or its container has"
                " too little memory: add memory, or play with fewer workers"
            )
        detail = f"the program has used up its {self._limits.memory_mib} MiB of memory, and the kernel has ended it"
        return Forfeit(Cause.OOM, Evidence(detail=detail))

    def usage(self, measure: Callable[[], TotalUsage]) -> TotalUsage:
        """Return what the program has used. If the cgroup does not count a value, take it from `measure`."""
        cpu_s = None if self.cgroup is None else self.cgroup.cpu_s
        peak_memory_kib = None if self.cgroup is None else self.cgroup.peak_memory_kib
        if cpu_s is not None and peak_memory_kib is not None:
            return TotalUsage(cpu_s, peak_memory_kib)
        measured = measure()
        return TotalUsage(
            measured.cpu_s if cpu_s is None else cpu_s,
            measured.peak_memory_kib if peak_memory_kib is None else peak_memory_kib,
        )

    def busy_ns(self, measure: Callable[[], int | None]) -> int | None:
        """Return the CPU time in ns; None if `measure` returns None. If the cgroup does not count it, take it from `measure`."""
        measured_ns = measure()
        cpu_s = None if measured_ns is None or self.cgroup is None else self.cgroup.cpu_s
        return measured_ns if cpu_s is None else round(cpu_s * 1e9)

    def send_kill(self) -> None:
        """Send SIGKILL to all processes of the program's user, and do not wait for their end. Do nothing if the program runs as the referee's user."""
        with self._lock:
            if self._lease is not None:
                self._lease.send_kill()

    def kill_processes(self) -> None:
        """Kill all processes of the program's user, and wait until none runs. Do nothing if the program runs as the referee's user."""
        with self._lock:
            if self._lease is not None:
                self._lease.kill_processes()

    def remove_leftovers(self) -> None:
        """Kill all processes of the program's user, and remove what the user has left in shared folders and memory.

        Do nothing if the program runs as the referee's user.
        """
        with self._lock:
            if self._lease is not None:
                self._lease.kill_processes()
                self._lease.remove_leftovers()

    def release(self) -> None:
        """Remove the cgroup, take back the folders and free the user id. Call this when the program is gone.

        Processes that are left in the cgroup, or have the user id, are killed. A second call does only what the first call
        has not finished. It does not touch a freed user id, because another program may have it by then.
        """
        with self._lock:
            if self._lease is not None:
                self._lease.kill_processes()
            if self.cgroup is not None:
                self.cgroup.remove()
            if self._lease is not None:
                _change_owner(self._folders, os.getuid(), self._lease.uid)
                self._lease.release()
                self._lease = None

    def _hand_over(self, uid: int, folder: Path, access: Access) -> None:
        """Make user `uid` the owner of all folders in `access` except `readable`.

        Raises VoidGame if this user cannot read `folder`.
        """
        given = (access.scratch, access.link, access.home, *access.writable)
        self._folders = [path for path in given if path is not None]
        _change_owner(self._folders, uid)
        try:
            mode = folder.stat().st_mode
        except OSError as error:
            raise void_game(f"{folder}: {error.strerror}") from error
        if folder not in access.writable and mode & _READABLE_FOR_ALL != _READABLE_FOR_ALL:
            raise VoidGame(
                f"{folder} must be readable for everybody, because the referee is root and each bot runs as"
                f" another user: chmod -R o+rX {folder}"
            )


def _change_owner(folders: Sequence[Path], uid: int, former: int | None = None) -> None:
    """Make a user, and the group of the same number, the owner of folders and of everything in them. Follows no link.

    A file that also has a hard link outside the folders keeps its owner, unless it belongs to `former`. The reason: a
    program may have linked a file of the machine into its folder (possible with `fs.protected_hardlinks = 0`). Errors
    are ignored, because the program may remove or move a file at the same moment.

    Args:
        folders: the folders; none of them lies in another.
        uid: the new owner.
        former: the user id of the program that has ended; all files of this user change their owner. None when the
            folders are given to a program.
    """
    # one file may have names (hard links) in several of the folders
    names = Counter(_inode(status) for *_, status in _walk(folders) if status.st_nlink > 1)
    for descriptor, name, status in _walk(folders):
        # the link count of a folder depends on its subfolders, not on hard links
        is_folder = stat.S_ISDIR(status.st_mode)
        is_inside = is_folder or status.st_nlink <= max(1, names[_inode(status)])
        if is_inside or status.st_uid == former:
            with suppress(OSError):
                os.chown(name, uid, uid, dir_fd=descriptor, follow_symlinks=False)
    for folder in folders:
        with suppress(OSError):
            os.chown(folder, uid, uid, follow_symlinks=False)


def _walk(folders: Iterable[Path]) -> Iterator[tuple[int, str, os.stat_result]]:
    """Yield for each file and folder below `folders`: the descriptor of its parent folder, its name and its status."""
    for folder in folders:
        with suppress(OSError):
            for descriptor, inner, others in walk_folders(folder):
                for name in (*inner, *others):
                    with suppress(OSError):
                        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                        yield descriptor, name, status


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
