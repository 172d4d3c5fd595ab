"""Run as process 1 of a sandbox: start the program, adopt orphan processes, and report how the program ended.

`python -I -S init.py REPORT [OPTION…] -- PROGRAM ARGUMENT…` writes these lines to the file descriptor REPORT:

    runs PID             the program runs; PID is its process id inside the sandbox
    refused NUMBER TEXT  the program could not be started: the error's number and a text. NUMBER is 0 if the isolation
                         cannot be set up
    ended STATUS         the program has ended with this wait status

The process ends when no other process is left in the sandbox, or when the sandbox is killed. The options are:

--relay SOCKET PORT           forward PORT of the sandbox's loopback address to the UNIX socket SOCKET, for bots whose
                              gRPC supports only TCP
--sysinfo MIB ASKING REFUSING
                              let this process answer the system call sysinfo. The kernel's own answer would tell the
                              program how many processes the whole machine runs and how much memory they share. This
                              process describes an idle machine with MIB MiB of memory, because runtimes choose the
                              size of their heap by the machine's memory. ASKING and REFUSING are system call filters
                              as hexadecimal digits. ASKING passes each call of sysinfo on to this process. If the
                              kernel cannot do that, REFUSING refuses these calls
--open-files NUMBER           limit the file descriptors of the program and of each process that it starts. The shim
                              does not set this limit: the shim and bubblewrap may need more descriptors than it allows
--processes NUMBER            limit the processes and threads of the sandbox, this process included. From Linux 5.14 on,
                              a limit that is set in the user namespace of the sandbox counts only the sandbox. An older
                              kernel counts all processes of the user
--pending-signals NUMBER      limit the pending signals of the sandbox, which the kernel counts in the same way

The script imports nothing of the project, because Python does not find the project with the options `-I -S`.
"""

import _thread
import ctypes
import errno
import fcntl
import os
import resource
import struct
import sys
import time

_LIBC = ctypes.CDLL(None, use_errno=True)
_SIGINT, _SIGPIPE, _SIGXFSZ = 2, 13, 25
"""Numbers of signals. The module `signal` takes longer to import than all others together."""
_PR_SET_DUMPABLE = 4
_SECCOMP = {"x86_64": 317, "aarch64": 277}
"""The number of the system call seccomp on each machine; the C library has no function for it."""
_SET_MODE_FILTER, _NEW_LISTENER = 1, 8
_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
"""The requests SECCOMP_IOCTL_NOTIF_RECV, NOTIF_SEND and NOTIF_ID_VALID; see seccomp_unotify(2)."""
_NOTIFICATION_BYTES = 80
_REASON_BYTES = 4096
"""The most bytes of the text that says why the program could not be started."""


def main() -> None:
    """Start the program and wait for all processes of the sandbox."""
    report = int(sys.argv[1])
    end = sys.argv.index("--")
    options, command = sys.argv[2:end], sys.argv[end + 1 :]
    os.set_inheritable(report, False)  # noqa: FBT003 - the function takes no keywords
    _LIBC.prctl(_PR_SET_DUMPABLE, 0)  # hides this process's memory from the program
    # Remove Python's handler of SIGINT. If process 1 has no handler, the kernel drops a SIGINT that a process of the
    # sandbox sends to process 1.
    _LIBC.signal(_SIGINT, None)
    os.umask(0o022)
    if "--relay" in options:
        socket_path, port = _values(options, "--relay", 2)
        _serve_loopback(socket_path, int(port))
    listener = -1
    if "--sysinfo" in options:
        memory, asking, refusing = _values(options, "--sysinfo", 3)
        listener = _filter_calls(bytes.fromhex(asking), bytes.fromhex(refusing), report)
    limits = {
        kind: int(_values(options, name, 1)[0])
        for name, kind in (
            ("--open-files", resource.RLIMIT_NOFILE),
            ("--processes", resource.RLIMIT_NPROC),
            ("--pending-signals", resource.RLIMIT_SIGPENDING),
        )
        if name in options
    }
    program, begin, failure = _fork(command, limits)
    if listener >= 0:
        _thread.start_new_thread(_emulate_sysinfo, (listener, int(memory) << 20))
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)
    os.close(devnull)
    started = f"runs {program}\n".encode()
    reason = bytearray(_REASON_BYTES)
    # Without a filter of system calls, the program can set the limits of this process to 0 with `prlimit`. So from here
    # until the report, this process opens no file, starts no thread and needs no more memory.
    os.close(begin)
    if length := os.readv(failure, [reason]):
        os.write(report, b"refused %s\n" % reason[:length])
        os._exit(127)
    os.write(report, started)
    _wait_for_all(program, report)


def _values(options: list[str], name: str, number: int) -> list[str]:
    """Return the values of an option."""
    first = options.index(name) + 1
    return options[first : first + number]


