"""Start programs without a sandbox, each as the leader of a process group and session of its own.

This module serves two rungs of the isolation ladder. On the rung `none`, programs have all rights of the referee. On
the rung `uid`, the referee is root and starts each program as another user, in a cgroup if possible.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from referee.errors import Forfeit, VoidGame
from referee.sandbox import NO_ACCESS, Access, Limits, TotalUsage
from referee.sandbox.cgroups import Cgroup, Cgroups
from referee.sandbox.launcher import RunningProgram
from referee.sandbox.monitor import ResourceMonitor
from referee.sandbox.process_tree import PROCESS_TREES, TOKEN, kill_all
from referee.sandbox.resources import ProgramSpec, SandboxResources
from referee.sandbox.start import (
    finish_or_kill,
    limit_options,
    open_report_pipe,
    start_failure,
    start_shim,
    wait_for_start,
)

_EXIT_LIMIT_S = 2.0
"""How long to wait until killed processes are gone."""
_KILL_ROUNDS = 20
"""The largest number of times that `kill` looks for processes that were started during the kill."""


class ProcessGroupLauncher:
    """Starts programs that have all rights of the referee."""

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
        access: Access = NO_ACCESS,  # noqa: ARG002 - the program can reach everything
    ) -> RunningProgram:
        """Start a program; see `Launcher.launch`."""
        return await _start_group(command, folder=folder, environment=environment, limits=limits)

    def reap(self) -> None:
        """See `Launcher.reap`."""
        PROCESS_TREES.reap()


class UidLauncher:
    """Starts each program as a user of its own, and in a cgroup if possible.

    Args:
        cgroups: creates the cgroups, as far as the machine allows it.
        isolation: see `Launcher.isolation`.
    """

    is_sandboxed = False
    is_unprotected = False

    def __init__(self, cgroups: Cgroups, isolation: str = "") -> None:
        self.isolation = isolation
        self.cgroups = cgroups

    async def launch(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        limits: Limits | None = None,
        access: Access = NO_ACCESS,
    ) -> ProcessGroup:
        """Start a program; see `Launcher.launch`.

        Raises VoidGame also if the program's user cannot reach `folder`.
        """
        if access.link is not None:
            _make_reachable(access.link)
        _check_reachable(folder)
        program = ProgramSpec(tuple(command), folder, environment, limits or Limits(), access)
        resources = SandboxResources(self.cgroups, program)
        try:
            words, options = self.prepare_command(program, resources)
            return await _start_group(
                words,
                folder=folder,
                environment=environment,
                limits=limits,
                options=options,
                resources=resources,
            )
        except BaseException:
            resources.release()
            raise

    @staticmethod
    def prepare_command(
        program: ProgramSpec, resources: SandboxResources
    ) -> tuple[list[str], list[str]]:
        """Return the command that the shim becomes, and the options of the shim."""
        user = ["--uid", str(resources.uid), "--no-new-privileges"]
        return list(program.command), [*resources.join_options, *user]

    def reap(self) -> None:
        """See `Launcher.reap`."""
        PROCESS_TREES.reap()


async def _start_group(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    limits: Limits | None,
    options: Sequence[str] = (),
    resources: SandboxResources | None = None,
) -> ProcessGroup:
    """Start a program as the leader of a process group. Raises as `Launcher.launch` does.

    Args:
        command: the program and its arguments.
        folder: the working directory.
        environment: the exact environment of the program.
        limits: the limits for the shim and the resource monitor; None for no limits.
        options: options of the shim besides those for the limits.
        resources: the sandbox resources, which `ProcessGroup.kill` releases; None on the rung `none`.
    """
    report, report_end = open_report_pipe()

    async def start() -> ProcessGroup:
        try:
            with PROCESS_TREES.expect_start():
                process = await start_shim(
                    command, folder, environment, report_end, [*limit_options(limits), *options]
                )
                return ProcessGroup(process, environment.get(TOKEN, ""), limits, resources)
        except OSError as error:
            raise start_failure(error.errno, f"{folder}: {error.strerror}") from error
        finally:
            os.close(report_end)

    with open(report, "rb", buffering=0):  # noqa: PTH123, ASYNC230 - closes the descriptor
        group = await finish_or_kill(start())
        try:
            await wait_for_start(report, command[0])
        except BaseException:
            await group.kill()
            raise
    return group


class ProcessGroup:
    """A running program that leads its own session and process group.

    Args:
        process: the process of the program.
        token: the token in the program's environment.
        limits: the limits that the resource monitor checks; None if it checks none.
        resources: the sandbox resources, which `kill` releases; None on the rung `none`.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        token: str,
        limits: Limits | None,
        resources: SandboxResources | None,
    ) -> None:
        self.process = process
        self._resources = resources
        kernel_limits = frozenset[str]() if resources is None else resources.kernel_limits
        self._monitor = ResourceMonitor(process.pid, limits, kernel_limits)
        self._is_gone = False
        PROCESS_TREES.add(process.pid, token)

    @property
    def cgroup(self) -> Cgroup | None:
        """The cgroup of the program; None if the program runs without a cgroup."""
        return None if self._resources is None else self._resources.cgroup

    def terminate(self) -> None:
        """See `RunningProgram.terminate`."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGTERM)

    def list_others(self) -> list[str]:
        """See `RunningProgram.list_others`."""
        names = []
        for process in PROCESS_TREES.list_descendants(self.process.pid):
            with suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE:
                    names.append(process.name())
        return sorted(names)

    def usage(self) -> TotalUsage:
        """See `RunningProgram.usage`. A cgroup counts exactly, so it is preferred to the monitor."""
        counted = None if self._resources is None else self._resources.usage()
        return counted or self._monitor.total()

    def busy_ns(self) -> int | None:
        """See `RunningProgram.busy_ns`."""
        return self._monitor.busy_ns()

    def breach(self) -> Forfeit | None:
        """See `RunningProgram.breach`."""
        fault = None if self._resources is None else self._resources.breach()
        return fault or self._monitor.breach()

    async def kill(self) -> None:
        """See `RunningProgram.kill`."""
        if self._is_gone:  # another process may have this pid now
            return
        pid = self.process.pid
        tree = PROCESS_TREES.list_descendants(pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            self.process.kill()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), _EXIT_LIMIT_S)
        # find the processes that were started after the first search
        tree = [*tree, *PROCESS_TREES.list_descendants(pid)]
        for _ in range(_KILL_ROUNDS):
            if not tree:
                break
            kill_all(tree)
            await asyncio.to_thread(psutil.wait_procs, tree, timeout=_EXIT_LIMIT_S)
            tree = PROCESS_TREES.list_descendants(pid)
        self._is_gone = True
        PROCESS_TREES.discard(pid)
        if self._resources is not None:
            self._resources.release()


def _make_reachable(path: Path) -> None:
    """Let other users pass through the referee's temporary folders to `path`, but not list these folders."""
    temporary = Path(tempfile.gettempdir())
    for parent in path.parents:
        if temporary in parent.parents:
            parent.chmod(parent.stat().st_mode | 0o011)


def _check_reachable(path: Path) -> None:
    """Raise VoidGame if other users cannot reach `path`."""
    for parent in path.parents:
        if not parent.stat().st_mode & 0o001:
            raise VoidGame(
                f"{path} cannot be reached by the bot, which runs as another user with this isolation: chmod o+x {parent}"
            )
