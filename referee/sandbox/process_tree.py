"""Find all processes that a program has started, directly or indirectly.

A process tree is a program with all its descendants. On Linux the referee's process makes itself a subreaper. Then
every orphan process of its programs becomes a child of the referee's process. An orphan process belongs to a program
if it is in the session of that program or has that program's token in its environment. If neither is true for any
program, the owner is unknown. `ProcessGroup.kill` also kills all orphan processes whose owner is unknown.

If the referee's process itself is killed, its sweeper (`sweeper.py`) kills all process trees.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

_PR_SET_CHILD_SUBREAPER = 36
_SWEEPER = [sys.executable, "-I", "-S", str(Path(__file__).with_name("sweeper.py"))]
TOKEN = "REFEREE_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable that contains the token of a program: a secret that no other program is given."""


class ProcessTrees:
    """The programs that this process has started and not ended yet, with their process trees."""

    def __init__(self) -> None:
        self._tokens: dict[int, str] = {}
        """The token of each program, by the program's pid."""
        self._starting = 0
        """How many programs are being started now. A program may run before `add` registers it."""
        self._sweeper: int | None = None
        """The writing end of the pipe to the sweeper."""

    @contextmanager
    def expect_start(self) -> Iterator[None]:
        """Do not treat a new program as an orphan process before `add` registers the program.

        Start the program and call `add` inside this context. The first call also starts the sweeper. Raises OSError
        if the machine lacks resources for the sweeper.
        """
        if self._sweeper is None and sys.platform == "linux":
            self._sweeper = _start_sweeper()
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._starting += 1
        try:
            yield
        finally:
            self._starting -= 1

    def add(self, pid: int, token: str) -> None:
        """Register a program that was started in a session of its own."""
        self._tokens[pid] = token
        self._tell_sweeper(f"+{pid} {token}")

    def discard(self, pid: int) -> None:
        """Remove a program whose process tree is gone."""
        if self._tokens.pop(pid, None) is not None:
            self._tell_sweeper(f"-{pid}")

    def _tell_sweeper(self, line: str) -> None:
        if self._sweeper is not None:
            with suppress(BrokenPipeError):  # somebody has killed the sweeper
                os.write(self._sweeper, f"{line}\n".encode())

    def list_descendants(self, pid: int) -> list[psutil.Process]:
        """Return the process tree of a program, without the program itself.

        The list includes zombies, and orphan processes whose owner is unknown. The list includes no
        registered program, because the event loop waits for these programs.
        """
        descendants = _descendants(pid)
        for child in psutil.Process().children():
            if child.pid not in self._tokens and self._owner(child.pid) in (pid, None):
                descendants.append(child)
                if not _is_zombie(
                    child
                ):  # a program can leave thousands; each search reads all of /proc
                    descendants += _descendants(child.pid)
        return descendants

    def list_pids(self, pid: int) -> list[int]:
        """Return the pids in the tree of a program, without the program itself.

        Orphan processes whose owner is unknown are not included. A call is much cheaper than `list_descendants`, but
        may miss a process if processes start or end during the call.
        """
        pids = _descendant_pids(pid)
        for child in _child_pids(os.getpid()):
            if child not in self._tokens and self._owner(child) == pid:
                pids += [child, *_descendant_pids(child)]
        return pids

    def reap(self) -> None:
        """Remove the zombies of orphan processes that have ended, because nothing else waits for these processes.

        If no process has ended, a call takes a microsecond.
        """
        if sys.platform != "linux":
            return
        with suppress(ChildProcessError):
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if ended.si_pid in self._tokens or self._owner(ended.si_pid) == os.getpid():
                    return  # the event loop waits for this process
                os.waitpid(ended.si_pid, 0)

    def _owner(self, child: int) -> int | None:
        """Return the pid of the program that a child of this process belongs to.

        Returns this process's own pid for a child that belongs to no program, and None if the owner is unknown.
        """
        try:
            session = os.getsid(child)
        except ProcessLookupError:
            return os.getpid()
        in_own = session == os.getsid(0)  # the referee's session; no program can enter it
        if in_own or (session == child and self._starting):
            return os.getpid()
        if session in self._tokens:
            return session
        try:
            process = psutil.Process(child)
            if process.cmdline() == _SWEEPER and Path(process.exe()).samefile(sys.executable):
                return os.getpid()  # the sweeper of another process of the referee
            token = process.environ().get(TOKEN)
        except (psutil.Error, OSError):
            return None
        return next((pid for pid, known in self._tokens.items() if known == token), None)


PROCESS_TREES = ProcessTrees()
"""The process trees of this process. All launchers share this object, because the programs of all launchers are
children of this process."""


def _start_sweeper() -> int:
    """Start the sweeper and return the writing end of the pipe to the sweeper.

    The sweeper kills the process trees when the writing end closes. The sweeper is no child of this process and has
    its own session, so Ctrl-C does not reach the sweeper. Raises OSError if the machine lacks resources.
    """
    reader, writer = os.pipe()
    try:
        starter = os.posix_spawn(
            sys.executable,
            _SWEEPER,
            {},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, reader, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
    except OSError:
        os.close(writer)
        raise
    finally:
        os.close(reader)
    os.waitpid(starter, 0)
    return writer


def read_proc_file(path: str) -> bytes:
    """Return the content of a small file in /proc, in half the time that a file object takes.

    Raises OSError if the process is gone.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)


def kill_all(processes: Iterable[psutil.Process]) -> None:
    """Send SIGKILL to all processes that still exist."""
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def _descendant_pids(pid: int) -> list[int]:
    pids = _child_pids(pid)
    for child in pids:  # the list grows during the loop
        pids += _child_pids(child)
    return pids


def _child_pids(pid: int) -> list[int]:
    """Return the pids of the children of a process, from the lists in /proc for each thread of the process.

    These lists are cheaper than psutil, which reads the parent of every process of the machine.
    """
    pids: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names, not paths
            with suppress(OSError):
                children = read_proc_file(f"/proc/{pid}/task/{thread}/children")
                pids += map(int, children.split())
    return pids


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _is_zombie(process: psutil.Process) -> bool:
    """Return whether a process has ended, so that it has no children.

    A process whose main thread has ended also looks like a zombie, but its other threads can have children.
    """
    try:
        return process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1
    except psutil.Error:  # the process is gone
        return True
