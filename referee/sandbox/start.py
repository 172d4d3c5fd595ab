"""Start a program by means of the shim, and find out whether the program runs.

The shim (`shim.py`) is a small script that prepares its own process and then becomes the program. If the shim fails,
it writes the reason to the report pipe. If the shim becomes the program, it writes nothing, and the kernel closes the
shim's end of the pipe. In a sandbox, the pipe stays open, and `init.py` writes to it; see `StartReport`.

    rungs uid, none:           referee --starts--> shim --becomes--> program
    rungs full, namespaces:    referee --starts--> shim --becomes--> bubblewrap --starts--> init --starts--> program
"""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from referee.errors import (
    SHORTAGES,
    Cause,
    Evidence,
    Forfeit,
    Shortage,
    VoidGame,
    void_game,
)
from referee.sandbox.launcher import RunningProgram
from referee.sandbox.missing import how_to_install
from referee.sandbox.output_pipe import open_output
from referee.sandbox.resources import ProgramSpec
from referee.sandbox.toolchains import find_toolchains
from referee.sandbox.user_ids import shared_folders

_SHIM = Path(__file__).with_name("shim.py")
_CANNOT_DUPLICATE_PIPE = -1
"""The error number of the OSError that uvloop raises if it cannot duplicate a pipe."""
_REPORT_BYTES = 4096
_ProgramT = TypeVar("_ProgramT", bound=RunningProgram)


def open_report_pipe() -> tuple[int, int]:
    """Open the report pipe and return its reading and its writing end.

    Raises `Shortage` if no file descriptors are left.
    """
    try:
        return os.pipe()
    except OSError as error:
        raise Shortage(f"no file descriptors left: {error}") from error


