"""How a bot's program is started and how everything it started is ended.

`Launcher` is the seam where isolation goes; `ProcessGroupLauncher` has none: trusted bots only.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import psutil

from referee.errors import Cause, Evidence, Forfeit, VoidGame

_SHIM = Path(__file__).with_name("shim.py")
_PR_SET_CHILD_SUBREAPER = 36
_SHORTAGES = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC}
_GONE_S = 2.0
"""How long killed processes may take to disappear."""


class Launched(Protocol):
    """A running program, with its standard output and standard error as pipes."""

    process: asyncio.subprocess.Process

    def terminate(self) -> None:
        """Ask the program to end (SIGTERM)."""
        ...

    async def kill(self) -> None:
        """End the program and everything it started, and wait until all of it is gone."""
        ...


class Launcher(Protocol):
    """Starts programs on one rung of the isolation ladder."""

    rung: str
    """Its name, for records."""

    async def launch(
        self, command: Sequence[str], *, folder: Path, environment: Mapping[str, str]
    ) -> Launched:
        """Start a program in a folder with exactly this environment.

        Raises `Forfeit` (no_start) when it is missing or cannot be executed, and `VoidGame` when
        the machine has no room for another process.
        """
        ...


class ProcessGroupLauncher:
    """Starts a program in a session of its own; no protection from it."""

    rung = "none"

    def __init__(self) -> None:
        if sys.platform == "linux":  # orphans of bots come here, where they are found and ended
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)

    async def launch(
        self, command: Sequence[str], *, folder: Path, environment: Mapping[str, str]
    ) -> Launched:
        """Start a program; see `Launcher.launch`."""
        try:
            report, report_end = os.pipe()
        except OSError as error:
            raise VoidGame(f"no file descriptors left: {error}") from error
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(_SHIM)),
                *(str(os.getpid()), str(report_end), *command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=folder,
                env=environment,
                pass_fds=(report_end,),
                start_new_session=True,
            )
        except OSError as error:
            os.close(report)
            raise _failure(error, folder) from error
        finally:
            os.close(report_end)
        launched = ProcessGroup(process, environment)
        if reason := await _read_report(report):
            await launched.kill()
            raise Forfeit(Cause.NO_START, Evidence(detail=f"cannot be started: {reason}"))
        return launched


class ProcessGroup:
    """A program that leads its own process group."""

    def __init__(self, process: asyncio.subprocess.Process, environment: Mapping[str, str]) -> None:
        self.process = process
        self._token = environment.get("REFEREE_TOKEN")

    def terminate(self) -> None:
        """Ask the whole group to end."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGTERM)

    async def kill(self) -> None:
        """Kill the group, its descendants, and what left both but still has the bot's token."""
        doomed = _descendants(self.process.pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        _kill(doomed)
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        strays = [*doomed, *self._strays()]
        if strays:
            _kill(strays)
            await asyncio.to_thread(psutil.wait_procs, strays, timeout=_GONE_S)

    def _strays(self) -> list[psutil.Process]:
        return [child for child in _descendants(os.getpid()) if self._is_ours(child)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get("REFEREE_TOKEN") == self._token
        except (psutil.Error, OSError):
            return False


def _failure(error: OSError, folder: Path) -> Exception:
    if error.errno in _SHORTAGES:
        return VoidGame(f"no room for another process: {error}")
    return Forfeit(Cause.NO_START, Evidence(detail=f"cannot be started in {folder}: {error}"))


async def _read_report(report: int) -> str:
    """What the shim says, empty when the program runs; closes the descriptor."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(report, readable.set)
    try:
        await readable.wait()
        return os.read(report, 4096).decode("utf-8", "replace")
    finally:
        loop.remove_reader(report)
        os.close(report)


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _kill(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
