"""Check the start-up of a bot, from its folder to its hello, and its shutdown."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from referee.bots import BotSpec
from referee.bots.build import LIMIT_S
from referee.bots.logs import LogSettings
from referee.bots.manifest import Manifest, load_manifest
from referee.bots.process import GOODBYE_S, TERM_S, Shutdown
from referee.check import (
    Finding,
    StepFailure,
    fault_text,
    join_names,
    pass_with,
    skip_because,
)
from referee.check.bot_under_test import BotUnderTest, Measurements
from referee.check.games import CheckGame, play_game
from referee.clocks import Clocks
from referee.errors import Cause, Forfeit, UserError
from referee.roster.content import BuildError, FolderError
from referee.roster.workshop import Copy, Workshop
from referee.rules.ruleset import RULESETS
from referee.sandbox.launcher import signal_name

_NO_HELLO_CAUSES = {
    Cause.NO_START,
    Cause.EXITED_EARLY,
    Cause.CONNECT_TIMEOUT,
    Cause.OOM,
    Cause.TOO_MANY_PROCESSES,
    Cause.SCRATCH_FULL,
}
"""A fault with one of these causes fails the step `start`. Any other fault fails the step `hello`, and the
expectation that `check_hello` prints must fit this fault."""
_SIGTERM_CODES = {0, -signal.SIGTERM, 128 + signal.SIGTERM}
"""The right exit codes after SIGTERM.

A program that handles SIGTERM exits with 0. Without a handler the code is -15, or 143 for a shell or Java.
"""


class StartUpSteps:
    """The steps up to the hello. The caller must run them in order, and stop after a failed step.

    Args:
        folder: the bot's folder. Only a copy of the folder is built and run.
        workshop: copies and builds the bot, and has the launcher for it.
        scratch: the run folder. Each process of the bot gets a subfolder of its own.
        clocks: the time limits for the bot.
        measurements: collects the usage of the processes.
        logs: where to write what the bot prints; None for nowhere.
    """

    def __init__(
        self,
        folder: Path,
        workshop: Workshop,
        scratch: Path,
        clocks: Clocks,
        measurements: Measurements,
        *,
        logs: LogSettings | None,
    ) -> None:
        self._folder = folder
        self._workshop = workshop
        self._scratch = scratch
        self._clocks = clocks
        self._measurements = measurements
        self._logs = logs
        self._hello_fault: Forfeit | None = None
        """The fault that `start` has caught and `check_hello` reports; None if there is none."""
        self.manifest: Manifest | None = None
        """The bot's manifest; None until `read_manifest` has passed."""
        self.copy: Copy | None = None
        """The built copy; None until `build` has passed."""
        self.max_games = 1
        """How many games the bot can play at once, according to its hello; 1 before the hello."""

    @property
    def spec(self) -> BotSpec:
        """What is needed to start the built copy. Use it only after `build` has passed."""
        assert self.copy is not None  # noqa: S101 - `build` has run
        return self.copy.spec

    @property
    def bot(self) -> BotUnderTest:
        """The built copy as the bot under test. Use it only after `build` has passed."""
        return BotUnderTest(
            self.spec,
            self._scratch,
            self._clocks,
            self._measurements,
            self._workshop.launcher,
            self._logs,
        )

    async def read_manifest(self) -> Finding:
        """Check `bot.toml`. Raises `StepFailure` if `bot.toml` is missing or wrong."""
        try:
            self.manifest = manifest = load_manifest(self._folder)
        except UserError as error:
            raise StepFailure(
                "a bot.toml with name, version, author, language and [run] command, as the guide describes",
                "; ".join(error.args),
            ) from None
        is_complete = set(manifest.rulesets) == set(RULESETS)
        rulesets = "all" if is_complete else join_names(manifest.rulesets)
        return pass_with(f"{manifest.bot}, {manifest.language}; rulesets: {rulesets}")

    async def build(self) -> Finding:
        """Copy the folder, fetch the packages that the bot needs, and run the manifest's build command in the copy.

        Raises `StepFailure` if the folder cannot be copied, or if the fetch or the build fails. Raises `UserError` if the
        reason is not in the bot, for example if the user has no home folder.
        """
        assert self.manifest is not None  # noqa: S101 - `read_manifest` has run
        command = " ".join(self.manifest.build.command) if self.manifest.build else ""
        try:
            self.copy = copy = await self._workshop.copy(self._folder, is_kept=False)
        except BuildError as error:
            raise StepFailure(
                "packages that can be fetched from a registry"
                if error.is_fetch
                else f"`{command}` exits with 0 within {LIMIT_S / 60:g} minutes, in a copy of the folder,"
                " and leaves there only what the guide allows",
                error.reason,
                error.output,
            ) from None
        except FolderError as error:
            raise StepFailure(
                "a folder that can be copied, because builds run in a copy", str(error)
            ) from None
        if not command and copy.build_s is not None:
            return pass_with(f"{copy.build_s:.1f} s: packages were fetched; no build command")
        if not command:
            return pass_with("no build command: nothing to build")
        if copy.build_s is None:
            return pass_with(f"the same content was built before: {command}")
        return pass_with(f"{copy.build_s:.1f} s: {command}")

    async def start(self) -> Finding:
        """Start the first process and wait for its hello.

        Raises `StepFailure` if the program cannot be started, ends too early, breaks a limit, or sends no hello in time.
        For all other faults, `check_hello` raises the `StepFailure`.
        """
        began_s = time.monotonic()
        try:
            process = await self.bot.start()
        except Forfeit as fault:
            if fault.cause in _NO_HELLO_CAUSES:
                raise StepFailure(
                    f"`{' '.join(self.spec.command)}` starts, connects to REFEREE_ADDRESS and sends its"
                    f" hello within {self._clocks.start_up_us / 1e6:g} s",
                    fault_text(fault),
                    fault.evidence.stderr_tail,
                ) from None
            self._hello_fault = fault
            return pass_with("it started and connected")
        start_up_s = time.monotonic() - began_s
        self.max_games = process.max_games
        async with self._measurements.watch(process.pid):
            await process.stop()
        return pass_with(f"hello after {start_up_s:.2f} s")

    async def check_hello(self) -> Finding:
        """Report the hello that `start` got. Raises `StepFailure` if the hello was wrong."""
        if self._hello_fault is not None:
            raise StepFailure(
                "the first message has hello set, with protocol_version 1 and the token of REFEREE_TOKEN",
                fault_text(self._hello_fault),
                self._hello_fault.evidence.stderr_tail,
            )
        return pass_with(f"version 1, the right token, max_games {self.max_games:,}")


