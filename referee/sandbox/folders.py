"""Create the temporary folders of a run and of its programs, and remove them, whatever the programs wrote there.

A run is one use of programs by a referee process, such as a tournament, a single game or the check of a bot. Its run folder
contains a folder for each program of the run, with the program's socket and scratch folder. All run folders of a user
lie in one folder, `referee-UID` in the folder for temporary files. Only this user can write there, so nobody else can
plant a link or a folder that looks like a run folder.

A run locks the file `lock` in its run folder. If a run is killed, the kernel frees its lock. But its run folder remains,
and processes of its programs may still run. A later run finds the file unlocked, kills these processes and removes that
run folder.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from referee.errors import RefereeError, UserError, VoidGame
from referee.sandbox.process_tree import has_variable

_BLOCK_KIB = 4
_WALKS = 10
"""The maximum number of walks in one call of `scratch_kib`."""
_LOCK = "lock"
_NOT_IN_ADDRESSES = re.compile(r"[^A-Za-z0-9._~!$&'()*+;=:@/-]")
"""Matches characters that the address `unix:PATH` of a socket cannot contain. gRPC for Java accepts only characters of a URI.
gRPC for other languages gives a special meaning to a comma."""
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""The flags that open a folder, but no link to a folder."""
_WRITABLE_BY_OTHERS = 0o022
"""The mode bits that let other users write into a folder."""


def find_home() -> Path | None:
    """Return the home folder of the referee's user; None if HOME is not set and the user has no account."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def require_home() -> Path:
    """Return the home folder of the referee's user. Raises UserError if there is none."""
    if (home := find_home()) is None:
        raise UserError(
            f"user {os.getuid()} has no account and no home folder: set HOME to a folder of this user"
        )
    return home


