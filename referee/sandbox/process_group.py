"""Start programs without a sandbox, each as the leader of a process group and session of its own.

This module serves two rungs of the isolation ladder. On the rung `none`, programs have all rights of the referee. On
the rung `uid`, the referee is root and starts each program as another user, in a cgroup if possible.
"""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from referee.errors import Forfeit, VoidGame, void_game
from referee.sandbox import (
    DEFAULT_LIMITS,
    NO_ACCESS,
    SPARE_PROCESSES,
    Access,
    Limits,
    TotalUsage,
    seccomp,
)
from referee.sandbox.cgroups import Cgroup, Cgroups
from referee.sandbox.launcher import RunningProgram
from referee.sandbox.monitor import ResourceMonitor
from referee.sandbox.process_tree import PROCESS_TREES, create_mark, read_name
from referee.sandbox.resources import ProgramSpec, SandboxResources
from referee.sandbox.scheduling import Scheduler
from referee.sandbox.shared_memory import SHARED_MEMORY
from referee.sandbox.start import (
    finish_or_kill,
    open_report_pipe,
    private_options,
    start_failure,
    start_shim,
    wait_for_start,
)

_EXIT_LIMIT_S = 2.0
"""How long to wait until killed processes are gone."""


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
        limits: Limits = DEFAULT_LIMITS,
        access: Access = NO_ACCESS,
    ) -> RunningProgram:
        """Start a program, which can reach everything, whatever `access` is; see `Launcher.launch`."""
        return await _start_group(ProgramSpec(tuple(command), folder, environment, limits, access))

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
        limits: Limits = DEFAULT_LIMITS,
        access: Access = NO_ACCESS,
    ) -> ProcessGroup:
        """Start a program; see `Launcher.launch`.

        Raises VoidGame also if the program's user cannot reach `folder`.
        """
        program = ProgramSpec(tuple(command), folder, environment, limits, access)
        resources = SandboxResources(self.cgroups, program)
        try:
            try:
                if access.link is not None:
                    make_reachable(access.link)
                _, options = self.prepare_command(program, resources)
            except OSError as error:
                raise void_game(f"the isolation cannot be set up: {error}") from error
            assert resources.uid is not None  # noqa: S101 - this rung needs root
            await asyncio.to_thread(resources.remove_leftovers)  # from programs of a killed referee
            return await _start_group(program, options, resources)
        except BaseException:
            await asyncio.to_thread(resources.release)
            raise

    @staticmethod
    def prepare_command(
        program: ProgramSpec, resources: SandboxResources
    ) -> tuple[list[str], list[str]]:
        """Return the command that the shim becomes, and the options of the shim."""
        user = ["--uid", str(resources.uid), "--reach", str(program.folder), "--no-new-privileges"]
        user += ["--processes", str(program.limits.processes + SPARE_PROCESSES)]
        if (key_filter := seccomp.build_key_filter(platform.machine())) is not None:
            user += ["--filter", key_filter.hex()]
        return list(program.command), [
            *resources.join_options,
            *private_options(program),
            *user,
        ]

    def reap(self) -> None:
        """See `Launcher.reap`."""
        PROCESS_TREES.reap()


async def _start_group(
    program: ProgramSpec,
    options: Sequence[str] = (),
    resources: SandboxResources | None = None,
) -> ProcessGroup:
    """Start a program as the leader of a process group. Raises as `Launcher.launch` does.

    Args:
        program: the program to start.
        options: options of the shim besides `--mark` and `--open-files`.
        resources: the sandbox resources, which `ProcessGroup.kill` releases; None on the rung `none`.
    """
    report, report_end = open_report_pipe()
    mark = create_mark()
    # --open-files is the last, because other options may need more file descriptors than the program may have
    words = ["--mark", str(mark), *options, "--open-files", str(program.limits.open_files)]

    async def start() -> ProcessGroup:
        try:
            if resources is None:
                _watch_shared_memory()
            with PROCESS_TREES.expect_start():
                process = await start_shim(
                    program.command, program.folder, program.environment, report_end, words
                )
                return ProcessGroup(process, mark, program.limits, resources)
        except OSError as error:
            raise start_failure(error.errno, f"{program.folder}: {error.strerror}") from error
        finally:
            os.close(report_end)

    with open(report, "rb", buffering=0):  # noqa: PTH123, ASYNC230 - closes the descriptor
        group = await finish_or_kill(start())
        try:
            await wait_for_start(report, program.command[0])
            if resources is not None:
                resources.limit_cpu()
        except BaseException:
            await group.kill()
            raise
    return group


