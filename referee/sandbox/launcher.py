"""What a bot may take of the machine: what its manifest asks for, what a tournament allows.

How it is held to that is the launcher's business; what it took is a `Usage`.

What a program may reach: said by who starts it, seen to by a launcher that isolates.

What a bot prints: always drained, the end of it kept, shown without its power over a terminal.

How a bot's program is started and how everything it started is ended: the seam where isolation goes.

What is on its other side: `process_group`, without isolation, and the rungs of `referee.sandbox`.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import Field

from referee.errors import Forfeit
from referee.records import Usage
from referee.toml_file import FileModel

__all__ = ["DEFAULT", "Limits", "LimitsTable", "Usage"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the process of a bot may take, with everything that it starts."""

    memory_mib: int = 1024
    """Of all its processes together."""
    processes: int = 64
    """How many there may be at once."""
    cpus: float = 1.0
    """As much computing as so many cores can do, all the time."""
    scratch_mib: int = 64
    """What may lie in its scratch folder."""
    open_files: int = 1024
    """Of each of its processes."""
    output_kib: int = 1024
    """What is kept of its standard output, and of its standard error: the last of it."""

    def at_most(self, maxima: Limits) -> Limits:
        """These, where the maxima are not lower."""
        return Limits(
            min(self.memory_mib, maxima.memory_mib),
            min(self.processes, maxima.processes),
            min(self.cpus, maxima.cpus),
            min(self.scratch_mib, maxima.scratch_mib),
            min(self.open_files, maxima.open_files),
            min(self.output_kib, maxima.output_kib),
        )


DEFAULT = Limits()


class LimitsTable(FileModel):
    """`[limits]` of a file, which need not say all of them."""

    memory_mib: Annotated[int, Field(ge=16, le=1 << 24)] | None = None
    processes: Annotated[int, Field(ge=1, le=32_768)] | None = None
    cpus: Annotated[float, Field(ge=0.01, le=1024, allow_inf_nan=False)] | None = None
    scratch_mib: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    open_files: Annotated[int, Field(ge=32, le=1 << 20)] | None = None
    output_kib: Annotated[int, Field(ge=4, le=1 << 16)] | None = None

    @property
    def said(self) -> dict[str, Any]:
        """What it says, by key; numbers."""
        return self.model_dump(exclude_none=True)

    def limits(self, default: Limits = DEFAULT) -> Limits:
        """What it says, and the default where it says nothing."""
        return replace(default, **self.said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a program may reach beside the system, its own folder and what it is made of."""

    scratch: Path | None = None
    """An empty folder that is its own: HOME and TMPDIR."""
    link: Path | None = None
    """The folder of the socket by which it reaches the referee."""
    home: Path | None = None
    """A folder that is its own, which a sandbox shows in the place of its user's home folder."""
    writable: tuple[Path, ...] = ()
    """Folders in which it may change everything; its own folder may be one of them."""
    shown: tuple[Path, ...] = ()
    """Further files and folders that it may read."""
    network: bool = False
    """All that the machine reaches."""
    relay: tuple[Path, int] | None = None
    """A UNIX socket that it is to reach by this port of its loopback address."""


NO_ACCESS = Access()
"""Nothing of that."""


KEPT = 1 << 20
"""Bytes kept of an output, where nothing else is said."""
_CHUNK = 1 << 16


class Output:
    """One output of a process. Only its last bytes count; no more than twice that is held.

    Args:
        kept: how many.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._bytes = bytearray()
        self.total = 0
        """Bytes written so far."""

    async def drain(self, pipe: asyncio.StreamReader) -> None:
        """Read a pipe to its end; to be run as a task that is cancelled with the process.

        Lets everybody else run after each chunk: a pipe that is never empty would hold the loop.
        """
        while chunk := await pipe.read(_CHUNK):
            self.add(chunk)
            await asyncio.sleep(0)

    def add(self, chunk: bytes) -> None:
        """Keep a chunk, and forget what is too old."""
        self._bytes += chunk
        self.total += len(chunk)
        if len(self._bytes) > 2 * self._kept:
            del self._bytes[: -self._kept]

    def kept(self) -> bytes:
        """The last bytes, no more than are to be kept."""
        return bytes(self._bytes[-self._kept :])

    def tail(self, size: int) -> str:
        """The last `size` bytes as text that can be printed: control characters are shown, not obeyed."""
        text = self._bytes[-size:].decode("utf-8", "backslashreplace")
        return "".join(
            char if char.isprintable() or char in "\n\t" else _escaped(char) for char in text
        )


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


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


class RunningProgram(Protocol):
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

    def busy_ns(self) -> int | None:
        """CPU time of its family, if a thread of it now has a core or waits for one; None: all sleep.

        Threads that have ended count, and processes that were waited for; takes some 20 us a thread.
        """
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
    ) -> RunningProgram:
        """Start a program in a folder with exactly this environment, and with limits unless None.

        All paths are absolute.

        Raises `Forfeit` (no_start) when it is missing or cannot be executed, and `VoidGame` when
        the machine has no room for another process or its isolation cannot be set up.
        """
        ...

    def tidy(self) -> None:
        """Forget what programs left behind and has ended by itself; cheap, for after each game."""
        ...


async def left_behind(launched: RunningProgram) -> list[str]:
    """The names of what still runs some time after the program itself."""
    for _ in range(_LOOKS):
        if not launched.others():
            break
        await asyncio.sleep(_LEAVE_S / _LOOKS)
    return launched.others()


def signal_name(number: int) -> str:
    """`SIGSEGV`, or `signal 40` for one without a name, such as the real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
