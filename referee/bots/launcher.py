"""How a bot's program is started and how everything it started is ended: the seam where isolation goes.

What is on its other side: `process_group`, without isolation, and the rungs of `referee.bots.isolation`.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from referee.bots.access import Access
from referee.bots.limits import Limits, Usage
from referee.errors import Forfeit

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


async def left_behind(launched: Launched) -> list[str]:
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
