"""One bot process from start to end: its program, socket, scratch folder, outputs and stream."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from referee.bots.clock import Clock
from referee.bots.manifest import BotSpec
from referee.bots.server import BotServer
from referee.bots.session import Session
from referee.errors import BotFault, Cause, Evidence, Forfeit, VoidGame
from referee.protocol import encode
from referee.sandbox.folders import BotFolder
from referee.sandbox.launcher import (
    Access,
    Launcher,
    Output,
    RunningProgram,
    Usage,
    left_behind,
    signal_name,
)
from referee.sandbox.monitor import breach
from referee.sandbox.starting import blame, check_room

GOODBYE_S = 2.0
"""How long a bot may take to exit after its goodbye."""
TERM_S = 1.0
"""How long it may take after SIGTERM; then it is killed."""
STDERR_TAIL = 4096
"""Bytes of standard error that a fault keeps."""
_RELAY_PORT = 50051
"""Where a bot that knows only TCP finds the referee, on a loopback address of its own."""
_STATUS_S = 0.5
"""How long the exit status may come after the end of the stream, or the other way round."""
_LAST_WORDS_S = 0.5
"""How long after the end of the process its outputs are read at most."""


@dataclass(frozen=True, slots=True)
class Shutdown:
    """What a bot did when it was asked to end."""

    exit_code: int | None
    """Of the program, negative for a signal; None where it did not end."""
    elapsed_s: float
    left: tuple[str, ...]
    """The names of the processes that it left running."""


class BotProcess:
    """A bot that has said hello. Made by `start`."""

    def __init__(self, spec: BotSpec, launcher: Launcher, folder: Path, tokens: set[str]) -> None:
        self.spec = spec
        self._launcher = launcher
        self.max_games = 1
        """How many games it can hold at once."""
        self.games = 0
        """How many it holds now, or is about to."""
        self.played = False
        """Whether it has been in a game to its end."""
        kept = spec.limits.output_kib * 1024
        self.output, self.errors = Output(kept), Output(kept)
        self._token = secrets.token_hex(16)
        self._tokens = tokens
        self._tokens.add(self._token)
        self._clock = Clock.of_loop()
        self.session = Session(self._token, tokens.__contains__, self._clock, self._busy_ns)
        self._folder = BotFolder(folder)
        self._relayed = spec.transport == "tcp" and launcher.sandboxed
        self._server = BotServer(
            self._folder.socket, self.session.serve, "unix" if self._relayed else spec.transport
        )
        self._draining: list[asyncio.Task[None]] = []
        self._watching: asyncio.Task[None] | None = None
        self._launched: RunningProgram | None = None
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls, spec: BotSpec, *, launcher: Launcher, folder: Path, limit_us: int, tokens: set[str]
    ) -> BotProcess:
        """Start a bot and wait for its hello.

        Args:
            spec: what to start.
            launcher: how.
            folder: where to put its own folder, with socket and scratch space.
            limit_us: from now to the hello.
            tokens: those of all bots that live; the bot's own is among them while it does.

        Raises `Forfeit` with what went wrong, and `VoidGame` when the machine has no room.
        """
        bot = cls(spec, launcher, folder, tokens)
        began_ns = bot._clock.now_ns()
        try:
            await bot._launch(limit_us)
            bot.max_games = max(1, (await bot.session.hello(limit_us, began_ns)).max_games)
        except Forfeit as fault:
            await bot.stop(gently=False)
            elapsed_us = (bot._clock.now_ns() - began_ns) // 1000
            evidence = replace(bot.testify(fault).evidence, elapsed_us=elapsed_us)
            raise blame(Forfeit(fault.cause, evidence)) from None
        except BaseException:
            await bot.stop(gently=False)
            raise
        return bot

    async def _launch(self, limit_us: int) -> None:
        check_room()
        await self._server.start()
        scratch = str(self._folder.scratch)
        try:
            async with asyncio.timeout(limit_us / 1e6):
                self._launched = launched = await self._launcher.launch(
                    self.spec.command,
                    folder=self.spec.folder,
                    environment={
                        "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}",
                        "HOME": scratch,
                        "TMPDIR": scratch,
                        "LANG": "C.UTF-8",
                        "REFEREE_ADDRESS": f"127.0.0.1:{_RELAY_PORT}"
                        if self._relayed
                        else self._server.address,
                        "REFEREE_TOKEN": self._token,
                    },
                    limits=self.spec.limits,
                    access=Access(
                        scratch=self._folder.scratch,
                        link=self._folder.socket.parent,
                        relay=(self._folder.socket, _RELAY_PORT) if self._relayed else None,
                    ),
                )
        except TimeoutError:
            raise VoidGame(f"no program was started within {limit_us / 1e6:g} s") from None
        process = launched.process
        assert process.stdout is not None  # noqa: S101 - a launcher makes both pipes
        assert process.stderr is not None  # noqa: S101
        for drain in (self.output.drain(process.stdout), self.errors.drain(process.stderr)):
            self._draining.append(asyncio.ensure_future(drain))
        self._watching = asyncio.ensure_future(self._watch(launched))
        self._watching.add_done_callback(self._watched)

    async def _watch(self, launched: RunningProgram) -> None:
        """Notice the end of the process or of its stream, or a broken limit, and end what is left."""
        exited = asyncio.ensure_future(launched.process.wait())
        closed = asyncio.ensure_future(self.session.closed.wait())
        limits = self.spec.limits
        broken = asyncio.ensure_future(
            breach(launched, self._folder, limits, playing=lambda: self.games > 0)
        )
        try:
            await asyncio.wait((exited, closed, broken), return_when=asyncio.FIRST_COMPLETED)
            connected = self.session.connected and self.session.failure is None
            if connected and not broken.done():
                # the last answer may be on its way, or the exit status
                await asyncio.wait((exited, closed), timeout=_STATUS_S)
        finally:
            exited.cancel()
            closed.cancel()
            broken.cancel()
        fault = broken.result() if broken.done() else launched.breach()
        code = launched.process.returncode
        await launched.kill()
        await asyncio.wait(self._draining, timeout=_LAST_WORDS_S)
        self.session.fail(fault or self._obituary(code))

    def _watched(self, watching: asyncio.Task[None]) -> None:
        """See that nobody waits for a bot that nobody watches."""
        if not watching.cancelled() and (error := watching.exception()) is not None:
            assert isinstance(error, Exception)  # noqa: S101 - others end the event loop
            self.session.fail(error)

    def _obituary(self, code: int | None) -> Forfeit | VoidGame:
        """What to charge a bot with that has ended, with this exit code if any; or why not."""
        ended_by = None
        if code is None:
            what = "closed its stream"
        elif code < 0:
            ended_by = signal_name(-code)
            what, code = f"was ended by {ended_by}", None
        else:
            what = f"exited with {code}"
        if self.session.greeted:
            cause = Cause.CRASH
        else:
            cause = Cause.HANDSHAKE if code is None and ended_by is None else Cause.EXITED_EARLY
            what += " before its hello"
        return blame(Forfeit(cause, Evidence(detail=what, exit_code=code, signal=ended_by)))

    def testify(self, fault: BotFault) -> BotFault:
        """The same fault with the end of what the process wrote to standard error."""
        return type(fault)(fault.cause, replace(fault.evidence, stderr_tail=self.stderr_tail()))

    def stderr_tail(self) -> str:
        """The end of what it wrote to standard error, printable."""
        return self.errors.tail(STDERR_TAIL)

    @property
    def dead(self) -> bool:
        """Whether nothing more can come from it."""
        return self.session.closed.is_set() or self._ending is not None

    @property
    def usable(self) -> bool:
        """Whether a next game can be played with it."""
        return not (self.dead or self.session.silent)

    def usage(self) -> Usage:
        """What it has taken of the machine since it was started."""
        assert self._launched is not None  # noqa: S101 - it has said hello
        return self._launched.usage()

    def _busy_ns(self) -> int | None:
        """See `RunningProgram.busy_ns`; None also for a program that is not there."""
        return None if self._launched is None else self._launched.busy_ns()

    @property
    def exit_code(self) -> int | None:
        """Of the program, negative for a signal; None while it runs."""
        return None if self._launched is None else self._launched.process.returncode

    @property
    def pid(self) -> int:
        """Of the program."""
        assert self._launched is not None  # noqa: S101 - it has said hello
        return self._launched.process.pid

    async def part(self, *, goodbye: bool) -> Shutdown:
        """Ask the process to end, by a goodbye or by SIGTERM, and see what it does in the time it has.

        Nothing is ended by force: that is left to `stop`, which must follow.
        """
        assert self._launched is not None  # noqa: S101 - it has said hello
        if self._watching is not None:
            self._watching.cancel()  # it would end what the program leaves behind
        began_ns = self._clock.now_ns()
        if goodbye:
            self.session.post(encode.goodbye())
        else:
            self._launched.terminate()
        with suppress(TimeoutError):
            limit_s = GOODBYE_S if goodbye else TERM_S
            await asyncio.wait_for(self._launched.process.wait(), limit_s)
        elapsed_s = (self._clock.now_ns() - began_ns) / 1e9
        code = self.exit_code
        left = () if code is None else tuple(await left_behind(self._launched))
        return Shutdown(code, elapsed_s, left)

    def end_soon(self) -> None:
        """See that the process ends, without waiting for it."""
        self.session.fail(VoidGame("the referee has ended the bot's process"))

    async def stop(self, *, gently: bool = True) -> None:
        """End the process and leave nothing of it: gently with a goodbye first, else at once.

        Whoever waits for the bot gets a `VoidGame`.
        """
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end(gently=gently and self.usable))
        await asyncio.shield(self._ending)

    async def _end(self, *, gently: bool) -> None:
        if self._watching is not None:
            self._watching.cancel()
        try:
            if self._launched is not None and gently:
                await self._say_goodbye(self._launched)
        finally:
            self.end_soon()
            if self._launched is not None:
                await self._launched.kill()
            await self._server.stop()
            if self._draining:
                await asyncio.wait(self._draining, timeout=_LAST_WORDS_S)
            for task in self._draining:
                task.cancel()
            await asyncio.to_thread(self._folder.remove)
            self._tokens.discard(self._token)

    async def _say_goodbye(self, launched: RunningProgram) -> None:
        self.session.post(encode.goodbye())
        with suppress(TimeoutError):
            await asyncio.wait_for(launched.process.wait(), GOODBYE_S)
            return
        launched.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(launched.process.wait(), TERM_S)
