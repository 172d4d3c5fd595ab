"""Whether the machine has room for one more process, and whose fault it is where it has none.

It is asked before anything of a bot, or of a worker, is made. Where something runs short in the middle of a start, the event
loop and gRPC do not only fail: they leave things half made, and gRPC may end the whole process. It is asked
again when a bot has failed: that may have been for want of room.
"""

from __future__ import annotations

import _thread
import errno
import os
from contextlib import ExitStack

from referee.errors import Forfeit, VoidGame

_DESCRIPTORS = 64
"""What has to be free: several bots may be started at once, and each takes about twelve."""
_THREADS = 8
"""The same of threads: those of the referee's side."""
ALL_THREADS = 32
"""With those that a bot or a worker may start by itself."""
SHORTAGES = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC}
"""Errors that are the machine's."""
_NO_THREAD = "can't start new thread"


def check_room(threads: int = _THREADS) -> None:
    """Take what a process may need, so many threads too, and give it back.

    Raises `VoidGame` when that cannot be had. Waits for no thread, so that a busy machine is no matter.
    """
    with ExitStack() as taken:
        try:
            for _ in range(_DESCRIPTORS // 2):
                for end in os.pipe():
                    taken.callback(os.close, end)
            gate = _thread.allocate_lock()
            gate.acquire()
            taken.callback(gate.release)
            for _ in range(threads):
                _thread.start_new_thread(_pass, (gate,))
        except (OSError, RuntimeError) as error:
            raise VoidGame(f"no room for another process: {shortage(error) or error}") from error


def _pass(gate: _thread.LockType) -> None:
    with gate:
        pass


def blame(fault: Forfeit) -> Forfeit | VoidGame:
    """A fault of a bot that has ended, or that the machine had no room for what it needs."""
    try:
        check_room(ALL_THREADS)
    except VoidGame as void:
        return void
    return fault


def shortage(error: Exception) -> str | None:
    """What the machine is short of, where an error says so."""
    if isinstance(error, OSError) and error.errno in SHORTAGES:
        return os.strerror(error.errno)
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        return "no thread can be started"
    return None
