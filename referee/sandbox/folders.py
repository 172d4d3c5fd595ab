"""Create the temporary folders of a run and of its programs, and remove them, whatever the programs wrote there.

A run is one use of programs by a referee process: a tournament, a single game or the check of a bot. Its run folder
contains a folder for each program of the run, with the program's socket and scratch folder. A run locks the file
`lock` in its run folder. If a run is killed, its run folder and its programs remain, but the kernel
frees its lock. A later run finds the file unlocked, ends the programs of the killed run and removes its run folder.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from referee.errors import VoidGame

_BLOCK_KIB = 4
_RUN_PREFIX = "referee-"
"""Short, because the path of a socket is limited to about 100 bytes."""
_RUN_PATTERN = f"{_RUN_PREFIX}????????"
_LOCK = "lock"


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
        """The path for the program's socket. It has a folder of its own, because a sandbox shows the whole folder."""

    def scratch_kib(self, enough_kib: int) -> int:
        """Return the disk space that the scratch folder uses, in KiB; stop counting at `enough_kib`.

        Each file and folder counts as at least 4 KiB. Links are not followed, and unreadable folders count as empty.
        """
        size_kib = 0
        folders = [str(self.scratch)]
        while folders and size_kib < enough_kib:
            with suppress(OSError), os.scandir(folders.pop()) as entries:
                for entry in entries:
                    size_kib += _BLOCK_KIB
                    with suppress(OSError):
                        blocks = entry.stat(follow_symlinks=False).st_blocks  # of 512 bytes
                        size_kib += max(0, blocks // 2 - _BLOCK_KIB)
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                    if size_kib >= enough_kib:
                        break
        return size_kib

    def remove(self) -> None:
        """Remove the folder with its content; see `remove_folder`."""
        remove_folder(self.path)


def remove_folder(path: Path) -> None:
    """Remove as much as possible of a folder that a program could write to. Follow no link and open no pipe.

    Each subfolder is made accessible and moved beside `path` before it is emptied. So deep folders, long paths and
    missing access rights do not prevent the removal.
    """
    names = (path.with_name(f"{path.name}-{n}") for n in itertools.count())
    folders = [path]
    while folders:
        with suppress(OSError):
            folder = folders.pop()
            for entry in list(folder.iterdir()):
                with suppress(OSError):
                    if entry.is_dir() and not entry.is_symlink():
                        entry.chmod(0o700)
                        folders.append(entry.rename(next(names)))
                    else:
                        entry.unlink()
            folder.rmdir()


@contextmanager
def run_folder() -> Iterator[Path]:
    """Remove the folders of killed runs, and create a run folder. At the end, kill its programs and remove the folder."""
    for abandoned in Path(tempfile.gettempdir()).glob(_RUN_PATTERN):
        _remove_if_abandoned(abandoned)
    folder, lock = _create_and_lock(Path(tempfile.gettempdir()))
    try:
        yield folder
    finally:
        kill_programs(folder)
        _remove_run_folder(folder)
        os.close(lock)


def kill_programs(folder: Path) -> None:
    """Kill all processes whose environment variable REFEREE_ADDRESS names a socket in `folder`.

    A program dies with the referee's process that started it, but the program's child processes may still run.
    """
    address = f"unix:{folder}/"
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get("REFEREE_ADDRESS", "").startswith(address):
                process.kill()


def _create_and_lock(parent: Path) -> tuple[Path, int]:
    """Create a run folder and lock it; return the folder and the file descriptor of the lock.

    If another run removes the folder before this run has locked it, create a new folder.
    """
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_RUN_PREFIX, dir=parent))
        try:
            lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock).st_nlink:
            return folder, lock
        os.close(lock)


def _remove_run_folder(folder: Path) -> None:
    """Remove a run folder, and its lock file last.

    If this process is killed during the removal, a later run still finds the lock file and removes the rest.
    """
    with suppress(OSError):
        for entry in folder.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != _LOCK:
                entry.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _remove_if_abandoned(folder: Path) -> None:
    """If the run that created `folder` was killed, kill the processes that the run left and remove `folder`."""
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        with suppress(OSError):
            folder.rmdir()  # the run was killed before it created the lock
        return
    except OSError:
        return  # not a run folder, or the run folder of another user
    try:
        if os.fstat(lock).st_uid != os.getuid():
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        kill_programs(folder)
        _remove_run_folder(folder)
    except BlockingIOError:
        return  # the run is alive
    finally:
        os.close(lock)
