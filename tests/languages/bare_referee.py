"""The referee's end of a bot's stream, with a test in the place of the referee.

The bot is started as the guide says that bots are. Nothing that it sends is judged here.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Self

from referee.bots.manifest import BotSpec
from referee.bots.process import GOODBYE_S
from referee.bots.server import BotServer, Stream
from referee.pb import play_pb2
from referee.sandbox.folders import ProgramFolder
from referee.sandbox.launcher import RunningProgram
from referee.sandbox.output import DEFAULT_KEPT_BYTES, Output
from referee.sandbox.process_group import ProcessGroupLauncher

TOKEN = "a-token"  # noqa: S105 - nobody is kept out by it
PATIENCE_S = 60
"""Nothing that a bot is asked for here takes so long, however busy the machine is."""


class Bot:
    """A bot that runs while this context is held.

    Args:
        spec: what is started.
        folder: for its socket and scratch folder; its path must be short.
        variables: those that name the referee, where they are not to be right.
    """

    def __init__(
        self, spec: BotSpec, folder: Path, variables: dict[str, str] | None = None
    ) -> None:
        self._spec = spec
        self._variables = variables
        self._folder = ProgramFolder(folder)
        self._server = BotServer(self._folder.socket, self._serve, spec.transport)
        self._stream: asyncio.Future[Stream] = asyncio.Future()
        self._heard: asyncio.Queue[play_pb2.BotMessage | None] = asyncio.Queue()
        self._over = asyncio.Event()
        self._launched: RunningProgram | None = None
        self._outputs = Output(), Output()
        self._drains: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self._server.start()
        variables = self._variables
        if variables is None:
            variables = {"REFEREE_ADDRESS": self._server.address, "REFEREE_TOKEN": TOKEN}
        scratch = str(self._folder.scratch)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._launched = await ProcessGroupLauncher().launch(
            self._spec.command,
            folder=self._spec.folder,
            environment={"PATH": path, "HOME": scratch, "TMPDIR": scratch, "LANG": "C.UTF-8"}
            | variables,
        )
        process = self._launched.process
        pipes = process.stdout, process.stderr
        self._drains = [
            asyncio.ensure_future(output.drain(pipe))
            for output, pipe in zip(self._outputs, pipes, strict=True)
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._launched is not None:
            await self._launched.kill()
            await asyncio.wait(self._drains)
        await self._server.stop()
        self._folder.remove()

    async def _serve(self, stream: Stream) -> None:
        self._stream.set_result(stream)
        waits = [
            asyncio.ensure_future(self._listen(stream)),
            asyncio.ensure_future(self._over.wait()),
        ]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _listen(self, stream: Stream) -> None:
        while isinstance(data := await stream.read(), bytes):
            self._heard.put_nowait(play_pb2.BotMessage.FromString(data))
        self._heard.put_nowait(None)

    async def hear(self) -> play_pb2.BotMessage | None:
        """What it says next; None when it has closed its side."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._heard.get()

    async def hello(self) -> play_pb2.Hello:
        """Its first message, which has nothing but the hello."""
        said = await self.hear()
        assert said is not None
        assert said == play_pb2.BotMessage(hello=said.hello)
        return said.hello

    async def say(self, message: play_pb2.RefereeMessage) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await (await self._stream).write(message.SerializeToString())

    async def ask(self, message: play_pb2.RefereeMessage) -> play_pb2.BotMessage | None:
        await self.say(message)
        return await self.hear()

    async def goodbye(self, reason: str = "") -> None:
        await self.say(play_pb2.RefereeMessage(goodbye=play_pb2.Goodbye(reason=reason)))

    def hang_up(self) -> None:
        """Close the stream without a word."""
        self._over.set()

    async def vanish(self) -> None:
        """Break the connection."""
        await self._server.stop()

    def terminate(self) -> None:
        """Send SIGTERM, as the referee does."""
        self._launched.terminate()

    async def exit_code(self, limit_s: float = GOODBYE_S) -> int:
        """Wait for its end. Raises TimeoutError when it takes longer."""
        async with asyncio.timeout(limit_s):
            return await self._launched.process.wait()

    def left(self) -> list[str]:
        """The names of what still runs because of it."""
        return self._launched.list_others()

    async def printed(self) -> tuple[str, str]:
        """All that it has written to standard output and standard error, when it has ended."""
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.wait(self._drains)
        stdout, stderr = (output.tail(DEFAULT_KEPT_BYTES) for output in self._outputs)
        return stdout, stderr
