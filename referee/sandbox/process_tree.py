"""Find all processes that a program has started, directly or indirectly.

A process tree is a program with all its descendants. On Linux the referee's process makes itself a subreaper. Then
every orphan process of its programs becomes a child of the referee's process. An orphan process belongs to a program
if it is in the session of that program, has that program's own user, or has that program's mark (see `create_mark`). If
none of this is true for any program, the owner is unknown. `ProcessTrees.kill` also kills all orphan processes whose
owner is unknown.

If the referee's process itself is killed, its sweeper (`sweeper.py`) kills all process trees.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from referee.errors import void_game
from referee.sandbox.sweeper import SWEEPER, start_sweeper

_PR_SET_CHILD_SUBREAPER = 36
_KILL_LIMIT_S = 20.0
"""After this time, `ProcessTrees.kill` gives up."""
_REAP_LIMIT = 2000
"""How many zombies `ProcessTrees.reap` removes at most. A program could leave new ones faster than they are removed."""
_REAP_CALLS = 20
"""How many times `ProcessTrees.kill` calls `reap` at most, for a program that has left many thousands of zombies."""
_PAUSE_S = 0.002
"""How long `ProcessTrees.kill` waits before it looks whether the killed processes are gone."""
_MARK_LINE = b"\nMax file locks"
"""The beginning of the line in /proc/PID/limits that contains the mark."""
_SWEEPER_ARGUMENTS = b"".join(os.fsencode(word) + b"\0" for word in SWEEPER)
"""The content of /proc/PID/cmdline of a sweeper."""


def create_mark() -> int:
    """Return a new mark, which differs from the marks of all other programs.

    The shim sets the mark as a resource limit that Linux has not enforced since 2.4.25 (RLIMIT_LOCKS). All processes of
    the program inherit the mark, whatever they do to their session and their environment. The kernel shows it even for
    zombies. A process can replace its mark by a smaller number; root can replace it by any number. If no program has
    the new number as its mark, the mark no longer tells the owner.
    """
    return 1 + secrets.randbits(56)


class ProcessTrees:
    """The programs that this process has started and not ended yet, with their process trees."""

    def __init__(self) -> None:
        self._programs: dict[int, int | None] = {}
        """A pidfd of each program, by the pid. None if it could not be opened. The pid may be reused, but the pidfd always
        means the same process."""
        self._marks: dict[int, int] = {}
        """The pid of each program with a mark, by the mark."""
        self._users: dict[int, int] = {}
        """The pid of each program that has a user id of its own, by the user id."""
        self._ended: Counter[int] = Counter()
        """How many orphan processes of each program have ended since the last `count_ended`, by the program's pid."""
        self._starting = 0
        """How many programs are being started now. A program may run before `add` registers it."""
        self.before_reap: Callable[[int, int], None] | None = None
        """Called before the zombie of an orphan process is removed, with the pid of the program and the pid of the zombie.
        The zombie keeps its pid until it is removed."""
        self._sweeper: int | None = None
        """The writing end of the pipe to the sweeper."""

    @contextmanager
    def expect_start(self) -> Iterator[None]:
        """Do not treat a new program as an orphan process before `add` registers the program.

        Start the program and call `add` inside this context. The first call also starts the sweeper. Raises VoidGame
        if the sweeper cannot be started.
        """
        if self._sweeper is None and sys.platform == "linux":
            try:
                self._sweeper = start_sweeper()
            except OSError as error:
                raise void_game(f"the sweeper cannot be started: {error}") from error
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._starting += 1
        try:
            yield
        finally:
            self._starting -= 1

    def add(
        self, pid: int, mark: int = 0, uid: int | None = None, lock_file: Path | None = None
    ) -> None:
        """Register a program that was started in a session of its own.

        Args:
            pid: the process id of the program.
            mark: the mark of the program; 0 if it has none.
            uid: the user id that only this program has; None if it shares a user id with others.
            lock_file: the file whose lock reserves `uid`; the sweeper must hold this lock to kill processes by their user id.
        """
        self._programs[pid] = _open_pidfd(pid)
        if mark:
            self._marks[mark] = pid
        if uid is not None:
            self._users[uid] = pid
        self._tell_sweeper(f"+{pid} {uid or 0} {mark} {lock_file or ''}")

    def discard(self, pid: int) -> None:
        """Remove a program whose process tree is gone."""
        if pid in self._programs:
            descriptor = self._programs.pop(pid)
            if descriptor is not None:
                os.close(descriptor)
            self._users = {uid: owner for uid, owner in self._users.items() if owner != pid}
            self._marks = {mark: owner for mark, owner in self._marks.items() if owner != pid}
            self._ended.pop(pid, None)
            self._tell_sweeper(f"-{pid}")

    def _tell_sweeper(self, line: str) -> None:
        if self._sweeper is not None:
            with suppress(BrokenPipeError):  # somebody has killed the sweeper
                os.write(self._sweeper, os.fsencode(f"{line}\n"))

    def list_descendants(self, pid: int) -> list[int]:
        """Return the pids in the tree of a program, without the program itself.

        The list includes zombies, and orphan processes whose owner is unknown. It does not include registered programs,
        because these children of this process are not orphan processes.
        """
        descendants = _descendants(pid)
        for child in (each.pid for each in psutil.Process().children()):
            if self._is_orphan_of(child, pid):
                descendants.append(child)
                # a program can leave thousands of zombies, and a search is slow
                if not has_ended(child):
                    descendants += _descendants(child)
        return descendants

    def kill(self, pid: int) -> None:
        """Kill the process tree of a program, with the program itself and orphan processes whose owner is unknown.

        All processes are stopped before any is killed. So no process can notice the end of another one and start a new
        one. Searches are repeated until none finds a new process. Gives up after 20 seconds.
        """
        self.reap()
        until_s = time.monotonic() + _KILL_LIMIT_S
        before, ended_before = set(_child_pids(os.getpid())), self._ended[pid]
        while time.monotonic() < until_s:
            stopped = self._stop_tree(pid, until_s)
            for each in stopped:
                self._send(each, signal.SIGKILL)
            children, ended = set(_child_pids(os.getpid())), self._ended[pid]
            # A search misses a process if its parent starts it and ends during the search. Then the missed process is a
            # new child of this process. If it has ended too, another thread may have removed its zombie and counted it.
            has_new = ended != ended_before or any(
                self._is_orphan_of(each, pid) for each in children - before
            )
            if not (stopped or has_new):
                break
            before, ended_before = children, ended
            time.sleep(_PAUSE_S)
        for _ in range(_REAP_CALLS):
            if not self.reap():
                break

    def _stop_tree(self, pid: int, until_s: float) -> set[int]:
        """Search for the processes of a tree and stop them, until a search finds no new one. Return their pids."""
        stopped: set[int] = set()
        while time.monotonic() < until_s:
            found = self._list_members(pid)
            # Begin with the newest child. If a program starts itself again and again, its older processes are zombies.
            for child in reversed(_child_pids(os.getpid())):
                if child not in self._programs and self._stop_orphan(child, pid):
                    found += [child, *_descendant_pids(child)]
            new = {each for each in found if each not in stopped and not has_ended(each)}
            if not new:
                break
            for each in new:
                self._send(each, signal.SIGSTOP)
            stopped |= new
            self.reap()
        return stopped

    def _list_members(self, pid: int) -> list[int]:
        """Return the pids of a program and its descendants; [] if the program no longer has its pid, see `_has_pid`.

        The program loses its pid when the event loop has waited for it. Another process may get the pid then. The
        program's children are orphan processes then, and the callers search for these separately.
        """
        members = [pid, *_descendant_pids(pid)]
        # check this after the search: if the program still has its pid now, it had its pid during the search
        return members if self._has_pid(pid) else []

    def _has_pid(self, pid: int) -> bool:
        """Return whether a process id still belongs to the registered program. Without a pidfd, assume that it does."""
        descriptor = self._programs.get(pid)
        if descriptor is not None:
            try:
                signal.pidfd_send_signal(descriptor, 0)
            except ProcessLookupError:
                return False
            except PermissionError:  # the process has other rights, but exists
                pass
        return True

    def _send(self, pid: int, number: signal.Signals) -> None:
        """Send a signal to a process if it still exists and this process may do so."""
        descriptor = self._programs.get(pid)
        with suppress(ProcessLookupError, PermissionError):
            if descriptor is None:
                os.kill(pid, number)
            else:
                signal.pidfd_send_signal(descriptor, number)

    def _stop_orphan(self, child: int, pid: int) -> bool:
        """Return whether a child of this process belongs to the program `pid`, or its owner is unknown.

        If the session of the child does not tell its owner, a longer search is needed. During this search the child could
        start another process and end, so stop the child first. If the child belongs to another program or to no program,
        continue it, unless it was stopped before this call, for example together with its program. If the child has
        ended before the search, return False.
        """
        owner = self._find_owner_by_session(child)
        if owner is None:
            state = _read_state(child)
            if _is_end(state):
                return False
            was_stopped = state[0] == b"T"
            self._send(child, signal.SIGSTOP)
            owner = self._find_owner_by_search(child)
            if owner not in (pid, None) and not was_stopped:
                self._send(child, signal.SIGCONT)
        return owner in (pid, None)

    def _is_orphan_of(self, child: int, pid: int) -> bool:
        """Return whether a child of this process belongs to the program `pid`, or its owner is unknown."""
        return child not in self._programs and self._owner(child) in (pid, None)

    def list_pids(self, pid: int) -> list[int]:
        """Return the pids in the tree of a program, without the program itself.

        Orphan processes whose owner is unknown are not included. A call is much cheaper than `list_descendants`, but
        may miss a process if processes start or end during the call.
        """
        self.reap()  # a program can leave thousands of zombies
        pids = self._list_members(pid)[1:]
        for child in _child_pids(os.getpid()):
            if child not in self._programs and self._owner(child) == pid:
                pids += [child, *_descendant_pids(child)]
        return pids

    def find_program(self, pid: int) -> int | None:
        """Return the pid of the program that a process belongs to; None if no such program is known."""
        own = os.getpid()
        while pid not in self._programs:
            state = _read_state(pid)
            if not state:
                return None
            parent = int(state[1])
            if parent == own:
                owner = self._owner(pid)
                return None if owner == own else owner
            pid = parent
        return pid

    def reap(self) -> bool:
        """Remove the zombies of orphan processes that have ended, because nothing else waits for these processes.

        If no process has ended, a call takes a microsecond. Return True if the call has reached its limit; then more
        zombies may be left.
        """
        if sys.platform != "linux":
            return False
        with suppress(ChildProcessError):
            for _ in range(_REAP_LIMIT):
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if ended is None:
                    return False
                if not self._reap_orphan(ended.si_pid):
                    # Other code of the referee waits for this child. Until it has done so, `waitid` may return only this
                    # child, so go through the list of children.
                    children = _child_pids(os.getpid())
                    for child in children[:_REAP_LIMIT]:
                        if has_ended(child):
                            self._reap_orphan(child)
                    return len(children) > _REAP_LIMIT
            return True
        return False

    def _reap_orphan(self, child: int) -> bool:
        """Remove the zombie of an orphan process. Return False if other code of the referee waits for this child."""
        owner = self._find_owner_by_session(child)
        # Check `_programs` only after the session. If this runs in another thread, the event loop may register the child
        # as a new program between the two checks.
        if owner == os.getpid() or child in self._programs:
            return False
        owner = owner or self._find_owner_by_identity(child)
        if owner is not None and self.before_reap is not None:
            self.before_reap(owner, child)
        with suppress(ChildProcessError):  # another thread was quicker
            os.waitpid(child, 0)
            if owner is not None:
                self._ended[owner] += 1
        return True

    def count_ended(self, pid: int) -> int:
        """Return how many orphan processes of a program have ended since the last call."""
        self.reap()
        return self._ended.pop(pid, 0)

    def _owner(self, child: int) -> int | None:
        """Return the pid of the program that a child of this process belongs to.

        Returns this process's own pid for a child that belongs to no program, and None if the owner is unknown.
        """
        owner = self._find_owner_by_session(child)
        return self._find_owner_by_search(child) if owner is None else owner

    def _find_owner_by_session(self, child: int) -> int | None:
        """Return the owner as `_owner` does, but look only at the session of the child; None if that is not enough.

        While programs are being started, also look at the user id and the mark of a child that leads its own session.
        """
        try:
            session = os.getsid(child)
        except ProcessLookupError:
            return os.getpid()
        if session == os.getsid(0):  # the referee's session; no program can enter it
            return os.getpid()
        # the child is being started and not registered yet, or is an orphan process that leads its own session
        if session == child and self._starting:
            return self._find_owner_by_identity(child) or os.getpid()
        return session if session in self._programs else None

    def _find_owner_by_identity(self, child: int) -> int | None:
        """Return the owner by the user id or the mark of the child; None if they do not tell it.

        The user id comes first. A process cannot change it, but can take over the mark of another program.
        """
        owner = None
        if self._users:
            with suppress(OSError):
                owner = self._users.get(os.stat(f"/proc/{child}").st_uid)  # noqa: PTH116 - quicker
        return owner or self._marks.get(_read_mark(child))

    def _find_owner_by_search(self, child: int) -> int | None:
        """Return the owner as `_owner` does, by the user id, the mark or the command line of the child.

        The sweeper of another process of the referee belongs to no program. It has the command line of a sweeper. Its
        limit RLIMIT_LOCKS is no mark, but equal to the limit of this process, usually `unlimited`. A child with this
        command line and another limit imitates a sweeper.
        """
        owner = self._find_owner_by_identity(child)
        if owner is not None:
            return owner
        with suppress(OSError):
            is_sweeper = (
                read_proc_file(f"/proc/{child}/cmdline") == _SWEEPER_ARGUMENTS
                # a program can imitate the command line and lower the limit, but only root can raise it again
                and _read_marked_limit(child) == _read_marked_limit(os.getpid())
            )
            if is_sweeper and Path(f"/proc/{child}/exe").samefile(sys.executable):
                return os.getpid()  # the sweeper of another process of the referee
        return None


