"""One bot process from start to end: its program, socket, scratch folder, outputs and stream."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from referee.bots.launcher import Launched, Launcher
from referee.bots.manifest import BotSpec
from referee.bots.output import Output
from referee.bots.server import BotServer
from referee.bots.session import Session
from referee.errors import Cause, Evidence, Forfeit, VoidGame
from referee.protocol import encode

GOODBYE_S = 2.0
"""How long a bot may take to exit after its goodbye."""
TERM_S = 1.0
"""How long it may take after SIGTERM; then it is killed."""
STDERR_TAIL = 4096
"""Bytes of standard error that a fault keeps."""
_STATUS_S = 0.5
"""How long the exit status may come after the end of the stream."""
IsForeign = Callable[[str], bool]


class BotProcess:
    """A bot that has said hello. Made by `start`."""

    def __init__(self, spec: BotSpec, folder: Path, is_foreign: IsForeign) -> None:
        self.spec = spec
        self.token = secrets.token_hex(16)
        self.max_games = 1
        """How many games it can hold at once."""
        self.games = 0
        """How many it holds now."""
        self.session = Session(self.token, is_foreign)
        self.output, self.errors = Output(), Output()
        self._folder = folder
        self._server = BotServer(folder / "socket", self.session.serve)
        self._tasks: list[asyncio.Task[None]] = []
        self._launched: Launched | None = None
        self._stopping = False

    @classmethod
    async def start(
        cls,
        spec: BotSpec,
        *,
        launcher: Launcher,
        folder: Path,
        limit_us: int,
        is_foreign: IsForeign,
    ) -> BotProcess:
        """Start a bot and wait for its hello.

        Args:
            spec: what to start.
            launcher: how.
            folder: where to put its own folder, with socket and scratch space.
            limit_us: from now to the hello.
            is_foreign: whether a token belongs to another bot.

        Raises `Forfeit` with what went wrong, and `VoidGame` when the machine has no room.
        """
        try:
            own = Path(tempfile.mkdtemp(prefix="bot-", dir=folder))
        except OSError as error:
            raise VoidGame(f"no room for a bot's folder: {error}") from error
        bot = cls(spec, own, is_foreign)
        began = time.monotonic_ns()
        try:
            async with asyncio.timeout(limit_us / 1e6):
                await bot._run(launcher)
        except TimeoutError:
            await bot.stop(gently=False)
            detail = f"no hello within {limit_us / 1e6:g} s"
            raise bot.blame(Cause.CONNECT_TIMEOUT, detail, limit_us) from None
        except Forfeit as fault:
            await bot.stop(gently=False)
            elapsed_us = (time.monotonic_ns() - began) // 1000
            known = replace(fault.evidence, elapsed_us=elapsed_us, stderr_tail=bot.stderr_tail())
            raise Forfeit(fault.cause, known) from None
        except BaseException:
            await bot.stop(gently=False)
            raise
        return bot

    async def _run(self, launcher: Launcher) -> None:
        scratch = self._folder / "scratch"
        scratch.mkdir()
        await self._server.start()
        self._launched = await launcher.launch(
            self.spec.command,
            folder=self.spec.folder,
            environment={
                "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}",
                "HOME": str(scratch),
                "TMPDIR": str(scratch),
                "LANG": "C.UTF-8",
                "REFEREE_ADDRESS": self._server.address,
                "REFEREE_TOKEN": self.token,
            },
        )
        process = self._launched.process
        assert process.stdout is not None  # noqa: S101 - a launcher makes both pipes
        assert process.stderr is not None  # noqa: S101
        for work in (
            self.output.drain(process.stdout),
            self.errors.drain(process.stderr),
            self._watch(process),
        ):
            self._tasks.append(asyncio.ensure_future(work))
        self.max_games = max(1, (await self.session.hello()).max_games)

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Notice the end of the process or of its stream, and end what is left of it."""
        exited = asyncio.ensure_future(process.wait())
        closed = asyncio.ensure_future(self.session.closed.wait())
        await asyncio.wait((exited, closed), return_when=asyncio.FIRST_COMPLETED)
        if self._stopping:
            return
        await asyncio.wait((exited,), timeout=_STATUS_S)
        self.session.fail(self._obituary())
        assert self._launched is not None  # noqa: S101 - there is a process
        await self._launched.kill()

    def _obituary(self) -> Forfeit:
        code = self._exit_code()
        if code is None:
            what = "closed its stream"
        elif code < 0:
            what = f"was ended by {signal_name(-code)}"
        else:
            what = f"exited with {code}"
        if self.session.greeted:
            return self.blame(Cause.CRASH, what)
        return self.blame(Cause.EXITED_EARLY, f"{what} before its hello")

    def blame(self, cause: Cause, detail: str, elapsed_us: int = 0) -> Forfeit:
        """A forfeit with everything that is known of this process."""
        code = self._exit_code()
        ended_by = None if code is None or code >= 0 else signal_name(-code)
        return Forfeit(
            cause,
            Evidence(
                detail=detail,
                exit_code=code if code is not None and code >= 0 else None,
                signal=ended_by,
                elapsed_us=elapsed_us,
                stderr_tail=self.stderr_tail(),
            ),
        )

    def stderr_tail(self) -> str:
        """The end of its standard error, printable."""
        return self.errors.tail(STDERR_TAIL)

    @property
    def usable(self) -> bool:
        """Whether a next game can be played with it."""
        return not (self._stopping or self.session.closed.is_set() or self.session.silent)

    async def stop(self, *, gently: bool = True) -> None:
        """End the process and leave nothing of it: gently with a goodbye first, else at once."""
        if self._stopping:
            return
        self._stopping = True
        if self._launched is not None:
            if gently:
                await self._say_goodbye(self._launched)
            await self._launched.kill()
        self.session.end()
        await self._server.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _say_goodbye(self, launched: Launched) -> None:
        if not self.session.closed.is_set():
            await self.session.send(encode.goodbye())
        with suppress(TimeoutError):
            await asyncio.wait_for(launched.process.wait(), GOODBYE_S)
            return
        launched.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(launched.process.wait(), TERM_S)

    def _exit_code(self) -> int | None:
        return None if self._launched is None else self._launched.process.returncode


def signal_name(number: int) -> str:
    """`SIGSEGV`, or `signal 40` for one without a name, such as the real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