class ProgramFolder:
    """A new folder for one program. Only the referee's user can enter the folder at first.

    Raises `VoidGame` if the folder cannot be created.
    """

    def __init__(self, parent: Path) -> None:
        try:
            self.path = Path(tempfile.mkdtemp(prefix="bot-", dir=parent))
            self.scratch = self.path / "scratch"
            """The scratch folder: the program's HOME and TMPDIR."""
            self.scratch.mkdir(mode=0o700)
            link = self.path / "link"
            link.mkdir(mode=0o700)
        except OSError as error:
            raise VoidGame(f"no room for a bot's folder: {error}") from error
        self.socket = link / "socket"
        """The path for the program's socket. The socket has a folder of its own, because a sandbox shows this whole folder."""

    def scratch_kib(self, enough_kib: int) -> int:
        """Return the disk space that the scratch folder uses, in KiB; stop counting at `enough_kib`.

        Each file and folder counts as at least 4 KiB. Links are not followed, and unreadable folders count as empty.
        Files that have no name any more are not counted. If the program moves a folder during a walk, this walk ends and a
        new one begins, up to `_WALKS` walks in all. Then the largest result of these walks is returned.
        """
        largest_kib = 0
        for _ in range(_WALKS):
            size_kib, is_whole = self._walk_scratch(enough_kib)
            largest_kib = max(largest_kib, size_kib)
            if is_whole:
                break
        return largest_kib

    def _walk_scratch(self, enough_kib: int) -> tuple[int, bool]:
        """Return the size in KiB that one walk finds, and False if the program has moved a folder meanwhile, otherwise True.

        See `scratch_kib`.
        """
        size_kib = 0
        try:
            for descriptor, folders, others in walk_folders(self.scratch):
                for name in (*folders, *others):
                    size_kib += _BLOCK_KIB
                    with suppress(OSError):
                        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                        blocks = status.st_blocks  # of 512 bytes
                        size_kib += max(0, blocks // 2 - _BLOCK_KIB)
                    if size_kib >= enough_kib:
                        return size_kib, True
        except OSError as error:
            return size_kib, error.errno != errno.ESTALE
        return size_kib, True

    def remove(self) -> None:
        """Remove the folder with its content; see `remove_folder`."""
        remove_folder(self.path)


def walk_folders(
    folder: Path, *, unlock: bool = False
) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield each folder below `folder`, and at last `folder` itself. Each folder comes after its subfolders.

    For each folder, yields a file descriptor, the names of its subfolders, and all other names in the folder.

    The walk opens folders by descriptors and never follows a link, even if a program replaces a folder by a link
    during the walk. It keeps one descriptor open, however deep the folders are. It leaves out the content of
    folders that cannot be opened or listed.

    Args:
        folder: the folder to walk through.
        unlock: give the owner all rights to each folder before it is opened.

    Raises OSError if `folder` cannot be opened or listed, or if a program moves a folder during the walk.
    """
    descriptor, (folders, others) = _open_and_list(folder, unlock=unlock)
    try:
        waiting = folders.copy()
        parents: list[tuple[tuple[int, int], list[str], list[str], list[str]]] = []
        while True:
            if waiting:
                with suppress(OSError):
                    inner, names = _open_and_list(waiting.pop(), descriptor, unlock=unlock)
                    parents.append((_identity(descriptor), folders, others, waiting))
                    os.close(descriptor)
                    descriptor, (folders, others) = inner, names
                    waiting = folders.copy()
                continue
            yield descriptor, folders, others
            if not parents:
                return
            identity, folders, others, waiting = parents.pop()
            outer = _open_folder("..", descriptor)
            os.close(descriptor)
            descriptor = outer
            if _identity(descriptor) != identity:
                raise OSError(errno.ESTALE, "a folder was moved while it was read", str(folder))
    finally:
        os.close(descriptor)


def _open_and_list(
    name: Path | str, parent: int | None = None, *, unlock: bool = False
) -> tuple[int, tuple[list[str], list[str]]]:
    """Open a folder, and return its file descriptor and the result of `_list_names`. See `_open_folder` for the arguments."""
    descriptor = _open_folder(name, parent, unlock=unlock)
    try:
        return descriptor, _list_names(descriptor)
    except BaseException:
        os.close(descriptor)
        raise


def _open_folder(name: Path | str, parent: int | None = None, *, unlock: bool = False) -> int:
    """Open a folder, but no link to a folder, and return the file descriptor.

    Args:
        name: the path of the folder, relative to `parent`.
        parent: a file descriptor of the parent folder; None if `name` is an absolute path.
        unlock: give the owner all rights to the folder.
    """
    if unlock:
        place = os.open(name, os.O_PATH | _FOLDER, dir_fd=parent)
        try:
            # if this fails, for instance for the folder of another user, `os.open` below may still succeed
            with suppress(OSError):
                os.chmod(f"/proc/self/fd/{place}", 0o700)  # noqa: PTH101 - cannot follow a planted link
        finally:
            os.close(place)
    descriptor = os.open(name, os.O_RDONLY | _FOLDER, dir_fd=parent)
    # without search permission (x) on this folder, its `..` cannot be opened later
    if not os.access(".", os.X_OK, dir_fd=descriptor):
        os.close(descriptor)
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(name))
    return descriptor


def _list_names(descriptor: int) -> tuple[list[str], list[str]]:
    """Return the names of all folders in a folder, and all other names."""
    folders: list[str] = []
    others: list[str] = []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            (folders if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
    return folders, others


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def remove_folder(path: Path) -> None:
    """Remove as much as possible of a folder that a program could write to. Follow no link and open no pipe.

    Deep folders, long paths and missing access rights do not prevent the removal. The files of `path` itself are
    removed at the end, after all its subfolders. A file `lock` is removed only if nothing else is left in its folder.
    """
    with suppress(OSError):
        for descriptor, folders, others in walk_folders(path, unlock=True):
            for name in folders:
                with suppress(OSError):
                    os.rmdir(name, dir_fd=descriptor)
            for name in others:
                if name != _LOCK:
                    with suppress(OSError):
                        os.unlink(name, dir_fd=descriptor)
            # Remove the lock of a run folder last: a later run removes a run folder without a lock only if it is empty.
            with suppress(OSError):
                if _LOCK in others and os.listdir(descriptor) == [_LOCK]:  # noqa: PTH208 - a descriptor
                    os.unlink(_LOCK, dir_fd=descriptor)
    with suppress(OSError):
        path.rmdir()


@contextmanager
def run_folder() -> Iterator[Path]:
    """Remove the folders of killed runs, and create a run folder. At the end, kill its programs and remove the folder.

    Raises RefereeError if the folder of all run folders cannot be used, see `_create_and_share`. Raises UserError if its
    path contains a character that the address of a socket cannot contain.
    """
    with _folder_of_runs() as parent:
        for abandoned in parent.iterdir():
            _remove_if_abandoned(abandoned)
        folder, lock = _create_and_lock(parent)
        try:
            yield folder
        finally:
            kill_programs(folder)
            remove_folder(folder)
            os.close(lock)


@contextmanager
def _folder_of_runs() -> Iterator[Path]:
    """Yield the folder of all run folders of this user, and create it if it is missing.

    At the end, remove the folder if it is empty and no other run uses it. Every run holds a shared lock of the folder, so
    that no other run removes it.

    On the rung `uid` and for a probe, other users may pass through this folder, because each program may have a user of
    its own. They cannot list the folder, and the names of run folders cannot be guessed.
    """
    folder = Path(tempfile.gettempdir(), f"referee-{os.geteuid()}")
    unusable = _NOT_IN_ADDRESSES.search(str(folder))
    if unusable is not None:
        raise UserError(
            f"{folder}: the address of a socket cannot contain {unusable[0]!r}: set TMPDIR to another folder"
        )
    descriptor = _create_and_share(folder)
    try:
        yield folder
    finally:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            folder.rmdir()
        os.close(descriptor)


def _create_and_share(folder: Path) -> int:
    """Create the folder of all run folders if it is missing, and take a shared lock on it. Return its file descriptor.

    Raises RefereeError if `folder` is a link or a file, belongs to another user, or can be written by other users.
    """
    while True:
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        try:
            descriptor = os.open(folder, os.O_RDONLY | _FOLDER)
        except FileNotFoundError:
            continue  # another run has removed it
        except OSError as error:
            if error.errno not in {errno.ELOOP, errno.ENOTDIR, errno.EACCES}:
                raise
            raise _occupied_error(folder) from error
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & _WRITABLE_BY_OTHERS:
            os.close(descriptor)
            raise _occupied_error(folder)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # another run has removed the folder


def _occupied_error(folder: Path) -> RefereeError:
    return RefereeError(
        f"{folder}: not a folder that only you can write to; remove it,"
        " or set TMPDIR to a folder of your own"
    )


def kill_programs(folder: Path) -> None:
    """Kill all processes whose environment variable REFEREE_ADDRESS names a socket in `folder`.

    A program dies with the referee's process that started it, but the program's child processes may still run.
    """
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if has_variable(process, f"REFEREE_ADDRESS=unix:{folder}/"):
                process.kill()


def _create_and_lock(parent: Path) -> tuple[Path, int]:
    """Create a run folder and lock it; return the folder and the file descriptor of the lock.

    If another run removes the folder before this run has locked it, create a new folder. The name of the folder is
    short, because the path of a socket is limited to about 100 bytes.
    """
    while True:
        folder = Path(tempfile.mkdtemp(prefix="", dir=parent))
        try:
            lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock).st_nlink:
            return folder, lock
        os.close(lock)


def _remove_if_abandoned(folder: Path) -> None:
    """If the run that created `folder` was killed, kill the processes that the run left and remove `folder`."""
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        with suppress(OSError):
            # Either the run was killed before it created the lock, or it is alive and about to create the lock. In
            # the second case it will notice that its folder is gone, and create a new one.
            folder.rmdir()
        return
    except OSError:
        return  # not a run folder
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        kill_programs(folder)
        # This removes the lock at the end. If this process is killed before that, a later run finds the lock and removes
        # the rest.
        remove_folder(folder)
    except BlockingIOError:
        return  # the run is alive
    finally:
        os.close(lock)
