"""Starting a program behind the shim, and what becomes of a start that fails."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from referee.bots.limits import Limits
from referee.bots.room import SHORTAGES
from referee.bots.toolchains import how_to_install
from referee.errors import Cause, Evidence, Forfeit, VoidGame

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
