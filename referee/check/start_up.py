"""Where the bot under test is started: as often as steps want a fresh process, and never left behind.

The first steps, without which there is nothing to check: from a folder to a bot that has said hello.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from referee.bots import BotProcess, Launcher
from referee.bots.build import LIMIT_S
from referee.bots.manifest import BotSpec, Manifest, load_manifest
from referee.check.report import Finding, StepFailure, fault_words, listed, passed
from referee.check.seats import UsageMonitor
from referee.clocks import Clocks
from referee.errors import Cause, Forfeit, UserError
from referee.roster.workshop import BuildError, Copy, Workshop
from referee.rules.ruleset import RULESETS

_TAIL = 4096
"""Bytes of the bot's output that a finding keeps."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Starts one bot."""

    spec: BotSpec
    folder: Path
    """For the folders of its processes."""
    clocks: Clocks
    meter: UsageMonitor
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

        `StepFailure` gets the end of what the process printed. Raises it, too, if the bot does not start.
        """
        try:
            process = await self.start()
        except Forfeit as fault:
            raise StepFailure(
                "the bot starts again, as it did before",
                fault_words(fault),
                fault.evidence.stderr_tail,
            ) from None
        try:
            async with self.meter.watching(process.pid):
                yield process
                self.launcher.tidy()
        except StepFailure as trouble:
            await process.stop(gently=False)
            raise StepFailure(trouble.expected, trouble.came, last_words(process)) from None
        finally:
            await process.stop(gently=False)


def last_words(process: BotProcess) -> str:
    """The end of its standard error; of its standard output where that is empty."""
    return process.stderr_tail() or process.output.tail(_TAIL)


_NEVER_CAME = {Cause.NO_START, Cause.EXITED_EARLY, Cause.CONNECT_TIMEOUT}
"""Causes that keep a bot from saying anything, right or wrong."""


class StartUp:
    """Brings a bot to life. The steps are to be done in order, each only if those before went well.

    Args:
        folder: the bot's; a copy of it is built and run.
        workshop: makes the copy, and has the launcher that the copy is started with too.
        scratch: an empty folder.
        clocks: with the start-up limit.
        meter: measures the processes.
    """

    def __init__(
        self, folder: Path, workshop: Workshop, scratch: Path, clocks: Clocks, meter: UsageMonitor
    ) -> None:
        self._folder = folder
        self._workshop = workshop
        self._scratch = scratch
        self._clocks = clocks
        self._meter = meter
        self._refused: Forfeit | None = None
        """It has come, but its hello was wrong."""
        self.manifest: Manifest | None = None
        """None before `read_manifest`."""
        self.copy: Copy | None = None
        """None before `build`."""
        self.max_games = 1
        """What its hello says."""

    @property
    def spec(self) -> BotSpec:
        """How the copy is started."""
        assert self.copy is not None  # noqa: S101 - the step before
        return self.copy.spec

    @property
    def bench(self) -> Bench:
        """Starts the bot once it is built."""
        return Bench(self.spec, self._scratch, self._clocks, self._meter, self._workshop.launcher)

    async def read_manifest(self) -> Finding:
        """`bot.toml`. Raises `StepFailure`."""
        try:
            self.manifest = manifest = load_manifest(self._folder)
        except UserError as error:
            raise StepFailure(
                "a bot.toml with name, version, author, language and [run] command, as the guide has it",
                str(error),
            ) from None
        plays = "all" if set(manifest.rulesets) == set(RULESETS) else listed(manifest.rulesets)
        return passed(f"{manifest.bot}, {manifest.language}; rulesets: {plays}")

    async def build(self) -> Finding:
        """A copy of the folder, and the manifest's build command in it. Raises `StepFailure`."""
        assert self.manifest is not None  # noqa: S101 - the step before
        words = " ".join(self.manifest.build.command) if self.manifest.build else ""
        try:
            self.copy = copy = await self._workshop.copy(self._folder)
        except BuildError as error:
            raise StepFailure(
                f"`{words}` exits with 0 within {LIMIT_S / 60:g} minutes, in a copy of the folder",
                error.reason,
                error.output,
            ) from None
        except UserError as error:
            raise StepFailure(
                "a folder that can be copied: builds run in a copy", str(error)
            ) from None
        if not words:
            return passed("no build command: nothing to build")
        if copy.build_s is None:
            return passed(f"the same content was built before: {words}")
        return passed(f"{copy.build_s:.1f} s: {words}")

    async def start(self) -> Finding:
        """The first process, up to its hello. Raises `StepFailure`."""
        began_s = time.monotonic()
        try:
            process = await self.bench.start()
        except Forfeit as fault:
            if fault.cause in _NEVER_CAME:
                raise StepFailure(
                    f"`{' '.join(self.spec.command)}` starts, connects to REFEREE_ADDRESS and sends its"
                    f" hello within {self._clocks.start_up_us / 1e6:g} s",
                    fault_words(fault),
                    fault.evidence.stderr_tail,
                ) from None
            self._refused = fault
            return passed("it started and connected")
        start_up_s = time.monotonic() - began_s
        self.max_games = process.max_games
        async with self._meter.watching(process.pid):
            await process.stop()
        return passed(f"hello after {start_up_s:.2f} s")

    async def hello(self) -> Finding:
        """What the hello said. Raises `StepFailure`."""
        if self._refused is not None:
            raise StepFailure(
                "the first message has hello set, with protocol_version 1 and the token of REFEREE_TOKEN",
                fault_words(self._refused),
                self._refused.evidence.stderr_tail,
            )
        return passed(f"version 1, the right token, max_games {self.max_games:,}")
