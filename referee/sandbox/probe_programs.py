"""The programs that `probe` starts.

`python -I -S probe_programs.py trespasser TARGETS` runs on a rung and tries all forbidden acts.
TARGETS is a JSON object:

own        the folder that the program runs in and must not change
shared     a file in that folder. The referee locks this file, /dev/null and an eventfd, and writes into this file and
           /dev/null again and again
secret     a file that the program must not read
bystander  the pid of the bystander
port       the port of a listening TCP socket on the machine's loopback address
abstract   the name of a listening abstract socket
memory_mib, processes   the program's limits

The program prints a JSON object. For each protection that the program tests, the object contains the number of
attempts and a list of the successful attempts. Attempts to signal or trace the bystander are counted but not listed,
because only the probe can find out whether they succeeded.
Then the program starts a daemon, prints one more line, and computes without end, like the daemon.

`python -I -S probe_programs.py bystander` blocks the signal SIGURG and then prints `ready`. A SIGURG that arrives stays
pending, so the probe can see it later.

`python -I -S probe_programs.py referee COMMAND…` plays the referee. COMMAND is the command line of
the shim, with the words PARENT and REPORT instead of their values. The program inserts the values, starts the shim,
prints `runs` when a report has arrived on the report pipe or this pipe is closed, and waits to be killed.

The script imports nothing of the project, because Python does not find the project with `-I -S`.
"""

import ctypes
import errno
import fcntl
import json
import os
import platform
import select
import signal
import socket
import sys
import time
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWUSER = 0x10000000
_PTRACE_ATTACH = 16
_CALLS = {  # numbers of system calls that the filter must refuse
    "x86_64": {"keyctl": 250, "io_uring_setup": 425, "userfaultfd": 323, "process_vm_readv": 310},
    "aarch64": {"keyctl": 219, "io_uring_setup": 425, "userfaultfd": 282, "process_vm_readv": 270},
}
_IN_OPEN = 0x20
_NOTICE_LIMIT_S = 3.0
"""How long the program waits for a notification, which comes late on a busy machine. There is no wait if the kernel refuses a
lease, dnotify or inotify."""
_EXTRA_PROCESSES = 20
"""The program tries to start more than this number of processes beyond its limit."""
_PR_SET_PDEATHSIG = 1
_UNUSED_ADDRESS = ("192.0.2.1", 9)
"""An address that no machine has, because it is reserved for documentation."""

_Result = tuple[int, list[str]]
"""The number of attempts, and a list of the successful attempts, as texts that complete `a bot can …`."""


def main() -> None:
    """Play the role that the first argument names: `trespasser`, `bystander` or `referee`."""
    role, *arguments = sys.argv[1:]
    if role == "trespasser":
        _trespass(json.loads(arguments[0]))
    elif role == "bystander":
        _die_with_parent()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGURG})
        print("ready", flush=True)
        time.sleep(1000)
    else:
        _die_with_parent()
        _play_referee(arguments)


