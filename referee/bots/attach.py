"""Let a person start a bot, by hand or in a debugger: the referee starts nothing, and waits until the bot connects.

`AttachLauncher` takes the place of a launcher of the sandbox. It has no process, so the referee has no process to
measure, limit or pause. Any program that knows the token can be the bot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from referee.errors import Forfeit
from referee.sandbox import DEFAULT_LIMITS, Access, Limits, TotalUsage
from referee.sandbox.launcher import RunningProgram
from referee.sandbox.scheduling import Scheduler

Announce = Callable[[str, str], None]
"""Tells the person the address and the token, with which the bot must be started."""


class AttachLauncher:
    """A `Launcher` for a bot that a person starts.

    Args:
        announce: called when the referee waits for the bot.
    """

    isolation = "none"
    is_sandboxed = False
    is_unprotected = True

    def __init__(self, announce: Announce) -> None:
        self._announce = announce

    async def launch(
        self,
        command: Sequence[str],  # noqa: ARG002 - `Launcher` has these arguments
        *,
        folder: Path,  # noqa: ARG002
        environment: Mapping[str, str],
        limits: Limits = DEFAULT_LIMITS,  # noqa: ARG002
        access: Access = Access(),  # noqa: ARG002, B008
    ) -> RunningProgram:
        """Start nothing. Announce the address and the token.

        At the end of a run, the referee kills every process whose REFEREE_ADDRESS is a socket in the run folder. This
        would also kill the person's program or debugger. So the announced path has an additional `/.`, and the referee
        does not recognise it as a path in the run folder.
        """
        address = environment["REFEREE_ADDRESS"].replace("unix:/", "unix:/./")
        self._announce(address, environment["REFEREE_TOKEN"])
        return AttachedProgram()

    def reap(self) -> None:
        """Do nothing: there are no processes."""


class AttachedProgram:
    """A `RunningProgram` without a known process. For the referee it has ended after `terminate` or `kill`."""

    def __init__(self) -> None:
        self.process = _UnknownProcess()
        self.scheduler = Scheduler(None, list)

    def terminate(self) -> None:
        """Stop waiting for the program."""
        self.process.ended.set()

    def list_others(self) -> list[str]:
        """Return an empty list: no process is known."""
        return []

    def usage(self) -> TotalUsage:
        """Return zeros, because no process is measured."""
        return TotalUsage(0.0, 0)

    def busy_ns(self) -> int | None:
        """Return None: no thread is measured."""
        return None

    async def breach(self) -> Forfeit | None:
        """Return None: there are no limits."""
        return None

    async def kill(self) -> None:
        """Stop waiting for the program. It goes on, but its stream ends."""
        self.terminate()


class _UnknownProcess:
    """Stands for the process that a person has started. The referee does not know this process.

    `returncode` stays None. `wait` returns 0 when the referee does not need the program any more.
    """

    pid = 0
    returncode: int | None = None

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.stdout, self.stderr = asyncio.StreamReader(), asyncio.StreamReader()
        for output in (self.stdout, self.stderr):
            output.feed_eof()  # the person gets the output, and the referee does not

    async def wait(self) -> int:
        """Wait until the referee does not use the program any more."""
        await self.ended.wait()
        return 0
