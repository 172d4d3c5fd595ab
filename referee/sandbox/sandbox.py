"""Start programs in sandboxes of bubblewrap: the rungs `full` and `namespaces`."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from referee.errors import Forfeit, VoidGame, void_game
from referee.sandbox import DEFAULT_LIMITS, NO_ACCESS, Access, Limits, TotalUsage, seccomp
from referee.sandbox.bubblewrap import command_line
from referee.sandbox.cgroups import Cgroup, Cgroups
from referee.sandbox.monitor import ResourceMonitor
from referee.sandbox.mounts import Mounts, Overlays
from referee.sandbox.process_tree import PROCESS_TREES, read_name
from referee.sandbox.resources import ProgramSpec, SandboxResources
from referee.sandbox.scheduling import Scheduler
from referee.sandbox.start import (
    StartReport,
    finish_or_kill,
    open_report_pipe,
    parse_failure,
    start_failure,
    start_shim,
)

_EXIT_LIMIT_S = 2.0
"""How long to wait for the end of a sandbox that was killed or could not be set up."""
_MESSAGE_BYTES = 500
"""How many bytes of bubblewrap's own error output are put into an error message."""

# The steps of a start and of a shutdown, one after the other, and how each step of the start can fail:
#
#     create resources   user id, cgroup, owner of the folders       VoidGame
#     start shim         it joins the cgroup and changes the user    VoidGame, or Forfeit as in `_start`
#     bubblewrap         it makes namespaces and mounts              VoidGame, with bubblewrap's output
#     init               it is process 1 and starts the program      Forfeit, or VoidGame if a resource is lacking
#     running            init reports `runs PID`                      VoidGame if the CPU limit of the program cannot be set
#     launched           `launch` returns
#     ended              init reports `ended STATUS`; other processes of the program may still run
#     kill init          the kernel kills all processes of the namespace, and bubblewrap exits
#     kill bubblewrap    at once if init is not known, otherwise only if bubblewrap still runs after two seconds
#     release resources
#
# `kill` works in every state after "start shim", and also ends a start that fails or is cancelled. If the referee
# is killed, the kernel kills the shim or bubblewrap, and with bubblewrap the whole sandbox.


class SandboxLauncher:
    """Starts each program in a sandbox of bubblewrap, and in a cgroup if possible.

    Args:
        bwrap: the path of bubblewrap.
        cgroups: creates the cgroups, as far as the machine allows it.
        isolation: see `Launcher.isolation`.
    """

    is_sandboxed = True
    is_unprotected = False

    def __init__(self, bwrap: Path, cgroups: Cgroups, isolation: str = "") -> None:
        self.isolation = isolation
        self.cgroups = cgroups
        self._bwrap = bwrap
        self._overlays = Overlays(bwrap)

    async def launch(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        limits: Limits = DEFAULT_LIMITS,
        access: Access = NO_ACCESS,
    ) -> SandboxedProgram:
        """Start a program; see `Launcher.launch`."""
        program = ProgramSpec(tuple(command), folder, environment, limits, access)
        resources = SandboxResources(self.cgroups, program)
        try:
            launched = await finish_or_kill(self._start(program, resources))
        except BaseException:
            await asyncio.to_thread(resources.release)
            raise
        try:
            await launched.wait_for_start(command[0])
            resources.limit_cpu()
        except BaseException:
            await launched.kill()
            raise
        return launched

    async def _start(self, program: ProgramSpec, resources: SandboxResources) -> SandboxedProgram:
        """Start the shim, and return before the program runs.

        Raises VoidGame if the sandbox cannot be set up or the machine lacks a resource. Raises Forfeit if the shim cannot
        be started for another reason.
        """
        try:
            words, options = self.prepare_command(program, resources)
        except OSError as error:
            raise void_game(f"the sandbox cannot be set up: {error}") from error
        environment, limits = program.environment, program.limits
        report, report_end = open_report_pipe()
        try:
            with PROCESS_TREES.expect_start():
                bubblewrap = await start_shim(words, Path("/"), environment, report_end, options)
                return SandboxedProgram(bubblewrap, StartReport(report), resources, limits)
        except OSError as error:
            os.close(report)
            raise start_failure(error.errno, str(error.strerror)) from error
        finally:
            os.close(report_end)

    def prepare_command(
        self, program: ProgramSpec, resources: SandboxResources
    ) -> tuple[list[str], list[str]]:
        """Return the command line of bubblewrap, and the options of the shim."""
        # Overlays need an empty folder. The scratch folder on the machine stays empty, because the program gets a memory
        # file system instead of it.
        mounts = Mounts(resources.uid, self._overlays, empty=program.access.scratch)
        # Only builds and fetches have writable folders. Their package managers need locks, and they play no game.
        allow_locks = bool(program.access.writable)
        call_filter = seccomp.build_filter(platform.machine(), allow_locks=allow_locks)
        words = command_line(self._bwrap, program, mounts, has_filter=call_filter is not None)
        user = [] if resources.uid is None else ["--uid", str(resources.uid)]
        contents = (call_filter or b"", *mounts.contents)
        sandbox = ["--sandbox", ",".join(each.hex() for each in contents)]
        return words, [*resources.join_options, *mounts.options, *user, *sandbox]

    def reap(self) -> None:
        """See `Launcher.reap`."""
        PROCESS_TREES.reap()


