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
_ROUNDS = 20
"""How often a family is looked for again that has grown while it was killed."""


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
        self._programs: set[int] = set()
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
        with open(report, "rb", buffering=0):  # noqa: PTH123, ASYNC230 - closes the descriptor
            try:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", str(_SHIM)),
                    *(str(os.getpid()), str(report_end), *command),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    cwd=folder,
                    env=dict(environment),
                    pass_fds=(report_end,),
                    start_new_session=True,
                )
            except OSError as error:
                raise _failure(error.errno, f"{folder}: {error.strerror}") from error
            finally:
                os.close(report_end)
            launched = ProcessGroup(process, environment, self._programs)
            try:
                await _wait_until_it_runs(report)
            except BaseException:
                await launched.kill()
                raise
        return launched


class ProcessGroup:
    """A program that leads its own session and process group.

    Its family is all that descends from it, is in its session, or was started with its token: what
    leaves all three (a daemon with an environment of its own) is not found.

    Args:
        process: the program.
        environment: what it was started with.
        programs: the pids of all programs of the launcher: the event loop waits for these, and they
            are nobody's family whatever they claim.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        environment: Mapping[str, str],
        programs: set[int],
    ) -> None:
        self.process = process
        self._token = environment.get("REFEREE_TOKEN")
        self._gone = False
        self._programs = programs
        programs.add(process.pid)

    def terminate(self) -> None:
        """Ask the whole group to end."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGTERM)

    async def kill(self) -> None:
        """Kill the program and its family, and wait until all of it is gone."""
        if self._gone:  # others may have its pid by now
            return
        family = self._family()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            self.process.kill()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), _GONE_S)
        for _ in range(_ROUNDS):
            if not family:
                break
            _kill(family)
            await asyncio.to_thread(psutil.wait_procs, family, timeout=_GONE_S)
            family = self._family()
        self._gone = True
        self._programs.discard(self.process.pid)

    def _family(self) -> list[psutil.Process]:
        """Without the program itself; with what has ended and only waits to be noticed."""
        own = {child.pid for child in _descendants(self.process.pid)}
        return [
            child
            for child in _descendants(os.getpid())
            if child.pid not in self._programs and (child.pid in own or self._is_ours(child))
        ]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            if os.getsid(process.pid) == self.process.pid:
                return True
            return process.environ().get("REFEREE_TOKEN") == self._token
        except (psutil.Error, OSError):
            return False


async def _wait_until_it_runs(report: int) -> None:
    """Wait for the end of the shim's report; raises what it says, `Forfeit` or `VoidGame`."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(report, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(report)
    if said := os.read(report, 4096).decode("utf-8", "replace"):
        number, _, text = said.partition(" ")
        raise _failure(int(number), text)


def _failure(number: int | None, text: str) -> Forfeit | VoidGame:
    if number in _SHORTAGES:
        return VoidGame(f"no room for another process: {text}")
    return Forfeit(Cause.NO_START, Evidence(detail=f"cannot be started: {text}"))


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _kill(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
