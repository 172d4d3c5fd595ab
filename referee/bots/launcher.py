"""How a bot's program is started and how everything it started is ended.

`Launcher` is the seam where isolation goes (`referee.bots.isolation`); `ProcessGroupLauncher` has none:
trusted bots only.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import psutil

from referee.bots.access import NO_ACCESS, Access
from referee.bots.families import FAMILIES, TOKEN, kill
from referee.bots.gauge import Gauge
from referee.bots.limits import Limits, Usage
from referee.bots.room import SHORTAGES
from referee.bots.toolchains import how_to_install
from referee.errors import Cause, Evidence, Forfeit, VoidGame

_SHIM = Path(__file__).with_name("shim.py")
_UNKNOWN = -1
"""The number of uvloop's error where it cannot duplicate a pipe."""
_GONE_S = 2.0
"""How long killed processes may take to disappear."""
_ROUNDS = 20
"""How often a family is looked for again that has grown while it was killed."""
_LEAVE_S = 1.0
"""How long the helpers of a program that has ended may take to end after it."""
_LOOKS = 20
"""How often they are looked for in that time."""


class Process(Protocol):
    """What `asyncio.subprocess.Process` has, as far as it is needed."""

    @property
    def pid(self) -> int:
        """As this process sees it."""
        ...

    @property
    def stdout(self) -> asyncio.StreamReader | None:
        """The pipe."""
        ...

    @property
    def stderr(self) -> asyncio.StreamReader | None:
        """The pipe."""
        ...

    @property
    def returncode(self) -> int | None:
        """Negative for a signal; None while it runs."""
        ...

    async def wait(self) -> int:
        """Wait for its end; the return code."""
        ...


class Launched(Protocol):
    """A running program, with its standard output and standard error as pipes."""

    @property
    def process(self) -> Process:
        """The program itself."""
        ...

    def terminate(self) -> None:
        """Ask the program to end (SIGTERM)."""
        ...

    def others(self) -> list[str]:
        """The names of the processes that run because of the program, without its own."""
        ...

    def usage(self) -> Usage:
        """What it has taken since its start, with all that it started; cheap, for once a game."""
        ...

    def breach(self) -> Forfeit | None:
        """What limit of memory or processes it has broken, if any; cheap, for twice a second.

        Asked once more when the program has ended, which may be why.
        """
        ...

    async def kill(self) -> None:
        """End the program and everything it started, and wait until all of it is gone."""
        ...


class Launcher(Protocol):
    """Starts programs on one rung of the isolation ladder."""

    @property
    def isolation(self) -> str:
        """The rung and the protections that are not on, for records."""
        ...

    @property
    def sandboxed(self) -> bool:
        """Whether programs have a file tree and a loopback address of their own."""
        ...

    @property
    def trusting(self) -> bool:
        """Whether programs have the referee's own rights."""
        ...

    async def launch(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        limits: Limits | None = ...,
        access: Access = ...,
    ) -> Launched:
        """Start a program in a folder with exactly this environment, and with limits unless None.

        All paths are absolute.

        Raises `Forfeit` (no_start) when it is missing or cannot be executed, and `VoidGame` when
        the machine has no room for another process or its isolation cannot be set up.
        """
        ...

    def tidy(self) -> None:
        """Forget what programs left behind and has ended by itself; cheap, for after each game."""
        ...


class ProcessGroupLauncher:
    """Starts a program in a session of its own; no protection from it."""

    isolation = "none"
    sandboxed = False
    trusting = True

    async def launch(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        limits: Limits | None = None,
        access: Access = NO_ACCESS,  # noqa: ARG002 - it reaches everything
    ) -> Launched:
        """Start a program; see `Launcher.launch`."""
        return await start_group(command, folder=folder, environment=environment, limits=limits)

    def tidy(self) -> None:
        """See `Launcher.tidy`."""
        FAMILIES.reap()


async def start_group(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    limits: Limits | None,
    options: Sequence[str] = (),
) -> ProcessGroup:
    """Start a program behind the shim, which follows the options, as the leader of a process group.

    Raises as `Launcher.launch` does.
    """
    report, report_end = report_pipe()
    with open(report, "rb", buffering=0):  # noqa: PTH123, ASYNC230 - closes the descriptor
        try:
            with FAMILIES.starting():
                process = await spawn(
                    command, folder, environment, report_end, [*limiting(limits), *options]
                )
                launched = ProcessGroup(process, environment.get(TOKEN, ""), limits)
        except OSError as error:
            raise failure(error.errno, f"{folder}: {error.strerror}") from error
        finally:
            os.close(report_end)
        try:
            await _wait_until_it_runs(report, command[0])
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
    """

    def __init__(
        self, process: asyncio.subprocess.Process, token: str, limits: Limits | None
    ) -> None:
        self.process = process
        self._gauge = Gauge(process.pid, limits)
        self._gone = False
        FAMILIES.add(process.pid, token)

    def terminate(self) -> None:
        """Ask the whole group to end."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGTERM)

    def others(self) -> list[str]:
        """See `Launched.others`."""
        names = []
        for process in FAMILIES.of(self.process.pid):
            with suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE:
                    names.append(process.name())
        return sorted(names)

    def usage(self) -> Usage:
        """See `Launched.usage`."""
        return self._gauge.usage()

    def breach(self) -> Forfeit | None:
        """See `Launched.breach`: by what is seen now."""
        return self._gauge.breach()

    async def kill(self) -> None:
        """Kill the program and its family, and wait until all of it is gone."""
        if self._gone:  # others may have its pid by now
            return
        family = FAMILIES.of(self.process.pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            self.process.kill()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), _GONE_S)
        for _ in range(_ROUNDS):
            if not family:
                break
            kill(family)
            await asyncio.to_thread(psutil.wait_procs, family, timeout=_GONE_S)
            family = FAMILIES.of(self.process.pid)
        self._gone = True
        FAMILIES.discard(self.process.pid)


async def left_behind(launched: Launched) -> list[str]:
    """The names of what still runs some time after the program itself."""
    for _ in range(_LOOKS):
        if not launched.others():
            break
        await asyncio.sleep(_LEAVE_S / _LOOKS)
    return launched.others()


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


async def _wait_until_it_runs(report: int, program: str) -> None:
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


def signal_name(number: int) -> str:
    """`SIGSEGV`, or `signal 40` for one without a name, such as the real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