def _die_with_parent() -> None:
    """Let the kernel kill this program when the probe ends. If the probe has already ended, this program ends after 1,000 s."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _play_referee(command: list[str]) -> None:
    """Start `command` as the referee starts the shim, and wait to be killed."""
    report, report_end = os.pipe()
    values = {"PARENT": str(os.getpid()), "REPORT": str(report_end)}
    words = [values.get(word, word) for word in command]
    if os.fork() == 0:
        os.set_inheritable(report_end, True)  # noqa: FBT003 - the function takes no keywords
        os.setsid()
        # print to /dev/null, because a process that survives would keep the pipe to the probe open
        os.dup2(0, 1)
        os.execv(words[0], words)  # noqa: S606 - the referee has built this command
    os.close(report_end)
    os.read(report, 100)
    print("runs", flush=True)
    time.sleep(1000)


def _trespass(targets: dict[str, Any]) -> None:
    """Try all forbidden acts and print the results."""
    results = {
        "filesystem": _try_files(targets),
        "network": _try_network(targets),
        "process view": _try_processes(targets["bystander"]),
        "ptrace": _try_tracing(targets["bystander"]),
        "syscalls": _try_calls(),
        "no shared locks": _try_locks(targets["shared"]),
        "total memory": _try_much_memory(targets["memory_mib"]),
        "pids": _try_many_processes(targets["processes"]),
    }
    print(json.dumps(results), flush=True)
    ready, ready_end = os.pipe()
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(ready_end, b".")
        while True:
            pass
    os.read(ready, 1)
    print("computes", flush=True)
    while True:
        pass


def _try_files(targets: dict[str, Any]) -> _Result:
    succeeded: list[str] = []
    folders = (targets["own"], "/usr", "/etc", "/", "/dev")
    for folder in folders:
        path = f"{folder}/referee-probe-{os.getpid()}"
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.unlink(path)
        except OSError:
            continue
        succeeded.append(f"write into {folder}")
    files = (targets["secret"], "/etc/shadow", "/etc/passwd")
    for path in files:
        try:
            os.close(os.open(path, os.O_RDONLY))
        except OSError:
            continue
        succeeded.append(f"read {path}")
    return len(folders) + len(files), succeeded


def _try_network(targets: dict[str, Any]) -> _Result:
    succeeded: list[str] = []
    addresses = (
        ("a TCP socket of this machine", socket.AF_INET, ("127.0.0.1", targets["port"])),
        ("an abstract socket", socket.AF_UNIX, "\0" + targets["abstract"]),
    )
    for what, family, address in addresses:
        with socket.socket(family) as link:
            link.settimeout(1)
            if link.connect_ex(address) == 0:
                succeeded.append(f"reach {what}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        try:
            link.sendto(b"", _UNUSED_ADDRESS)
            succeeded.append("send packets out")
        except OSError:
            pass
    return len(addresses) + 1, succeeded


def _try_processes(bystander: int) -> _Result:
    succeeded: list[str] = []
    others = {int(each) for each in os.listdir("/proc") if each.isdecimal()}
    if others - {os.getpid(), os.getppid(), 1}:
        succeeded.append("see processes of others")
    try:
        # In a sandbox, another process may have this pid. A process ignores SIGURG by default, so the signal does no harm.
        os.kill(bystander, signal.SIGURG)
    except OSError:
        pass
    return 2, succeeded


def _try_tracing(bystander: int) -> _Result:
    succeeded: list[str] = []
    child = os.fork()
    if child == 0:
        time.sleep(1000)
    if _LIBC.ptrace(_PTRACE_ATTACH, child, None, None) == 0:
        succeeded.append("trace a process of its own user")
    _kill_children([child])
    _LIBC.ptrace(_PTRACE_ATTACH, bystander, None, None)
    return 2, succeeded


def _try_calls() -> _Result:
    succeeded: list[str] = []
    calls = _CALLS.get(platform.machine(), {})
    if not calls:
        succeeded.append("make any system call, because there is no filter for such a machine")
    for name, number in calls.items():
        ctypes.set_errno(0)  # a successful call does not change errno
        # the arguments are invalid, so an allowed call does no harm, and gives another result than these two errors
        _LIBC.syscall(number, -1, None, 0, 0, 0, 0)
        if ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
            succeeded.append(f"call {name}")
    child = os.fork()
    if child == 0:
        os._exit(int(_LIBC.unshare(_CLONE_NEWUSER) == 0))
    if os.waitpid(child, 0)[1]:
        succeeded.append("make a user namespace")
    return len(calls) + 1, succeeded


def _try_locks(shared: str) -> _Result:
    """Try to notice that the referee holds locks, and that the referee opens and changes files."""
    succeeded: list[str] = []
    file = os.open(shared, os.O_RDONLY)
    # the referee has an exclusive lock on the first file, and shared locks on the others
    files = (
        ("a shared file", file, fcntl.LOCK_SH),
        ("/dev/null", os.open(os.devnull, os.O_RDWR), fcntl.LOCK_EX),
        ("an eventfd", os.eventfd(0), fcntl.LOCK_EX),
    )
    for name, each, kind in files:
        for how, lock in (("flock", fcntl.flock), ("fcntl", fcntl.lockf)):
            try:
                lock(each, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                succeeded.append(f"notice {how} on {name}")
            except OSError:
                pass
    if _notices_by_signal(file, shared):
        succeeded.append("notice by a lease or dnotify that a file is changed")
    if _notices_by_inotify(shared):
        succeeded.append("notice by inotify that a file is opened")
    return 2 * len(files) + 2, succeeded


def _notices_by_signal(file: int, path: str) -> bool:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    noticed = False
    for each, command, argument in (
        (file, fcntl.F_SETLEASE, fcntl.F_RDLCK),
        (folder, fcntl.F_NOTIFY, fcntl.DN_MODIFY),
    ):
        try:
            fcntl.fcntl(each, command, argument)
        except OSError:
            continue
        # if the lease gave notice, do not wait for dnotify: the referee cannot write while the lease lasts
        noticed = noticed or signal.sigtimedwait([signal.SIGIO], _NOTICE_LIMIT_S) is not None
    os.close(folder)
    return noticed


def _notices_by_inotify(path: str) -> bool:
    watching = _LIBC.inotify_init1(0)
    if watching < 0:
        return False
    for each in (path, os.devnull):
        _LIBC.inotify_add_watch(watching, os.fsencode(each), _IN_OPEN)
    return bool(select.select([watching], [], [], _NOTICE_LIMIT_S)[0])


def _try_much_memory(limit_mib: int) -> _Result:
    """Try to run two processes at once. Each of them uses three quarters of the limit."""
    ready, ready_end = os.pipe()
    children = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            memory = bytearray(b"x") * ((limit_mib << 20) * 3 // 4)
            os.write(ready_end, b".")
            os.close(ready_end)
            time.sleep(1000)
            os._exit(len(memory) & 1)
        children.append(child)
    os.close(ready_end)
    successes = 0
    while os.read(ready, 1):  # until each child has the memory or was killed
        successes += 1
    if successes > 1:
        # a child may be killed after its write, and `waitpid` reports that a little later
        time.sleep(0.1)
    alive = [child for child in children if os.waitpid(child, os.WNOHANG)[0] == 0]
    _kill_children(alive)
    has_both = successes > 1 and len(alive) > 1
    return 1, [f"have more than {limit_mib} MiB"] if has_both else []


def _try_many_processes(limit: int) -> _Result:
    children: list[int] = []
    try:
        while len(children) <= limit + _EXTRA_PROCESSES:
            child = os.fork()
            if child == 0:
                time.sleep(1000)
            children.append(child)
    except OSError:
        return 1, []
    finally:
        _kill_children(children)
    return 1, [f"start more than {limit} processes"]


def _kill_children(children: list[int]) -> None:
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