async def start_shim(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    report: int,
    options: Sequence[str],
) -> asyncio.subprocess.Process:
    """Start the shim in a session of its own (see setsid(2)). Raises OSError if no process can be started.

    The process dies with the thread that calls this function. Call this function only inside
    `finish_or_kill`, which explains the reason.

    Args:
        command: the program that the shim becomes, with its arguments.
        folder: the working directory.
        environment: the exact environment of the program.
        report: the writing end of the report pipe.
        options: the options of the shim; see `shim.py`.
    """
    with open_output() as (output_end, output), open_output() as (error_end, error_output):
        process = await asyncio.create_subprocess_exec(
            *shim_command(str(os.getpid()), str(report), options, command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output_end,
            stderr=error_end,
            cwd=folder,
            env=dict(environment),
            pass_fds=(report,),
            start_new_session=True,
        )
    # asyncio sets these only for pipes that it has opened itself
    process.stdout, process.stderr = output, error_output
    return process


async def finish_or_kill(start: Coroutine[Any, Any, _ProgramT]) -> _ProgramT:
    """Await `start` and return the program that it has started.

    If the caller is cancelled, wait for the start, kill the program, and then raise CancelledError. No cancellation
    reaches `start`, not even a second one. If a cancellation reached `start_shim`, uvloop would kill only the shim and
    would not wait for its end. Then the program's sandbox resources would be released while processes of the program
    still run.
    """
    starting = asyncio.ensure_future(start)
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        killing = asyncio.ensure_future(_kill_started(starting))
        while not killing.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({killing})
        if not killing.cancelled():
            killing.result()
        raise


async def _kill_started(starting: asyncio.Future[_ProgramT]) -> None:
    """Wait for the start of a program, and kill the program."""
    with suppress(Forfeit, VoidGame):
        await (await starting).kill()


def private_options(program: ProgramSpec) -> list[str]:
    """Return the shim's options that give a program a private view of the files.

    The program sees new folders for temporary files, which contain only the files that it needs. From Linux 5.12 on, all
    other files are read-only, except for the scratch folder, the home folder and the other folders that `Access` makes
    writable. If a folder above a needed file is closed to other users, the program sees a new folder in its place, with
    only the needed files.
    """
    access = program.access
    writable = _existing([access.scratch, access.home, *access.writable])
    needed = _existing(
        [
            program.folder,
            access.link,
            *access.readable,
            *(Path(word) for word in program.command[:1] if word.startswith("/")),
            *find_toolchains(program.command[0], program.environment.get("PATH", "")),
        ]
    )
    shared = shared_folders()
    found = [find_closed_parent(path) for path in (*needed, *writable)]
    closed = {folder for folder in found if folder and shared.isdisjoint((folder, *folder.parents))}
    hidden = shared | closed
    kept = [path for path in needed if not hidden.isdisjoint(path.parents)]
    options = ["--private", str(program.limits.scratch_mib << 20)]
    for paths in (shared, closed, kept, writable):
        options += [str(len(paths)), *sorted(map(str, paths))]
    return options


def find_closed_parent(path: Path) -> Path | None:
    """Return the outermost folder above `path` that other users cannot enter; None if they can reach `path`."""
    parents = reversed(path.parents[:-1])  # without /
    return next((folder for folder in parents if not folder.stat().st_mode & 0o001), None)


def _existing(paths: Iterable[Path | None]) -> set[Path]:
    return {path for path in paths if path is not None and path.exists()}


def shim_command(
    parent: str, report: str, options: Sequence[str], command: Sequence[str]
) -> list[str]:
    """Return the command line of the shim; `shim.py` explains its arguments."""
    return [sys.executable, "-I", "-S", str(_SHIM), parent, report, *options, "--", *command]


async def wait_for_start(report: int, program: str) -> None:
    """Wait until the shim has become the program, or has reported a failure.

    Raises the `Forfeit` or `VoidGame` that the shim has reported.

    Args:
        report: the reading end of the report pipe.
        program: the name or path of the program in its command.
    """
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(report, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(report)
    if text := os.read(report, _REPORT_BYTES).decode("utf-8", "replace"):
        raise parse_failure(text, program)


class StartReport:
    """Reads the lines that `init.py`, process 1 of a sandbox, writes to the report pipe.

    The lines are `runs PID` or `refused NUMBER TEXT`, and later `ended STATUS`. If the shim fails before `init.py`
    runs, the pipe contains the shim's report, which has no line end.

    Args:
        descriptor: the reading end of the pipe. This object closes it when the writing end closes.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._text = b""
        self._loop = asyncio.get_running_loop()
        self.first_line: asyncio.Future[str] = self._loop.create_future()
        """The first line. If the pipe closes before a line ends, the value is the shim's report or an empty text."""
        self.exit_code: asyncio.Future[int | None] = self._loop.create_future()
        """The program's exit code, or the negative number of the signal that ended it.

        None if the pipe closes before the line `ended STATUS`.
        """
        self._loop.add_reader(descriptor, self._read)

    def close(self) -> None:
        """Stop reading and close the pipe."""
        if self._descriptor < 0:
            return
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1
        if not self.first_line.done():
            self.first_line.set_result(self._text.decode("utf-8", "replace"))
        if not self.exit_code.done():
            self.exit_code.set_result(None)

    def _read(self) -> None:
        data = os.read(self._descriptor, _REPORT_BYTES)
        self._text += data
        *lines, self._text = self._text.split(b"\n")
        for line in lines:
            text = line.decode("utf-8", "replace")
            word, _, rest = text.partition(" ")
            if not self.first_line.done():
                self.first_line.set_result(text)
            elif word == "ended" and not self.exit_code.done():
                self.exit_code.set_result(os.waitstatus_to_exitcode(int(rest)))
        if not data:
            self.close()


_ADVICE = {
    errno.ENOENT: "; if this file exists, the program in its first line (#!) does not, perhaps because the file has Windows line ends",
    errno.EACCES: "; it must be a file that may be executed (`chmod +x`)",
    errno.ENOEXEC: "; it must be a program for this machine, or a script whose first line is #! and the path of a program",
}
"""What to say after the kernel's message about a program, by error number."""


def parse_failure(report: str, program: str) -> Forfeit | VoidGame:
    """Return the failure that a report `NUMBER TEXT` describes.

    NUMBER is 0 if the isolation cannot be set up. If the program cannot be started, NUMBER is the error number.
    """
    number, _, text = report.partition(" ")
    if int(number) == 0:
        return void_game(f"the isolation cannot be set up: {text}")
    if int(number) == errno.ENOENT and "/" not in program:
        return start_failure(errno.ENOENT, how_to_install(program))
    return start_failure(int(number), f"{text}{_ADVICE.get(int(number), '')}")


def start_failure(number: int | None, text: str) -> Forfeit | VoidGame:
    """Return the failure for an error number: `Shortage` if the machine lacks a resource, otherwise `Forfeit`."""
    if number in {*SHORTAGES, _CANNOT_DUPLICATE_PIPE}:
        return Shortage(f"no room for another process: {text}")
    return Forfeit(Cause.NO_START, Evidence(detail=f"the program cannot be started: {text}"))
