"""A program that runs in a sandbox.

Starts programs in sandboxes.
"""

from __future__ import annotations

import asyncio
import os
import platform
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from referee.errors import Forfeit, VoidGame
from referee.sandbox import seccomp
from referee.sandbox.bubblewrap import Stage, command_line
from referee.sandbox.cgroups import Cgroup, Cgroups
from referee.sandbox.launcher import Process
from referee.sandbox.limits import NO_ACCESS, Access, Limits, TotalUsage
from referee.sandbox.monitor import ResourceMonitor
from referee.sandbox.process_tree import PROCESS_TREES, TOKEN
from referee.sandbox.resources import ProgramSpec, SandboxResources
from referee.sandbox.starting import failure, limiting, refusal, report_pipe, spawn

_GONE_S = 2.0
"""How long a killed sandbox may take to disappear."""
_SAID = 500
"""How much of what bubblewrap says is told."""


class Report:
    """What the shim and the first process of a sandbox say, line by line.

    Args:
        descriptor: where; closed at the end.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._text = b""
        self._loop = asyncio.get_running_loop()
        self.started: asyncio.Future[str] = self._loop.create_future()
        """Its first line; empty where it ended without one."""
        self.ended: asyncio.Future[int | None] = self._loop.create_future()
        """The program's exit code, negative for a signal; None where nobody is left to say it."""
        self._loop.add_reader(descriptor, self._read)

    def close(self) -> None:
        """Listen no more."""
        if self._descriptor < 0:
            return
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1
        if not self.started.done():
            self.started.set_result(self._text.decode("utf-8", "replace"))
        if not self.ended.done():
            self.ended.set_result(None)

    def _read(self) -> None:
        data = os.read(self._descriptor, 4096)
        self._text += data
        *lines, self._text = self._text.split(b"\n")
        for line in lines:
            word, _, rest = line.decode("utf-8", "replace").partition(" ")
            if not self.started.done():
                self.started.set_result(line.decode("utf-8", "replace"))
            elif word == "ended" and not self.ended.done():
                self.ended.set_result(os.waitstatus_to_exitcode(int(rest)))
        if not data:
            self.close()


class Inside:
    """The program itself, as `launcher.Process` has it.

    Args:
        outer: bubblewrap.
        report: of the sandbox.
    """

    def __init__(self, outer: asyncio.subprocess.Process, report: Report) -> None:
        self.stdout, self.stderr = outer.stdout, outer.stderr
        self.pid = outer.pid
        self._outer = outer
        self._report = report

    @property
    def returncode(self) -> int | None:
        """Negative for a signal; None while it runs."""
        code = self._report.ended.result() if self._report.ended.done() else None
        return _as_signal(self._outer.returncode) if code is None else code

    async def wait(self) -> int:
        """Wait for its end, or for that of the whole sandbox."""
        if await asyncio.shield(self._report.ended) is None:
            await self._outer.wait()
        assert self.returncode is not None  # noqa: S101 - one of both has ended
        return self.returncode


