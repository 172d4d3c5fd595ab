"""Programs without isolation, each in a session of its own: trusted bots only."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from referee.errors import Forfeit
from referee.sandbox.launcher import RunningProgram
from referee.sandbox.limits import NO_ACCESS, Access, Limits, TotalUsage
from referee.sandbox.monitor import ResourceMonitor
from referee.sandbox.process_tree import PROCESS_TREES, TOKEN, kill
from referee.sandbox.starting import failure, limiting, report_pipe, spawn, wait_until_it_runs

_GONE_S = 2.0
"""How long killed processes may take to disappear."""
_ROUNDS = 20
"""How often a family is looked for again that has grown while it was killed."""


class ProcessGroupLauncher:
    """Starts a program in a session of its own; no protection from it."""

    isolation = "none"
    is_sandboxed = False
    is_unprotected = True

    async def launch(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        limits: Limits | None = None,
        access: Access = NO_ACCESS,  # noqa: ARG002 - it reaches everything
    ) -> RunningProgram:
        """Start a program; see `Launcher.launch`."""
        return await start_group(command, folder=folder, environment=environment, limits=limits)

    def reap(self) -> None:
        """See `Launcher.reap`."""
        PROCESS_TREES.reap()


async def start_group(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    limits: Limits | None,
    options: Sequence[str] = (),
    held: Container[str] = frozenset(),
) -> ProcessGroup:
    """Start a program behind the shim, which follows the options, as the leader of a process group.

    What the kernel holds it to says `ResourceMonitor`. Raises as `Launcher.launch` does.
    """
    report, report_end = report_pipe()
    with open(report, "rb", buffering=0):  # noqa: PTH123, ASYNC230 - closes the descriptor
        try:
            with PROCESS_TREES.starting():
                process = await spawn(
                    command, folder, environment, report_end, [*limiting(limits), *options]
                )
                launched = ProcessGroup(process, environment.get(TOKEN, ""), limits, held)
        except OSError as error:
            raise failure(error.errno, f"{folder}: {error.strerror}") from error
        finally:
            os.close(report_end)
        try:
            await wait_until_it_runs(report, command[0])
        except BaseException:
            await launched.kill()
            raise
    return launched


class ProcessGroup:
    """A program that leads its own session and process group.

    Args:
        process: the program.
        token: the token in its environment.
        limits: what it may take; None: what it likes.
        held: see `ResourceMonitor`.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        token: str,
        limits: Limits | None,
        held: Container[str],
    ) -> None:
        self.process = process
        self._gauge = ResourceMonitor(process.pid, limits, held)
        self._gone = False
        PROCESS_TREES.add(process.pid, token)

    def terminate(self) -> None:
        """Ask the whole group to end."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGTERM)

    def list_others(self) -> list[str]:
        """See `RunningProgram.list_others`."""
        names = []
        for process in PROCESS_TREES.of(self.process.pid):
            with suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE:
                    names.append(process.name())
        return sorted(names)

    def usage(self) -> TotalUsage:
        """See `RunningProgram.usage`."""
        return self._gauge.usage()

    def busy_ns(self) -> int | None:
        """See `RunningProgram.busy_ns`."""
        return self._gauge.busy_ns()

    def breach(self) -> Forfeit | None:
        """See `RunningProgram.breach`: by what is seen now."""
        return self._gauge.breach()

    async def kill(self) -> None:
        """Kill the program and its family, and wait until all of it is gone."""
        if self._gone:  # others may have its pid by now
            return
        family = PROCESS_TREES.of(self.process.pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            self.process.kill()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), _GONE_S)
        family = [*family, *PROCESS_TREES.of(self.process.pid)]  # also who has come since
        for _ in range(_ROUNDS):
            if not family:
                break
            kill(family)
            await asyncio.to_thread(psutil.wait_procs, family, timeout=_GONE_S)
            family = PROCESS_TREES.of(self.process.pid)
        self._gone = True
        PROCESS_TREES.discard(self.process.pid)