class ShutdownSteps:
    """The steps that shut the bot down, and report the processes that it leaves running.

    One process of the bot gets a goodbye, and another process gets SIGTERM.

    Args:
        bot: the bot under test.
        game: a game to play before each shutdown; None if the bot has played no full game without a mistake.
    """

    def __init__(self, bot: BotUnderTest, game: CheckGame | None) -> None:
        self._bot = bot
        self._game = game
        self._left_running: dict[str, tuple[str, ...]] = {}
        """For each `event` of `_shut_down` after which the bot exited: the names of the processes that it left running."""

    async def check_goodbye(self) -> Finding:
        """Send a goodbye. Raises `StepFailure` if the bot does not exit with 0 in time."""
        return await self._shut_down(
            "the goodbye",
            f"it closes its stream and exits with 0 within {GOODBYE_S:g} s of the goodbye",
            {0},
        )

    async def check_sigterm(self) -> Finding:
        """Send SIGTERM, as the referee does if a bot ignores the goodbye.

        Raises `StepFailure` if the bot does not exit in time, or if its exit code is not in `_SIGTERM_CODES`.
        """
        return await self._shut_down(
            "SIGTERM",
            f"it ends within {TERM_S:g} s of SIGTERM, by the signal, or with exit code 0 or 143",
            _SIGTERM_CODES,
        )

    async def check_nothing_left(self) -> Finding:
        """Raise `StepFailure` if any process of the bot still ran after the bot had exited."""
        if not self._left_running:
            return skip_because(
                "no exit was seen after the goodbye or SIGTERM: see the two steps before"
            )
        left = [
            f"after {event}: {', '.join(names)}"
            for event, names in self._left_running.items()
            if names
        ]
        if left:
            raise StepFailure(
                "the bot ends every process that it started before it exits",
                "\n".join(("still running a second later:", *left)),
            )
        return pass_with(f"no process after {' and '.join(self._left_running)}")

    async def _shut_down(self, event: str, expected: str, exit_codes: set[int]) -> Finding:
        """Start the bot, play the game if there is one, and shut the bot down.

        Raises `StepFailure` if the start or the game fails, if the bot does not exit in time, or if its exit code is
        not in `exit_codes`.
        """
        async with self._bot.run() as process:
            if self._game is not None:
                await play_game(self._bot, process, self._game)
            shutdown = await process.shut_down(goodbye=event != "SIGTERM")
            if shutdown.exit_code is not None:
                self._left_running[event] = shutdown.left_running
            if shutdown.exit_code not in exit_codes:
                raise StepFailure(expected, _shutdown_text(shutdown))
        return pass_with(f"{_shutdown_text(shutdown)} after {shutdown.elapsed_s:.2f} s")


def _shutdown_text(shutdown: Shutdown) -> str:
    code = shutdown.exit_code
    if code is None:
        return f"it still ran after {shutdown.elapsed_s:.1f} s"
    return f"ended by {signal_name(-code)}" if code < 0 else f"exited with {code}"