class SandboxedProgram:
    """A program in a sandbox, with all that it has started.

    Args:
        outer: bubblewrap.
        report: of the sandbox.
        grounds: what was made for it.
        token: the one in its environment.
        limits: what it may take; None: what it likes.
    """

    def __init__(
        self,
        outer: asyncio.subprocess.Process,
        report: Report,
        grounds: SandboxResources,
        token: str,
        limits: Limits | None,
    ) -> None:
        self._outer = outer
        self._report = report
        self._grounds = grounds
        self._inside = Inside(outer, report)
        self._gauge = ResourceMonitor(outer.pid, limits, grounds.held)
        self._gauge.spared = {outer.pid}
        self._init: psutil.Process | None = None
        self._killing: asyncio.Task[None] | None = None
        PROCESS_TREES.add(outer.pid, token)

    @property
    def process(self) -> Process:
        """See `RunningProgram.process`."""
        return self._inside

    @property
    def cgroup(self) -> Cgroup | None:
        """Its own."""
        return self._grounds.cgroup

    def breach(self) -> Forfeit | None:
        """See `RunningProgram.breach`."""
        return self._grounds.breach() or self._gauge.breach()

    def usage(self) -> TotalUsage:
        """See `RunningProgram.usage`: as a cgroup counts it, where there is one."""
        return self._grounds.usage() or self._gauge.usage()

    def busy_ns(self) -> int | None:
        """See `RunningProgram.busy_ns`."""
        return self._gauge.busy_ns()

    async def run(self, program: str) -> None:
        """Wait until the program runs. Raises `Forfeit` where it does not, `VoidGame` for the sandbox."""
        said = await asyncio.shield(self._report.started)
        if not said.startswith("runs "):
            if said.startswith("refused "):
                raise refusal(said.removeprefix("refused "), program)
            assert self._outer.stderr is not None  # noqa: S101 - it was started with pipes
            words = said or (await self._outer.stderr.read(_SAID)).decode("utf-8", "replace")
            raise VoidGame(f"the sandbox cannot be set up: {words.strip() or 'nobody says why'}")
        self._init = self._first()
        if self._init is None:
            return
        self._gauge.spared = {self._outer.pid, self._init.pid}
        inner = said.removeprefix("runs ")
        with suppress(psutil.Error):
            for child in _children(self._init.pid):  # orphans are among them, if it was quick
                if _inner_pid(child) == inner:
                    self._inside.pid = child

    def _first(self) -> psutil.Process | None:
        """The first process of the sandbox, if it is there."""
        with suppress(psutil.Error, IndexError):
            return psutil.Process(_children(self._outer.pid)[0])
        return None

    def terminate(self) -> None:
        """Ask all of it to end; its first process does not listen to that."""
        if self._init is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._init.pid, signal.SIGTERM)

    def list_others(self) -> list[str]:
        """See `RunningProgram.list_others`."""
        names = []
        with suppress(psutil.Error):
            for process in self._init.children(recursive=True) if self._init else ():
                with suppress(psutil.Error):
                    ended = process.status() == psutil.STATUS_ZOMBIE
                    if not ended and process.pid != self._inside.pid:
                        names.append(process.name())
        return sorted(names)

    async def kill(self) -> None:
        """End the sandbox with all that is in it, and wait until all of it is gone."""
        if self._killing is None:
            self._killing = asyncio.ensure_future(self._kill())
        await asyncio.shield(self._killing)

    async def _kill(self) -> None:
        if self._init is None and self._outer.returncode is None:  # given up before it was told of
            self._init = self._first()
        if self._init is not None:  # with it ends the whole namespace, then bubblewrap
            with suppress(psutil.Error):
                self._init.kill()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._outer.wait(), _GONE_S)
        if self._outer.returncode is None:
            with suppress(ProcessLookupError):
                self._outer.kill()
            await self._outer.wait()
        if self._init is not None:  # bubblewrap need not have waited for it
            with suppress(psutil.TimeoutExpired):
                await asyncio.to_thread(self._init.wait, _GONE_S)
        PROCESS_TREES.discard(self._outer.pid)
        PROCESS_TREES.reap()
        self._report.close()
        await asyncio.to_thread(self._grounds.give_back)


def _children(pid: int) -> list[int]:
    """Of a process of one thread, oldest first; without a look at all the machine's processes."""
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return [child.pid for child in psutil.Process(pid).children()]


def _inner_pid(pid: int) -> str | None:
    """What the innermost namespace of a process calls it; None where it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((line.split()[-1] for line in lines if line.startswith("NSpid:")), None)


def _as_signal(code: int | None) -> int | None:
    """What bubblewrap exits with, as of the process in it: 128 and more are signals."""
    return 128 - code if code is not None and code > 128 else code  # noqa: PLR2004


class SandboxLauncher:
    """Starts programs in bubblewrap, each in a cgroup where there can be one.

    Args:
        bwrap: the program bubblewrap.
        cgroups: makes cgroups, as far as that is possible.
        isolation: what is known of what this protects.
    """

    is_sandboxed = True
    is_unprotected = False

    def __init__(self, bwrap: Path, cgroups: Cgroups, isolation: str = "") -> None:
        self.isolation = isolation
        self.cgroups = cgroups
        self._bwrap = bwrap
        self._filter = seccomp.program(platform.machine())

    async def launch(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        limits: Limits | None = None,
        access: Access = NO_ACCESS,
    ) -> SandboxedProgram:
        """Start a program; see `Launcher.launch`."""
        program = ProgramSpec(tuple(command), folder, environment, limits or Limits(), access)
        grounds = SandboxResources(self.cgroups, program)
        try:
            try:
                words, options = self.words(program, grounds)
            except OSError as error:
                raise VoidGame(f"the sandbox cannot be set up: {error}") from error
            reading, writing = report_pipe()
            try:
                with PROCESS_TREES.starting():
                    options = [*limiting(limits), *options]
                    outer = await spawn(words, Path("/"), environment, writing, options)
                    report = Report(reading)
                    launched = SandboxedProgram(
                        outer, report, grounds, environment.get(TOKEN, ""), limits
                    )
            except OSError as error:
                os.close(reading)
                raise failure(error.errno, str(error.strerror)) from error
            finally:
                os.close(writing)
        except BaseException:
            grounds.give_back()
            raise
        try:
            await launched.run(command[0])
        except BaseException:
            await launched.kill()
            raise
        return launched

    def words(self, program: ProgramSpec, grounds: SandboxResources) -> tuple[list[str], list[str]]:
        """The command line of bubblewrap, and what the shim has to do before."""
        stage = Stage(grounds.uid)
        words = command_line(self._bwrap, program, stage, filtered=self._filter is not None)
        user = [] if grounds.uid is None else ["--uid", str(grounds.uid)]
        handed = ["--sandbox", (self._filter or b"").hex()]
        return words, [*grounds.doors, *stage.options, *user, *handed]

    def reap(self) -> None:
        """See `Launcher.reap`."""
        PROCESS_TREES.reap()
