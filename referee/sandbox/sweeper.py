"""Wait for the end of a process of the referee, and kill what the referee has left running.

A program dies with the referee that started it, but the program's own child processes do not. A killed referee cannot
end these child processes, so the sweeper does it.

`python -I -S sweeper.py` detaches itself from its parent. On standard input it reads which programs the referee has
started (`+PID UID MARK LOCK`) and which are gone (`-PID`). The input ends when the referee ends. Then, for each
program that is not gone, the sweeper kills all processes in the program's session (see setsid(2)), all processes with the mark
MARK (see `create_mark` in `process_tree`), and all processes of user UID. UID is 0 if the program has no user id of its
own. MARK is 0 if the program has no mark.

LOCK is the path of the file whose lock reserves the user id. It is empty if UID is 0. The sweeper kills the processes of
a user only while it holds this lock, because another referee may give the id to a program as soon as the lock is free.

`python -I -S sweeper.py UID` kills all processes of user UID at once and ends.

The script imports nothing of the project, because imports would delay the start of the first program. The referee imports
this module for `start_sweeper`.
"""

import contextlib
import errno
import fcntl
import os
import signal
import sys
import time

SWEEPER = [sys.executable, "-I", "-S", __file__]
"""The command of the sweeper that watches this process. With a user id as its argument, the command instead kills the
processes of that user."""
_FORK_ERRORS = {errno.EAGAIN, errno.ENOMEM}
"""The error numbers of `fork` if the machine lacks resources. If the sweeper cannot fork, its exit code is the error
number."""
_ROUNDS = 500
"""The largest number of searches for processes. One search is not enough, because a process may start other processes
until the sweeper kills it."""
_PAUSE_S = 0.01
"""The pause between two rounds."""


def start_sweeper() -> int:
    """Start the sweeper and return the writing end of the pipe to the sweeper.

    The sweeper kills the process trees when the writing end closes. The sweeper is no child of this process and has
    its own session, so Ctrl-C does not reach the sweeper. Raises OSError if the machine lacks resources, or if Python
    does not start without environment variables, for example because it needs LD_LIBRARY_PATH.
    """
    reader, writer = os.pipe()
    try:
        starter = os.posix_spawn(
            sys.executable,
            SWEEPER,
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
    _, status = os.waitpid(starter, 0)
    if status:
        os.close(writer)
        code = os.waitstatus_to_exitcode(status)
        if code in _FORK_ERRORS:
            raise OSError(code, os.strerror(code))
        raise OSError(f"{sys.executable} -I -S {__file__} ends with exit code {code}")
    return writer


def main() -> None:
    """Kill the processes of the user that the command line names, or watch the referee."""
    if len(sys.argv) > 1:
        kill_user(int(sys.argv[1]))
    else:
        watch()


def kill_user(uid: int) -> None:
    """Kill all processes of a user, in one step that no process can escape.

    This process sets its effective user id to `uid`, so it may kill the processes of that user. They cannot kill this
    process, because its real and its saved user id are `uid + 1`, which no program has.
    """
    os.setgroups([])
    os.setresuid(uid + 1, uid, uid + 1)
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)


def watch() -> None:
    """Wait for the end of the referee, then kill the processes that its programs have left."""
    try:
        sweeper = os.fork()
    except OSError as error:
        os._exit(error.errno or 1)
    if sweeper:
        os._exit(0)
    os.setsid()
    # a machine that shuts down sends SIGTERM to all processes, and the sweeper must work then too
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    programs: dict[int, tuple[int, bytes, bytes]] = {}
    """The user id, the mark and the lock file of each program."""
    for line in sys.stdin.buffer:
        if line.startswith(b"+"):
            pid, uid, mark, *lock = line[1:].rstrip(b"\n").split(b" ", 3)
            programs[int(pid)] = int(uid), mark, b"".join(lock)
        else:
            programs.pop(int(line[1:]), None)
    locks = {uid: lock for uid, _, lock in programs.values() if uid}
    marks = {mark for _, mark, _ in programs.values() if mark != b"0"}
    users: set[int] = set()
    """The users whose lock this process holds until it ends."""
    for _ in range(_ROUNDS if programs else 0):
        # the end of the referee's process takes a while, so a lock may become free only after some rounds
        users |= {uid for uid in locks.keys() - users if _lock(locks[uid])}
        found = _kill_all(set(programs), users, marks)
        if not found and not any(map(_has_processes, locks.keys() - users)):
            break
        time.sleep(_PAUSE_S)


def _lock(path: bytes) -> bool:
    """Lock a file until this process ends; return False if another process has locked it, or if it is missing."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return False
    return True


def _has_processes(uid: int) -> bool:
    """Return whether a user has processes that are no zombies."""
    names = filter(str.isdecimal, os.listdir("/proc"))  # noqa: PTH208 - as in `_kill_all`
    return any(_belongs(int(name), set(), {uid}, set()) for name in names)


def _kill_all(sessions: set[int], users: set[int], marks: set[bytes]) -> bool:
    """Kill all processes that belong to a program; return whether there were any."""
    for uid in users:
        # if there is no room for another process, the next round tries again
        with contextlib.suppress(OSError):
            if (helper := os.fork()) == 0:
                try:
                    kill_user(uid)
                finally:
                    os._exit(0)
            os.waitpid(helper, 0)
    found = False
    for name in os.listdir("/proc"):  # noqa: PTH208 - importing pathlib takes longer than this script
        if name.isdecimal() and _belongs(int(name), sessions, users, marks):
            found = True
            with contextlib.suppress(OSError):
                os.kill(int(name), signal.SIGKILL)
    return found


def _belongs(pid: int, sessions: set[int], users: set[int], marks: set[bytes]) -> bool:
    """Return whether a process has one of the sessions, users or marks, and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123
            if stat.read().rpartition(b")")[2].split()[0] == b"Z":
                return False
        if os.getsid(pid) in sessions or os.stat(f"/proc/{pid}").st_uid in users:  # noqa: PTH116
            return True
        with open(f"/proc/{pid}/limits", "rb") as limits:  # noqa: PTH123
            words = limits.read().partition(b"\nMax file locks")[2].split(None, 2)
            # `limits` is empty while the process is ending
            return len(words) > 1 and words[1] in marks
    except OSError:  # the process is gone, or this process may not look at it
        return False


if __name__ == "__main__":
    main()
