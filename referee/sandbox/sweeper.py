"""Outlive a process of the referee for a moment, and kill what that process has left running.

A program dies with the referee that started it, but the program's own child processes do not. If the referee is
killed, it cannot end them itself, so this helper does it.

`python -I -S sweeper.py` detaches itself from its parent. On standard input it reads which programs the referee has
started (`+PID TOKEN`) and which are gone (`-PID`). The input ends when the referee ends. Then the sweeper kills
every process that is in the session of a remaining program or has its token in the environment.

Imports nothing of the project, because it is started together with the first program.
"""

import contextlib
import os
import signal
import sys
import time

_ROUNDS = 500
"""How often the sweeper looks for processes; those that it kills may be starting others."""
_PAUSE_S = 0.01


def main() -> None:
    """Wait for the end of the referee, then kill what is left."""
    if os.fork():
        os._exit(0)
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a machine that shuts down sends it to all
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
    """Kill all remaining processes of the programs; return whether there were any."""
    found = False
    for name in os.listdir("/proc"):  # noqa: PTH208 - importing pathlib takes longer than this script
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
    except OSError:  # the process is gone, or belongs to another user
        return False


if __name__ == "__main__":
    main()