def _watch_shared_memory() -> None:
    """Start the watch of shared memory. Raises VoidGame if that fails, because no program is to blame for it."""
    try:
        SHARED_MEMORY.start()
    except OSError as error:
        raise void_game(f"the shared memory cannot be watched: {error}") from error


class ProcessGroup:
    """A running program that leads its own session and process group.

    Args:
        process: the process of the program.
        mark: the mark of the program's processes.
        limits: the limits that the resource monitor checks.
        resources: the sandbox resources, which `kill` releases; None on the rung `none`.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        mark: int,
        limits: Limits,
        resources: SandboxResources | None,
    ) -> None:
        self.process = process
        self._resources = resources
        kernel_limits = frozenset[str]() if resources is None else resources.kernel_limits
        self._monitor = ResourceMonitor(process.pid, limits, kernel_limits)
        self.scheduler = Scheduler(self.cgroup, self._monitor.find_members)
        self.scheduler.group = process.pid
        self._killing: asyncio.Task[None] | None = None
        if resources is None:
            PROCESS_TREES.add(process.pid, mark)
            SHARED_MEMORY.add(process.pid)
        else:
            PROCESS_TREES.add(process.pid, mark, resources.uid, resources.lock_file)

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
        others = PROCESS_TREES.list_descendants(self.process.pid)
        return sorted(name for pid in others if (name := read_name(pid)) is not None)

    def usage(self) -> TotalUsage:
        """See `RunningProgram.usage`. A cgroup counts exactly, so it is preferred to the monitor."""
        measure = self._monitor.total
        return measure() if self._resources is None else self._resources.usage(measure)

    def busy_ns(self) -> int | None:
        """See `RunningProgram.busy_ns`."""
        measure = self._monitor.busy_ns
        return measure() if self._resources is None else self._resources.busy_ns(measure)

    async def breach(self) -> Forfeit | VoidGame | None:
        """See `RunningProgram.breach`."""
        has_ended = self.process.returncode is not None
        fault: Forfeit | VoidGame | None = None
        if self._resources is None:
            SHARED_MEMORY.note_segments(self.process.pid, has_ended=has_ended)
        else:
            fault = self._resources.breach()
        if not isinstance(fault, Forfeit):  # a forfeit takes precedence over a void game
            fault = await self._monitor.breach() or fault
        if fault is None and self.process.returncode is None:
            self.scheduler.refresh()
        return fault

    async def kill(self) -> None:
        """See `RunningProgram.kill`."""
        if self._killing is None:
            self._killing = asyncio.ensure_future(self._kill())
        await asyncio.shield(self._killing)

    async def _kill(self) -> None:
        try:
            await self._end_processes()
        finally:
            if self._resources is not None:
                await asyncio.to_thread(self._resources.release)

    async def _end_processes(self) -> None:
        pid, resources = self.process.pid, self._resources
        if resources is None:
            has_ended = self.process.returncode is not None
            await SHARED_MEMORY.scan_again(pid, has_ended=has_ended)
        else:
            await asyncio.to_thread(resources.send_kill)
        # a killed process ends only when it gets a core, so end `cpu.idle` and thaw the cgroup before waiting
        self.scheduler.close()
        if resources is not None:
            await asyncio.to_thread(resources.kill_processes)
        # this is needed even if the program has a user of its own: its shim may still run as the referee's user
        await asyncio.to_thread(PROCESS_TREES.kill, pid)
        exited = asyncio.ensure_future(self.process.wait())
        await asyncio.wait((exited,), timeout=_EXIT_LIMIT_S)
        if resources is None:
            await SHARED_MEMORY.remove_leftovers(pid)
        else:
            await asyncio.to_thread(resources.remove_leftovers)
        if exited.done():
            PROCESS_TREES.discard(pid)
        else:  # keep it registered until the event loop has the exit status; otherwise `reap` could take the status
            exited.add_done_callback(lambda _: PROCESS_TREES.discard(pid))
        PROCESS_TREES.reap()


def make_reachable(path: Path) -> None:
    """Let other users pass through the referee's temporary folders to `path`, but not list these folders."""
    temporary = Path(tempfile.gettempdir())
    for parent in path.parents:
        if temporary in parent.parents:
            parent.chmod(parent.stat().st_mode | 0o011)
