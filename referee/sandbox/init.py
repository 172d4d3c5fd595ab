"""The first process of a sandbox: starts the bot there, takes up its orphans, tells how it ended.

`python -I -S init.py REPORT [--relay SOCKET PORT] -- PROGRAM ARGUMENT…`: on the descriptor REPORT it says

    runs PID         the program does, with this pid in the sandbox
    refused N TEXT   it does not: the error's number and a text
    ended STATUS     it has ended, with this wait status

and ends when nothing is left in the sandbox, or with the sandbox. With `--relay` the loopback address of
the sandbox has the port PORT, and what is said there is said to the UNIX socket: for bots whose gRPC knows
only TCP.

Imports nothing of the project: it is the only file of it that a bot of another language can see.
"""

import ctypes
import os
import signal
import sys

_PR_SET_DUMPABLE = 4


def main() -> None:
    """Be the sandbox's first process."""
    report = int(sys.argv[1])
    end = sys.argv.index("--")
    options, command = sys.argv[2:end], sys.argv[end + 1 :]
    os.set_inheritable(report, False)  # noqa: FBT003 - the function takes no keywords
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0)  # the bot shall not look into this process
    os.umask(0o022)
    if options:
        _serve_loopback(socket_path=options[1], port=int(options[2]))
    bot = _start(command, report)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.close(silence)
    os.write(report, f"runs {bot}\n".encode())
    _wait(bot, report)


def _start(command: list[str], report: int) -> int:
    """Start the program; its pid. Ends this process where that fails."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python
            signal.signal(ignored, signal.SIG_DFL)
        try:
            os.execvp(command[0], command)  # noqa: S606 - the bot's own command, without a shell
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


def _wait(bot: int, report: int) -> None:
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return
        if pid == bot:
            os.write(report, f"ended {status}\n".encode())


def _serve_loopback(socket_path: str, port: int) -> None:
    from socket import AF_UNIX, create_server, socket  # noqa: PLC0415 - few bots need it
    from threading import Thread  # noqa: PLC0415

    def carry(source: socket, target: socket) -> None:
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
        except OSError:
            pass  # the other end is gone
        for each, how in ((source, 0), (target, 1)):  # no more reading here, no more writing there
            try:
                each.shutdown(how)
            except OSError:
                pass

    def accept() -> None:
        while True:
            inside, _ = listening.accept()
            inside.setsockopt(6, 1, 1)  # TCP_NODELAY: an answer must not wait for the next one
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