PROCESS_TREES = ProcessTrees()
"""The process trees of this process. All launchers share this object, because the programs of all launchers are
children of this process."""


def read_proc_file(path: str) -> bytes:
    """Return the content of a small file in /proc, in half the time that a file object takes.

    If the file is larger, return its first 64 KiB. A process can make its `cmdline` and `environ` as large as its address
    space, even if it uses hardly any memory (PR_SET_MM_MAP of prctl). psutil reads these files whole, also for the name of
    a process, so never use psutil for the name, the arguments or the environment of a process that is not the referee's.

    Raises OSError if the process is gone, or if this process may not read the file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)


def read_name(pid: int) -> str | None:
    """Return the name of a process; None if it has ended.

    A process can choose its name, which on Linux has at most 15 bytes.
    """
    if sys.platform != "linux":
        with suppress(psutil.Error):
            return psutil.Process(pid).name()
        return None
    try:
        start, _, fields = read_proc_file(f"/proc/{pid}/stat").rpartition(b")")
    except OSError:
        return None
    return None if _is_end(fields.split()) else start.partition(b"(")[2].decode(errors="replace")


def has_variable(process: psutil.Process, start: str) -> bool:
    """Return whether the first 64 KiB of a process's environment have a variable that begins with `start`.

    Args:
        process: the process.
        start: the name of the variable, `=`, and the beginning of the value.

    Raises OSError or `psutil.Error` if the process is gone, or if this process may not read the environment.
    """
    if sys.platform != "linux":
        return any(f"{name}={value}".startswith(start) for name, value in process.environ().items())
    return os.fsencode(f"\0{start}") in b"\0" + read_proc_file(f"/proc/{process.pid}/environ")


def _read_state(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat, beginning with the state of the process; [] if the process is gone."""
    try:
        return read_proc_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return []


