"""Outlives a process of the referee for a moment, to end what that one has left running.

Programs die with the process that has started them, but not what they have started in turn: somebody has to
be there when the referee is killed and can end nothing any more.

`python -I -S sweeper.py` leaves its parent. On its standard input it is told of programs that have been
started (`+PID TOKEN`) and of those that are gone (`-PID`). At its end, which comes with the referee's own,
it kills whatever is in the session of the others, or has their token in its environment.

Imports nothing of the project: it is started with the first program.
"""

import contextlib
import os
import signal
import sys
import time

_ROUNDS = 500
_PAUSE_S = 0.01


def main() -> None:
    """Wait for the end, then sweep."""
    if os.fork():
        os._exit(0)
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # meant for the referee, as when a machine stops
    tokens: dict[int, bytes] = {}
    for line in sys.stdin.buffer:
        if line.startswith(b"+"):
            pid, _, token = line[1:].rstrip(b"\n").partition(b" ")
            tokens[int(pid)] = token
        else:
            tokens.pop(int(line[1:]), None)
    variables = {b"REFEREE_TOKEN=" + token for token in tokens.values() if token}
    for _ in range(_ROUNDS):  # they may be starting others
        if not tokens or not _kill(set(tokens), variables):
            break
        time.sleep(_PAUSE_S)


def _kill(sessions: set[int], variables: set[bytes]) -> bool:
    """Kill those who are left; whether there was anybody."""
    found = False
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib takes longer to import than all of this
        if name.isdecimal() and _belongs(int(name), sessions, variables):
            found = True
            with contextlib.suppress(OSError):
                os.kill(int(name), signal.SIGKILL)
    return found


def _belongs(pid: int, sessions: set[int], variables: set[bytes]) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123
            if stat.read().rpartition(b")")[2].split()[0] == b"Z":
                return False
        if os.getsid(pid) in sessions:
            return True
        with open(f"/proc/{pid}/environ", "rb") as environment:  # noqa: PTH123
            return not variables.isdisjoint(environment.read().split(b"\0"))
    except OSError:  # it is gone, or another user's
        return False


if __name__ == "__main__":
    main()
