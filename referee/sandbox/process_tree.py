"""Whose a process is: the programs that were started here, and what each of them has started in turn.

When this process itself is killed, its sweeper ends them all (`sweeper`).

An orphan of a program is adopted by this process, which has made itself a subreaper (Linux). It counts as
the program's in whose session it is, or whose token it has in its environment. One that has left both
could be anybody's, and goes with the first program that is ended.
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
"""What tells the bots of a run apart; a variable of their environment."""


class ProcessTrees:
    """The programs of this process that have not been ended yet, and their families."""

    def __init__(self) -> None:
        self._tokens: dict[int, str] = {}
        """By the pid of the program."""
        self._starting = 0
        self._sweeper: int | None = None
        """The descriptor by which it is told."""

    @contextmanager
    def starting(self) -> Iterator[None]:
        """While a program is being started: it may be there and not be known yet.

        Raises OSError when the machine has no room for the sweeper.
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
        """A program has been started, in a session of its own."""
        self._tokens[pid] = token
        self._tell(f"+{pid} {token}")

    def discard(self, pid: int) -> None:
        """A program and its family are gone."""
        if self._tokens.pop(pid, None) is not None:
            self._tell(f"-{pid}")

    def _tell(self, line: str) -> None:
        if self._sweeper is not None:
            with suppress(BrokenPipeError):  # somebody has killed it
                os.write(self._sweeper, f"{line}\n".encode())

    def of(self, pid: int) -> list[psutil.Process]:
        """The family of a program: not itself, but also what has ended and waits to be noticed.

        Never another program, whatever that one claims to be: the event loop waits for it.
        """
        family = _below(pid)
        for child in psutil.Process().children():
            if child.pid not in self._tokens and self._owner(child.pid) in (pid, None):
                family += [child, *_below(child.pid)]
        return family

    def pids(self, pid: int) -> list[int]:
        """The family of a program, but those of whom nobody knows whose they are.

        Takes much less than `of`, and may overlook what is just coming or going.
        """
        family = _pids_below(pid)
        for child in _children(os.getpid()):
            if child not in self._tokens and self._owner(child) == pid:
                family += [child, *_pids_below(child)]
        return family

    def reap(self) -> None:
        """Forget orphans that have ended by themselves: nobody else waits for them.

        Costs a microsecond where there is none.
        """
        if sys.platform != "linux":
            return
        with suppress(ChildProcessError):
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if ended.si_pid in self._tokens or self._owner(ended.si_pid) == os.getpid():
                    return  # somebody waits for that one
                os.waitpid(ended.si_pid, 0)

    def _owner(self, child: int) -> int | None:
        """Of a child of this process: the program's pid, this process's for its own; None if unknown."""
        try:
            session = os.getsid(child)
        except ProcessLookupError:
            return os.getpid()
        in_own = session == os.getsid(0)  # bots cannot get there
        if in_own or (session == child and self._starting):
            return os.getpid()
        if session in self._tokens:
            return session
        try:
            process = psutil.Process(child)
            if process.cmdline() == _SWEEPER and Path(process.exe()).samefile(sys.executable):
                return os.getpid()  # of a process of the referee that this one has started
            token = process.environ().get(TOKEN)
        except (psutil.Error, OSError):
            return None
        return next((pid for pid, known in self._tokens.items() if known == token), None)


def _start_sweeper() -> int:
    """Start the sweeper; the descriptor by which it is told, and whose end it waits for.

    It is nobody's child, and in a session of its own: Ctrl-C is not for it.
    """
    told, telling = os.pipe()
    try:
        starter = os.posix_spawn(
            sys.executable,
            _SWEEPER,
            {},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, told, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
    except OSError:
        os.close(telling)
        raise
    finally:
        os.close(told)
    os.waitpid(starter, 0)
    return telling


PROCESS_TREES = ProcessTrees()
"""The one of this process: children belong to a process, however many launchers it has."""


def read(path: str) -> bytes:
    """A small file of /proc; in half the time that a file object takes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)


def kill(processes: Iterable[psutil.Process]) -> None:
    """Send SIGKILL; those that have ended need it no more."""
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def _pids_below(pid: int) -> list[int]:
    family = _children(pid)
    for child in family:  # grows meanwhile
        family += _children(child)
    return family


def _children(pid: int) -> list[int]:
    """As the threads of a process have them: asking all processes for their parents takes longer."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names, not paths
            with suppress(OSError):
                found += map(int, read(f"/proc/{pid}/task/{thread}/children").split())
    return found


def _below(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
