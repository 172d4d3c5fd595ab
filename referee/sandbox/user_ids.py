"""Give each program a user id of its own, kill the processes with this id, and remove what they leave behind.

A referee that is root locks an id before it gives the id to a program. The lock is a file in a folder that only root
can enter, so no program can take the lock. The kernel frees the lock when the referee's process ends, so a killed
referee leaves no lock behind. If it leaves processes behind, no program gets their id until they have ended.

A program on the rung `uid` shares the folders for temporary files with all users if the kernel refuses a private view of
the files (`private_options` in `start`), for instance in a container without CAP_SYS_ADMIN. So when the program is gone,
`UserIdLease.remove_leftovers` removes what the program's user has left there, and the shared memory, semaphores and
message queues of this user.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from referee.errors import Shortage, VoidGame, void_game
from referee.sandbox.folders import remove_folder
from referee.sandbox.process_tree import has_ended
from referee.sandbox.sweeper import SWEEPER
from referee.sandbox.system_v import REMOVER, list_objects

_USER_IDS = (range(66_000, 67_000, 2), range(61_184, 62_184, 2))
"""Linux distributions leave the first range free. The second belongs to systemd, which uses few ids of it.

A program gets an even id. The helpers `sweeper.py` and `system_v.py` use the odd id above it, so that the program cannot
kill them; see `sweeper.kill_user`.
"""
_KILL_LIMIT_S = 20.0
"""After this time, `UserIdLease.kill_processes` gives up. It waits so long only if the kernel cannot end a process, if
the machine lacks file descriptors, or if the helper cannot be started."""
_PAUSE_S = 0.005
_FOLDER = "referee-user-ids"
_PARENTS = ("/run", "/var/lib", tempfile.gettempdir())
"""Where the folder with the locks may lie. `_open_folder` takes the first place where a safe folder exists or can be
created."""
_SHARED_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock")  # noqa: S108 - everybody may write there


class UserIdLease:
    """A user id that no referee on this machine gives to another program until the lease is released."""

    def __init__(self, uid: int, lock: int, path: Path) -> None:
        self.uid = uid
        self.path = path
        """The locked file."""
        self._lock: int | None = lock
        """The file descriptor of the locked file; None after `release`."""

    def send_kill(self) -> None:
        """Send SIGKILL to all processes of the user, and do not wait for their end. Call this before `release`.

        The helper kills all of them at once, so no process can escape by starting others faster than they are killed.
        """
        with suppress(OSError):  # the helper cannot be started; `kill_processes` tries again
            self._run_helper(SWEEPER)

    def kill_processes(self) -> None:
        """Kill all processes of the user, and wait until none runs. Call this before `release`.

        If the machine lacks file descriptors to list processes, this also waits until some are free. Gives up after 20
        seconds.

        A process ends only when it gets a core. So give its cgroup the normal scheduling between `send_kill` and this
        call.
        """
        until_s = time.monotonic() + _KILL_LIMIT_S
        while self._may_run() and time.monotonic() < until_s:
            self.send_kill()
            time.sleep(_PAUSE_S)

    def remove_leftovers(self) -> None:
        """Remove what the user has left in the folders for temporary files, and its shared memory, semaphores and queues.

        Call this after `kill_processes`. Files and folders of the user are removed only if they lie directly in the folders
        for temporary files. A folder is removed with everything in it.
        """
        _remove_files(self.uid)
        if list_objects(self.uid):
            # if the helper cannot be started, this is tried again after the next program that gets this user id
            with suppress(OSError):
                self._run_helper(REMOVER)

    def _run_helper(self, command: list[str]) -> None:
        """Run a helper with the user id as its argument. Raises OSError if it cannot be started.

        The helper holds the lock too. If the referee is killed, the helper may still run. Without the lock, another
        referee could give the user id to a program, and the helper would treat that program and its objects as leftovers.
        """
        assert self._lock is not None  # noqa: S101 - the caller still has the lease
        subprocess.run(
            [*command, str(self.uid)],
            env={},
            stdin=subprocess.DEVNULL,
            pass_fds=(self._lock,),
            check=False,
        )

    def _may_run(self) -> bool:
        """Return whether processes of the user run, or cannot be listed."""
        try:
            return bool(list_pids(self.uid))
        except OSError:
            return True

    def release(self) -> None:
        """Free the user id. Call this when no process has it any more. A second call does nothing."""
        if self._lock is not None:
            # closing is not enough: a process that is being started may have a copy of the descriptor
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)
            self._lock = None


def lease_user_id() -> UserIdLease | None:
    """Lock a free user id; return None if the referee is not root.

    Raises VoidGame if no id is free, or if the locks have no safe place.
    """
    if os.geteuid() != 0:
        return None
    if not (candidates := _available_user_ids()):
        raise VoidGame(
            "this machine has no user ids for bots: give the container the user ids 61184 to 62183"
        )
    folder, path = _open_folder()
    try:
        for uid in candidates:
            if any(map(_has_account, (uid, uid + 1))):
                continue
            if (lock := _lock(folder, uid)) is not None:
                return UserIdLease(uid, lock, path / str(uid))
    except OSError as error:
        raise void_game(f"no user id for a bot: {error}") from error
    finally:
        os.close(folder)
    raise Shortage("all user ids for bots are in use: end other referees")


def list_pids(uid: int) -> list[int]:
    """Return the processes of a user that still run. A zombie does not run."""
    return [pid for pid, owner in _list_owners() if owner == uid and not has_ended(pid)]


def shared_folders() -> set[Path]:
    """Return the folders for temporary files, without those that lie in another one."""
    folders = {Path(each).resolve() for each in (*_SHARED_FOLDERS, tempfile.gettempdir())}
    folders = {folder for folder in folders if folder.is_dir()}
    return {folder for folder in folders if folders.isdisjoint(folder.parents)}


def _remove_files(uid: int) -> None:
    """Remove what a user has left directly in the folders for temporary files."""
    for folder in shared_folders():
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in list(entries):
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_uid != uid:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        remove_folder(Path(entry.path))
                    else:
                        Path(entry.path).unlink()


def _open_folder() -> tuple[int, Path]:
    """Open the folder with the locks, and return its file descriptor and its path. Create it if it is missing.

    Raises VoidGame if no safe folder exists or can be created in any of `_PARENTS`. A safe folder belongs to root and
    gives other users no access.
    """
    reasons = []
    for parent in _PARENTS:
        path = Path(parent, _FOLDER)
        try:
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            reasons.append(str(error))
            continue
        status = os.fstat(folder)
        if status.st_uid == 0 and not stat.S_IMODE(status.st_mode) & 0o077:
            return folder, path
        os.close(folder)
        reasons.append(f"{path} must belong to root, with mode 0700")
    raise void_game(f"no user id for a bot can be locked: {'; '.join(reasons)}")


def _lock(folder: int, uid: int) -> int | None:
    """Return a descriptor that locks `uid`; None if another process has locked it, or a process runs as `uid` or `uid + 1`.

    Raises OSError if the file cannot be opened, or cannot be locked for another reason, or if processes cannot be listed.
    """
    flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    lock = os.open(str(uid), flags, 0o600, dir_fd=folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Check this only after locking. Before, another referee with the lock could start processes with these ids, and be killed.
        is_free = {uid, uid + 1}.isdisjoint(owner for _, owner in _list_owners())
    except BlockingIOError:
        is_free = False
    except BaseException:
        os.close(lock)
        raise
    if is_free:
        return lock
    os.close(lock)
    return None


def _has_account(uid: int) -> bool:
    """Return whether a user id belongs to a real account of this machine."""
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


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


def _list_owners() -> Iterator[tuple[int, int]]:
    """Yield the process id and the user id of each process of this machine."""
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdecimal():
                with suppress(OSError):  # the process is gone
                    yield int(entry.name), entry.stat().st_uid
