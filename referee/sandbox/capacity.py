"""Check whether the machine has the resources for one more process.

Call `check_capacity` before a bot or a worker is started. If a resource runs out in the middle of a start, the event loop
and gRPC leave objects half made, and gRPC may even end the referee. `charge_or_void` makes the same check after a
bot has failed: without resources, the failure may be the machine's fault.
"""

from __future__ import annotations

import _thread
import errno
import os
from contextlib import ExitStack

from referee.errors import Forfeit, VoidGame

_DESCRIPTORS = 64
"""How many file descriptors must be free. A bot needs about twelve, and several may start at once."""
_THREADS = 8
"""How many threads must be free for the referee's part in a start."""
ALL_THREADS = 32
"""How many threads must be free if the new process starts threads of its own."""
SHORTAGES = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC}
"""Error numbers that mean: the machine lacks a resource."""
_NO_THREAD = "can't start new thread"


def check_capacity(threads: int = _THREADS) -> None:
    """Take file descriptors and `threads` threads, and give them back at once.

    Raises `VoidGame` if the machine does not have them. Does not wait for the threads to run, so a busy machine
    makes no difference.
    """
    with ExitStack() as stack:
        try:
            for _ in range(_DESCRIPTORS // 2):
                for end in os.pipe():
                    stack.callback(os.close, end)
            gate = _thread.allocate_lock()
            gate.acquire()
            stack.callback(gate.release)
            for _ in range(threads):
                _thread.start_new_thread(_wait_for_gate, (gate,))
        except (OSError, RuntimeError) as error:
            reason = describe_shortage(error) or error
            raise VoidGame(f"no room for another process: {reason}") from error


def _wait_for_gate(gate: _thread.LockType) -> None:
    with gate:
        pass


def charge_or_void(fault: Forfeit) -> Forfeit | VoidGame:
    """Return the fault, or a `VoidGame` if the machine lacks resources: then the bot is not charged."""
    try:
        check_capacity(ALL_THREADS)
    except VoidGame as void:
        return void
    return fault


def describe_shortage(error: Exception) -> str | None:
    """Return which resource the machine lacks according to `error`; None if the error has another reason."""
    if isinstance(error, OSError) and error.errno in SHORTAGES:
        return os.strerror(error.errno)
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        return "no thread can be started"
    return None