def _fork(command: list[str], limits: dict[int, int]) -> tuple[int, int, int]:
    """Create the process of the program, which waits until it may begin.

    Args:
        command: the program and its arguments.
        limits: the resource limits to set for the program, by their kinds. This process keeps its own limits.

    Returns:
        The pid, and two file descriptors. The program starts when the first one is closed. Reading from the second one
        then waits for the start, and gives the error's number and a text if the program could not be started.
    """
    waiting, begin = os.pipe()
    failure, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        # the program gets its own process group, so that the referee's signals to this group do not reach `init.py`
        os.setpgid(0, 0)
        # Python ignores these signals; the program must get the default handlers
        for ignored in (_SIGPIPE, _SIGXFSZ):
            _LIBC.signal(ignored, None)
        os.close(begin)
        os.read(waiting, 1)
        try:
            for kind, number in limits.items():
                _limit(kind, number)
            os.execvp(command[0], command)  # noqa: S606 - the program's own command, without a shell
        except OSError as error:
            reason = f"{error.errno} {command[0]}: {error.strerror}"
            os.write(writing, reason.encode(errors="replace"))
            os._exit(127)
    os.close(waiting)
    os.close(writing)
    return pid, begin, failure


def _limit(kind: int, number: int) -> None:
    """Set a resource limit to `number`, or to the hard limit of this process if the hard limit is lower."""
    _, most = resource.getrlimit(kind)
    if most != resource.RLIM_INFINITY:
        number = min(number, most)
    resource.setrlimit(kind, (number, number))


def _wait_for_all(program: int, report: int) -> None:
    """Wait for all processes of the sandbox, and report the end of the program."""
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return
        if pid == program:
            os.write(report, f"ended {status}\n".encode())


def _filter_calls(asking: bytes, refusing: bytes, report: int) -> int:
    """Set the filter `asking`, and return its listener: the file descriptor from which this process reads the calls.

    If that fails, set the filter `refusing` and return -1. If that fails too, report the error and exit.
    """

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))

    for code, flags in ((asking, _NEW_LISTENER), (refusing, 0)):
        program = ctypes.byref(Program(len(code) // 8, code))
        number = _SECCOMP[os.uname().machine]
        result: int = _LIBC.syscall(number, _SET_MODE_FILTER, flags, program)
        if result > 0:  # only `asking` has a listener
            os.set_inheritable(result, False)  # noqa: FBT003 - the function takes no keywords
            return result
        if result == 0:
            return -1
    reason = os.strerror(ctypes.get_errno())
    os.write(report, f"refused 0 the filter for sysinfo cannot be set: {reason}\n".encode())
    os._exit(127)


def _emulate_sysinfo(listener: int, memory: int) -> None:
    """Answer all calls of sysinfo, one after the other."""
    while True:
        notification = bytearray(_NOTIFICATION_BYTES)
        try:
            fcntl.ioctl(listener, _RECEIVE, notification)
            call, pid = struct.unpack_from("QI", notification)
            [address] = struct.unpack_from("Q", notification, 32)
            error = _write_sysinfo(listener, call, pid, address, memory)
            fcntl.ioctl(listener, _SEND, struct.pack("QqiI", call, 0, -error, 0))
        except OSError:
            continue  # the caller was killed or interrupted


def _write_sysinfo(listener: int, call: int, pid: int, address: int, memory: int) -> int:
    """Write a `struct sysinfo` into the memory of a process. Return the error number for the caller; 0 for success."""
    uptime, one_byte = int(time.clock_gettime(time.CLOCK_BOOTTIME)), 1
    loads, other_memory, processes, high_memory = (0, 0, 0), (0, 0, 0, 0), 1, (0, 0)
    fields = (uptime, *loads, memory, memory, *other_memory, processes, *high_memory, one_byte)
    content = struct.pack("q9QH6xQQI4x", *fields)
    try:
        file = os.open(f"/proc/{pid}/mem", os.O_WRONLY)
    except OSError:
        return errno.EPERM  # the caller has hidden its memory, or the kernel refuses access to it
    try:
        # raises OSError if the caller is gone; in that case, `file` may be the memory of a new process with the same pid
        fcntl.ioctl(listener, _IS_VALID, struct.pack("Q", call))
        written = os.pwrite(file, content, address)
    except (OSError, OverflowError):
        written = 0
    finally:
        os.close(file)
    return 0 if written == len(content) else errno.EFAULT


def _serve_loopback(socket_path: str, port: int) -> None:
    """Accept connections at `port`, and forward each of them to the UNIX socket, in threads."""
    from socket import AF_UNIX, create_server, socket  # noqa: PLC0415 - few programs need it
    from threading import Thread  # noqa: PLC0415

    def carry(source: socket, target: socket) -> None:
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
        except OSError:
            pass  # the other end is closed
        for each, how in ((source, 0), (target, 1)):  # 0 is SHUT_RD, 1 is SHUT_WR
            try:
                each.shutdown(how)
            except OSError:
                pass

    def accept() -> None:
        while True:
            inside, _ = listening.accept()
            inside.setsockopt(6, 1, 1)  # TCP_NODELAY: send each message to the program at once
            outside = socket(AF_UNIX)
            try:
                outside.connect(socket_path)
            except OSError:
                inside.close()
                continue
            for ends in ((inside, outside), (outside, inside)):
                Thread(target=carry, args=ends, daemon=True).start()

    listening = create_server(("127.0.0.1", port))
    Thread(target=accept, daemon=True).start()


if __name__ == "__main__":
    main()