class InnerProcess:
    """The program in the sandbox, as a `launcher.Process`.

    Args:
        bubblewrap: the process of bubblewrap. Its standard output and error are those of the program.
        report: the report of `init.py`, which says how the program ended.
    """

    def __init__(self, bubblewrap: asyncio.subprocess.Process, report: StartReport) -> None:
        self.stdout, self.stderr = bubblewrap.stdout, bubblewrap.stderr
        self.pid = bubblewrap.pid
        """The pid of the program as the referee sees it. Until this pid is known: the pid of bubblewrap."""
        self._bubblewrap = bubblewrap
        self._report = report

    @property
    def returncode(self) -> int | None:
        """See `Process.returncode`."""
        exit_code = self._report.exit_code
        code = exit_code.result() if exit_code.done() else None
        return _decode_signal(self._bubblewrap.returncode) if code is None else code

    async def wait(self) -> int:
        """Wait until the program or the whole sandbox ends, and return `returncode`."""
        if await asyncio.shield(self._report.exit_code) is None:
            await self._bubblewrap.wait()
        assert self.returncode is not None  # noqa: S101 - the program or the sandbox has ended
        return self.returncode


class SandboxedProgram:
    """A program in a sandbox, with its process tree and its sandbox resources.

    Args:
        bubblewrap: the process of bubblewrap.
        report: the report of `init.py` about the program.
        resources: the sandbox resources of the program. `kill` releases them.
        limits: the limits that the resource monitor checks.
    """

    def __init__(
        self,
        bubblewrap: asyncio.subprocess.Process,
        report: StartReport,
        resources: SandboxResources,
        limits: Limits,
    ) -> None:
        self._bubblewrap = bubblewrap
        self._report = report
        self._resources = resources
        self.process = InnerProcess(bubblewrap, report)
        self._monitor = ResourceMonitor(bubblewrap.pid, limits, resources.kernel_limits)
        self._monitor.unlimited_pids = {bubblewrap.pid}
        self.scheduler = Scheduler(resources.cgroup, self._monitor.find_members)
        self._init: psutil.Process | None = None
        """Process 1 of the sandbox, which runs `init.py`; None until it is known."""
        self._killing: asyncio.Task[None] | None = None
        PROCESS_TREES.add(bubblewrap.pid)

    @property
    def cgroup(self) -> Cgroup | None:
        """The cgroup of the program; None if the program runs without a cgroup."""
        return self._resources.cgroup

    async def breach(self) -> Forfeit | VoidGame | None:
        """See `RunningProgram.breach`."""
        fault = self._resources.breach()
        if not isinstance(fault, Forfeit):  # a forfeit takes precedence over a void game
            fault = await self._monitor.breach() or fault
        if fault is None and self.process.returncode is None:
            self.scheduler.refresh()
        return fault

    def usage(self) -> TotalUsage:
        """See `RunningProgram.usage`. A cgroup counts exactly, so it is preferred to the monitor."""
        return self._resources.usage(self._monitor.total)

    def busy_ns(self) -> int | None:
        """See `RunningProgram.busy_ns`."""
        return self._resources.busy_ns(self._monitor.busy_ns)

    async def wait_for_start(self, program: str) -> None:
        """Wait until the program runs.

        Raises `Forfeit` if the program cannot be started, and `VoidGame` if the sandbox cannot be set up or the
        machine lacks a resource.

        Args:
            program: the name or path of the program in its command.
        """
        line = await asyncio.shield(self._report.first_line)
        if not line.startswith("runs "):
            raise await self._explain_failure(line, program)
        try:
            self._init = self._find_init()
        except OSError as error:
            raise void_game(f"the sandbox cannot be watched: {error}") from error
        if self._init is None:
            return
        self._monitor.unlimited_pids = {self._bubblewrap.pid, self._init.pid}
        inner_pid = line.removeprefix("runs ")
        with suppress(psutil.Error):
            # the children of init are the program and adopted orphan processes
            for child in _child_pids(self._init.pid):
                if _pid_inside(child) == inner_pid:
                    self.process.pid = self.scheduler.group = child

    async def _explain_failure(self, line: str, program: str) -> Forfeit | VoidGame:
        """Return the failure that `line` reports. If `line` is empty, quote the error output of bubblewrap.

        If that is empty too, give the exit code of bubblewrap.
        """
        if line.startswith("refused "):
            return parse_failure(line.removeprefix("refused "), program)
        text = line or await self._read_errors()
        if not text.strip():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._bubblewrap.wait(), _EXIT_LIMIT_S)
            code = self._bubblewrap.returncode
            text = f"bubblewrap printed no reason; its exit code is {code}"
        return void_game(f"the sandbox cannot be set up: {text.strip()}")

    async def _read_errors(self) -> str:
        """Return the beginning of what bubblewrap prints until it ends. It prints a message in several parts."""
        errors = self._bubblewrap.stderr
        assert errors is not None  # noqa: S101 - it was started with pipes
        printed = b""
        with suppress(TimeoutError):
            async with asyncio.timeout(_EXIT_LIMIT_S):
                while part := await errors.read(_MESSAGE_BYTES - len(printed)):
                    printed += part
        return printed.decode("utf-8", "replace")

    def _find_init(self) -> psutil.Process | None:
        """Return process 1 of the sandbox; None if it does not exist. Raises OSError if processes cannot be listed."""
        with suppress(psutil.Error, IndexError):
            return psutil.Process(_child_pids(self._bubblewrap.pid)[0])
        return None

    def terminate(self) -> None:
        """See `RunningProgram.terminate`."""
        if self.scheduler.group is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.scheduler.group, signal.SIGTERM)

    def list_others(self) -> list[str]:
        """See `RunningProgram.list_others`."""
        with suppress(psutil.Error):
            inside = self._init.children(recursive=True) if self._init else ()
            pids = (each.pid for each in inside if each.pid != self.process.pid)
            return sorted(name for pid in pids if (name := read_name(pid)) is not None)
        return []

    async def kill(self) -> None:
        """See `RunningProgram.kill`."""
        if self._killing is None:
            self._killing = asyncio.ensure_future(self._kill())
        await asyncio.shield(self._killing)

    async def _kill(self) -> None:
        try:
            await self._end_processes()
        finally:
            self._report.close()
            await asyncio.to_thread(self._resources.release)

    async def _end_processes(self) -> None:
        # `_init` is not known if the start has failed or was cancelled, or if the sandbox ended at once. If the referee has
        # no free file descriptor, init cannot be found or killed (OSError). Then bubblewrap is killed, and the kernel kills
        # init with it.
        if self._init is None and self._bubblewrap.returncode is None:
            with suppress(OSError):
                self._init = self._find_init()
        if self._init is not None:  # when init ends, its whole namespace and bubblewrap end
            with suppress(psutil.Error, OSError):
                self._init.kill()
            # thaw the cgroup, because bubblewrap must run to notice the end of init
            self.scheduler.close()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._bubblewrap.wait(), _EXIT_LIMIT_S)
        if self._bubblewrap.returncode is None:
            with suppress(ProcessLookupError):
                self._bubblewrap.kill()
            await self._bubblewrap.wait()
        if self._init is not None:  # bubblewrap may have ended before process 1
            with suppress(psutil.TimeoutExpired, OSError):
                await asyncio.to_thread(self._init.wait, _EXIT_LIMIT_S)
        PROCESS_TREES.discard(self._bubblewrap.pid)
        PROCESS_TREES.reap()


def _child_pids(pid: int) -> list[int]:
    """Return the pids of the children of a process's main thread, oldest first.

    If the kernel does not list them, search all processes of the machine for children of the process.
    """
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return [child.pid for child in psutil.Process(pid).children()]


def _pid_inside(pid: int) -> str | None:
    """Return the pid of a process in its innermost PID namespace; None if the process is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((line.split()[-1] for line in lines if line.startswith("NSpid:")), None)


def _decode_signal(code: int | None) -> int | None:
    """Return bubblewrap's exit code, or the negative number of the signal that ended the sandbox.

    For a signal, bubblewrap exits with 128 plus the number of the signal.
    """
    return 128 - code if code is not None and code > 128 else code  # noqa: PLR2004
