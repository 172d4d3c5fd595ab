"""Wait for the end of a process of the referee, and kill what the referee has left running.

A program dies with the referee that started it, but the program's own child processes do not. A killed referee cannot
end these child processes, so the sweeper does it.

`python -I -S sweeper.py` detaches itself from its parent. On standard input it reads which programs the referee has
started (`+PID TOKEN`) and which are gone (`-PID`). The input ends when the referee ends. Then, for each
program that is not gone, the sweeper kills all processes in the program's session and all processes that have the
program's token in their environment.

The script imports nothing of the project, because imports would delay the start of the first program.
"""

import contextlib
import os
import signal
import sys
import time

_ROUNDS = 500
"""The largest number of searches for processes. A process may start other processes until the sweeper kills it."""
_PAUSE_S = 0.01
"""The pause between two rounds."""


def main() -> None:
    """Wait for the end of the referee, then kill the processes that its programs have left."""
    if os.fork():
        os._exit(0)
    os.setsid()
    # a machine that shuts down sends SIGTERM to all processes, and the sweeper must work then too
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tokens: dict[int, bytes] = {}
    for line in sys.stdin.buffer:
        if line.startswith(b"+"):
            pid, _, token = line[1:].rstrip(b"\n").partition(b" ")
            tokens[int(pid)] = token
        else:
            tokens.pop(int(line[1:]), None)
    variables = {b"REFEREE_TOKEN=" + token for token in tokens.values() if token}
    for _ in range(_ROUNDS):
        if not tokens or not _kill_all(set(tokens), variables):
            break
        time.sleep(_PAUSE_S)


def _kill_all(sessions: set[int], variables: set[bytes]) -> bool:
    """Kill all processes that belong to a program; return whether there were any."""
    found = False
    for name in os.listdir("/proc"):  # noqa: PTH208 - importing pathlib takes longer than this script
        if name.isdecimal() and _belongs(int(name), sessions, variables):
            found = True
            with contextlib.suppress(OSError):
                os.kill(int(name), signal.SIGKILL)
    return found


def _belongs(pid: int, sessions: set[int], variables: set[bytes]) -> bool:
    """Return whether a process is in one of the sessions or has one of the variables, and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123
            if stat.read().rpartition(b")")[2].split()[0] == b"Z":
                return False
        if os.getsid(pid) in sessions:
            return True
        with open(f"/proc/{pid}/environ", "rb") as environment:  # noqa: PTH123
            return not variables.isdisjoint(environment.read().split(b"\0"))
    except OSError:  # the process is gone, or belongs to another user
        return False


if __name__ == "__main__":
    main()
