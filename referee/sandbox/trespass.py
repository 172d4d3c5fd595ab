"""Runs in a sandbox and tries what is forbidden there: `python -I -S trespass.py TARGETS`.

TARGETS is a JSON object:

own        the folder the program runs in, which it must not change
secret     a file of somebody else
referee    the pid of the referee's process
port       of a TCP socket of this machine's loopback address that listens
abstract   the name of an abstract socket that listens
memory_mib, processes   the limits it is held to

Prints a JSON object: by protection, how much was tried, and what of it could be done, in words. Then, on a
line of its own, that it runs in circles, and does; a daemon of its own stays beside it.

Imports nothing of the project: it runs where nothing of that needs to be.
"""

import ctypes
import errno
import json
import os
import platform
import signal
import socket
import sys
import time
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWUSER = 0x10000000
_PTRACE_ATTACH = 16
_CALLS = {
    "x86_64": {"keyctl": 250, "io_uring_setup": 425, "userfaultfd": 323, "process_vm_readv": 310},
    "aarch64": {"keyctl": 219, "io_uring_setup": 425, "userfaultfd": 282, "process_vm_readv": 270},
}
_MORE = 20
_NOBODY = ("192.0.2.1", 9)
"""An address for documentation: nobody has it."""


def main() -> None:
    """Try everything."""
    targets = json.loads(sys.argv[1])
    done = {
        "filesystem": _files(targets),
        "network": _network(targets),
        "process view": _processes(targets["referee"]),
        "ptrace": _memory_of_others(targets["referee"]),
        "syscalls": _calls(),
        "total memory": _much_memory(targets["memory_mib"]),
        "pids": _many_processes(targets["processes"]),
    }
    print(json.dumps(done), flush=True)
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1000)
    print("runs in circles", flush=True)
    while True:
        pass


def _files(targets: dict[str, Any]) -> tuple[int, list[str]]:
    could = []
    folders = (targets["own"], "/usr", "/etc", "/", "/dev")
    for folder in folders:
        path = f"{folder}/referee-probe-{os.getpid()}"
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.unlink(path)
        except OSError:
            continue
        could.append(f"write into {folder}")
    files = (targets["secret"], "/etc/shadow")
    for path in files:
        try:
            os.close(os.open(path, os.O_RDONLY))
        except OSError:
            continue
        could.append(f"read {path}")
    return len(folders) + len(files), could


def _network(targets: dict[str, Any]) -> tuple[int, list[str]]:
    could = []
    addresses = (
        ("a TCP socket of this machine", socket.AF_INET, ("127.0.0.1", targets["port"])),
        ("an abstract socket", socket.AF_UNIX, "\0" + targets["abstract"]),
    )
    for what, family, address in addresses:
        with socket.socket(family) as link:
            link.settimeout(1)
            if link.connect_ex(address) == 0:
                could.append(f"reach {what}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        try:
            link.sendto(b"", _NOBODY)
            could.append("send packets out")
        except OSError:
            pass
    return len(addresses) + 1, could


def _processes(referee: int) -> tuple[int, list[str]]:
    could = []
    others = {int(each) for each in os.listdir("/proc") if each.isdecimal()}
    if others - {os.getpid(), os.getppid(), 1}:
        could.append("see processes of others")
    try:
        os.kill(referee, 0)
        could.append("signal the referee")
    except OSError:
        pass
    return 2, could


def _memory_of_others(referee: int) -> tuple[int, list[str]]:
    could = []
    child = os.fork()
    if child == 0:
        time.sleep(1000)
    for who, pid in (("the referee", referee), ("a process of its own user", child)):
        if _LIBC.ptrace(_PTRACE_ATTACH, pid, None, None) == 0:
            could.append(f"trace {who}")
    _end([child])
    return 2, could


def _calls() -> tuple[int, list[str]]:
    could = []
    calls = _CALLS.get(platform.machine(), {})
    for name, number in calls.items():
        # arguments that make no sense: who gets as far as to that is not refused
        _LIBC.syscall(number, -1, None, 0, 0, 0, 0)
        if ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
            could.append(f"call {name}")
    child = os.fork()
    if child == 0:
        os._exit(int(_LIBC.unshare(_CLONE_NEWUSER) == 0))
    if os.waitpid(child, 0)[1]:
        could.append("make a user namespace")
    return len(calls) + 1, could


def _much_memory(limit_mib: int) -> tuple[int, list[str]]:
    """Two processes that have three quarters of the limit each, at the same time."""
    ready, said = os.pipe()
    children = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            taken = bytearray(b"x") * ((limit_mib << 20) * 3 // 4)
            os.write(said, b".")
            os.close(said)
            time.sleep(1000)
            os._exit(len(taken) & 1)
        children.append(child)
    os.close(said)
    while os.read(ready, 1):  # to the end of the file: each has it, or is no more
        pass
    alive = [child for child in children if os.waitpid(child, os.WNOHANG)[0] == 0]
    _end(alive)
    return 1, [f"have more than {limit_mib} MiB"] if len(alive) > 1 else []


def _many_processes(limit: int) -> tuple[int, list[str]]:
    children: list[int] = []
    try:
        while len(children) <= limit + _MORE:
            child = os.fork()
            if child == 0:
                time.sleep(1000)
            children.append(child)
    except OSError:
        return 1, []
    finally:
        _end(children)
    return 1, [f"start more than {limit} processes"]


def _end(children: list[int]) -> None:
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
