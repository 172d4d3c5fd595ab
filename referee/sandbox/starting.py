"""Whether the machine has room for one more process, and whose fault it is where it has none.

It is asked before anything of a bot, or of a worker, is made. Where something runs short in the middle of a start, the event
loop and gRPC do not only fail: they leave things half made, and gRPC may end the whole process. It is asked
again when a bot has failed: that may have been for want of room.

Starting a program behind the shim, and what becomes of a start that fails.
"""

from __future__ import annotations

import _thread
import asyncio
import errno
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from referee.errors import Cause, Evidence, Forfeit, VoidGame
from referee.sandbox.limits import Limits
from referee.sandbox.missing_programs import how_to_install

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


_SHIM = Path(__file__).with_name("shim.py")
_UNKNOWN = -1
"""The number of uvloop's error where it cannot duplicate a pipe."""


def report_pipe() -> tuple[int, int]:
    """Where the shim says what becomes of the program: to read, to write. Raises VoidGame."""
    try:
        return os.pipe()
    except OSError as error:
        raise VoidGame(f"no file descriptors left: {error}") from error


async def spawn(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    report: int,
    options: Sequence[str],
) -> asyncio.subprocess.Process:
    """Start the shim, in a session of its own; what its options are says `shim`. Raises OSError.

    Whatever it becomes ends with the thread that has called this.
    """
    return await asyncio.create_subprocess_exec(
        *shim(str(os.getpid()), str(report), options, command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env=dict(environment),
        pass_fds=(report,),
        start_new_session=True,
    )


def limiting(limits: Limits | None) -> list[str]:
    """What the shim is told of limits."""
    return [] if limits is None else ["--open-files", str(limits.open_files)]


def shim(parent: str, report: str, options: Sequence[str], command: Sequence[str]) -> list[str]:
    """The command line of the shim."""
    return [sys.executable, "-I", "-S", str(_SHIM), parent, report, *options, "--", *command]


async def wait_until_it_runs(report: int, program: str) -> None:
    """Wait for the end of the shim's report; raises what it says, `Forfeit` or `VoidGame`."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(report, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(report)
    if said := os.read(report, 4096).decode("utf-8", "replace"):
        raise refusal(said, program)


def refusal(said: str, program: str) -> Forfeit | VoidGame:
    """What a report means that has an error's number and a text."""
    number, _, text = said.partition(" ")
    if int(number) == 0:
        return VoidGame(f"the isolation cannot be set up: {text}")
    missing = int(number) == errno.ENOENT and "/" not in program
    return failure(int(number), how_to_install(program) if missing else text)


def failure(number: int | None, text: str) -> Forfeit | VoidGame:
    """Whose fault it is that a program does not start, by the number of an error."""
    if number in {*SHORTAGES, _UNKNOWN}:
        return VoidGame(f"no room for another process: {text}")
    return Forfeit(Cause.NO_START, Evidence(detail=f"cannot be started: {text}"))
