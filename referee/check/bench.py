"""Where the bot under test is started: as often as steps want a fresh process, and never left behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from referee.bots import BotProcess, Launcher
from referee.bots.manifest import BotSpec
from referee.check.meter import Meter
from referee.check.report import Trouble
from referee.check.words import fault_words
from referee.clocks import Clocks
from referee.errors import Forfeit

_TAIL = 4096
"""Bytes of the bot's output that a finding keeps."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Starts one bot."""

    spec: BotSpec
    folder: Path
    """For the folders of its processes."""
    clocks: Clocks
    meter: Meter
    launcher: Launcher

    async def start(self) -> BotProcess:
        """A process that has said hello; whoever starts it stops it. Raises its `Forfeit`."""
        return await BotProcess.start(
            self.spec,
            launcher=self.launcher,
            folder=self.folder,
            limit_us=self.clocks.start_up_us,
            tokens=set(),
        )

    @asynccontextmanager
    async def bot(self) -> AsyncIterator[BotProcess]:
        """A fresh process of the bot, which is ended with all that it started.

        `Trouble` gets the end of what the process printed. Raises it, too, if the bot does not start.
        """
        try:
            process = await self.start()
        except Forfeit as fault:
            raise Trouble(
                "the bot starts again, as it did before",
                fault_words(fault),
                fault.evidence.stderr_tail,
            ) from None
        try:
            async with self.meter.watching(process.pid):
                yield process
                self.launcher.tidy()
        except Trouble as trouble:
            await process.stop(gently=False)
            raise Trouble(trouble.expected, trouble.came, last_words(process)) from None
        finally:
            await process.stop(gently=False)


def last_words(process: BotProcess) -> str:
    """The end of its standard error; of its standard output where that is empty."""
    return process.stderr_tail() or process.output.tail(_TAIL)