def _is_end(state: list[bytes]) -> bool:
    """Return whether a process with these fields is a zombie without running threads, or is gone."""
    return not state or (state[0] in {b"Z", b"X"} and int(state[17]) <= 1)


def _read_mark(pid: int) -> int:
    """Return the mark of a process; 0 if it has none or is gone."""
    limit = _read_marked_limit(pid)
    return int(limit) if limit.isdigit() else 0


def _read_marked_limit(pid: int) -> bytes:
    """Return the hard limit RLIMIT_LOCKS, which is a mark or usually `unlimited`; empty if the process is gone."""
    try:
        words = read_proc_file(f"/proc/{pid}/limits").partition(_MARK_LINE)[2].split(None, 2)
    except OSError:
        return b""
    return words[1] if len(words) > 1 else b""


def _open_pidfd(pid: int) -> int | None:
    """Return a pidfd of a process; None if the system has no pidfds or lacks file descriptors."""
    with suppress(OSError, AttributeError):  # AttributeError: not on Linux
        return os.pidfd_open(pid)
    return None


def has_ended(pid: int) -> bool:
    """Return whether a process is gone, or is a zombie without running threads."""
    fields = _read_state(pid)
    return _is_end(fields) if fields else sys.platform == "linux" or not psutil.pid_exists(pid)


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
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb", 0) as file:  # noqa: PTH123
                pids += map(int, file.read().split())  # one `os.read` would return at most 4 KiB
    return pids


def _descendants(pid: int) -> list[int]:
    try:
        return [each.pid for each in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []
