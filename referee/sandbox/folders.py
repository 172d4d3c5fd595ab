"""The folder of a bot process, and how nothing of it is left, whatever the bot has put there.

The folder in which a run keeps its sockets and scratch folders: short-named, and never left behind.

A run that was killed cannot remove its own, nor end what its bots had started. The next run does both,
since nobody holds the folder's lock any more.
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


class BotFolder:
    """A fresh folder, for the referee and one bot process alone.

    Raises `VoidGame` when there is no room for it.
    """

    def __init__(self, parent: Path) -> None:
        try:
            self.path = Path(tempfile.mkdtemp(prefix="bot-", dir=parent))
            self.scratch = self.path / "scratch"
            """What is the bot's own: HOME and TMPDIR."""
            self.scratch.mkdir(mode=0o700)
            link = self.path / "link"
            link.mkdir(mode=0o700)
        except OSError as error:
            raise VoidGame(f"no room for a bot's folder: {error}") from error
        self.socket = link / "socket"
        """In a folder of its own, so that the bot can be given that one and read only."""

    def scratch_kib(self, enough_kib: int) -> int:
        """How much of the disk the scratch folder takes; counting ends at `enough_kib`.

        Each name in it counts as one block at least. No link is followed; what cannot be read counts
        nothing.
        """
        size_kib = 0
        folders = [str(self.scratch)]
        while folders and size_kib < enough_kib:
            with suppress(OSError), os.scandir(folders.pop()) as entries:
                for entry in entries:
                    size_kib += _BLOCK_KIB
                    with suppress(OSError):
                        blocks = entry.stat(follow_symlinks=False).st_blocks
                        size_kib += max(0, blocks // 2 - _BLOCK_KIB)  # these are of 512 bytes
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                    if size_kib >= enough_kib:
                        break
        return size_kib

    def remove(self) -> None:
        """Remove it, as far as it can be."""
        remove(self.path)


def remove(path: Path) -> None:
    """Remove a folder that a bot could write to, as far as it can be. No link is followed, no pipe opened.

    A folder within is moved up before it is emptied: so it does not matter how deep they lie, how long
    their path is, and that they are locked.
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


_PREFIX = "referee-"
_PATTERN = f"{_PREFIX}????????"
_LOCK = "lock"


@contextmanager
def run_folder() -> Iterator[Path]:
    """A fresh private folder, removed at the end; those of dead runs are removed first."""
    _remove_abandoned()
    folder, lock = _make(Path(tempfile.gettempdir()))
    try:
        yield folder
    finally:
        end_processes(folder)
        _remove(folder)
        os.close(lock)


def _remove_abandoned() -> None:
    """Remove the folders of dead runs, and end what is left of their bots."""
    for folder in Path(tempfile.gettempdir()).glob(_PATTERN):
        _remove_if_abandoned(folder)


def end_processes(folder: Path) -> None:
    """End whatever was started by bots whose sockets are in a folder, and is still there.

    A bot dies with its worker, what it has started in turn need not.
    """
    address = f"unix:{folder}/"
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get("REFEREE_ADDRESS", "").startswith(address):
                process.kill()


def _make(parent: Path) -> tuple[Path, int]:
    """A new folder and its lock, held. Another run may take it for abandoned before it is locked."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        try:
            lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock).st_nlink:
            return folder, lock
        os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a folder, its lock last: whoever is killed here leaves something that others can remove."""
    with suppress(OSError):
        for entry in folder.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != _LOCK:
                entry.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _remove_if_abandoned(folder: Path) -> None:
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        with suppress(OSError):
            folder.rmdir()  # its run died before it had put anything there
        return
    except OSError:
        return  # not a run's, or another user's
    try:
        if os.fstat(lock).st_uid != os.getuid():
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        end_processes(folder)
        _remove(folder)
    except BlockingIOError:
        return  # its run is alive
    finally:
        os.close(lock)
