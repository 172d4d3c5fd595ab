"""The folder in which a run keeps its sockets and scratch folders: short-named, and never left behind.

A run that was killed cannot remove its own, nor end what its bots had started. The next run does both,
since nobody holds the folder's lock any more.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

_PREFIX = "referee-"
_PATTERN = f"{_PREFIX}????????"
_LOCK = "lock"


@contextmanager
def run_folder() -> Iterator[Path]:
    """A fresh private folder, removed at the end; those of dead runs are removed first."""
    parent = Path(tempfile.gettempdir())
    for folder in parent.glob(_PATTERN):
        _remove_if_abandoned(folder)
    folder, lock = _make(parent)
    try:
        yield folder
    finally:
        end_processes(folder)
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


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
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return  # its run is alive
    finally:
        os.close(lock)
