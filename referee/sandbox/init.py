"""Run as process 1 of a sandbox: start the program, adopt orphan processes, and report how the program ended.

`python -I -S init.py REPORT [--relay SOCKET PORT] -- PROGRAM ARGUMENT…` writes these lines to the file descriptor
REPORT:

    runs PID             the program runs; PID is its process id inside the sandbox
    refused NUMBER TEXT  the program could not be started: the error's number and a text
    ended STATUS         the program has ended with this wait status

The process ends when no other process is left in the sandbox, or when the sandbox is killed. With `--relay`, this
process forwards PORT of the sandbox's loopback address to the UNIX socket SOCKET, for bots whose gRPC supports only
TCP.

The script imports nothing of the project, because Python does not find the project with the options `-I -S`.
"""

import ctypes
import os
import signal
import sys

_PR_SET_DUMPABLE = 4


def main() -> None:
    """Start the program and wait for all processes of the sandbox."""
    report = int(sys.argv[1])
    end = sys.argv.index("--")
    options, command = sys.argv[2:end], sys.argv[end + 1 :]
    os.set_inheritable(report, False)  # noqa: FBT003 - the function takes no keywords
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0)  # hides this process's memory from the program
    os.umask(0o022)
    if options:
        _serve_loopback(socket_path=options[1], port=int(options[2]))
    program = _start(command, report)
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)
    os.close(devnull)
    os.write(report, f"runs {program}\n".encode())
    _wait_for_all(program, report)


def _start(command: list[str], report: int) -> int:
    """Start the program and return its pid. If it cannot be started, report the error and exit."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        # Python ignores these signals; the program must get the default handlers
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored, signal.SIG_DFL)
        try:
            os.execvp(command[0], command)  # noqa: S606 - the program's own command, without a shell
        except OSError as error:
            reason = f"{error.errno} {command[0]}: {error.strerror}"
            os.write(writing, reason.encode(errors="replace"))
            os._exit(127)
    os.close(writing)
    if refused := os.read(reading, 4096):
        os.write(report, b"refused " + refused + b"\n")
        os._exit(127)
    os.close(reading)
    return pid


def _wait_for_all(program: int, report: int) -> None:
    """Wait for all processes of the sandbox, and report the end of the program."""
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return
        if pid == program:
            os.write(report, f"ended {status}\n".encode())


def _serve_loopback(socket_path: str, port: int) -> None:
    """Forward all connections to `port` to the UNIX socket, in threads."""
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
