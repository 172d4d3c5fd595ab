"""Let tests play the referee of one bot process, over the real server.

The bot is started as the guide describes. This module does not judge what the bot sends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Self

from referee.bots import BotSpec
from referee.bots.process import GOODBYE_S
from referee.bots.server import BotServer, Stream
from referee.pb import play_pb2
from referee.sandbox.folders import ProgramFolder
from referee.sandbox.launcher import DEFAULT_KEPT_BYTES, Output, RunningProgram
from referee.sandbox.process_group import ProcessGroupLauncher

TOKEN = "a-token"  # noqa: S105 - it protects nothing
PATIENCE_S = 60
"""Every wait for a bot ends after this time, which suffices on a busy machine."""


class Bot:
    """A bot process that runs while this context is open.

    Args:
        spec: the bot.
        folder: the folder for its socket and scratch folder; its path must be short.
        variables: wrong values of the variables that name the referee; None for the right ones.
    """

    def __init__(
        self, spec: BotSpec, folder: Path, variables: dict[str, str] | None = None
    ) -> None:
        self._spec = spec
        self._variables = variables
        self._folder = ProgramFolder(folder)
        self._server = BotServer(self._folder.socket, self._serve, spec.transport)
        self._stream: asyncio.Future[Stream] = asyncio.Future()
        self._received: asyncio.Queue[play_pb2.BotMessage | None] = asyncio.Queue()
        self._over = asyncio.Event()
        self._closed = asyncio.Event()
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
        stream.add_done_callback(lambda _: self._closed.set())
        waits = [
            asyncio.ensure_future(self._receive_all(stream)),
            asyncio.ensure_future(self._over.wait()),
        ]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _receive_all(self, stream: Stream) -> None:
        while isinstance(data := await stream.read(), bytes):
            self._received.put_nowait(play_pb2.BotMessage.FromString(data))
        self._received.put_nowait(None)

    async def receive(self) -> play_pb2.BotMessage | None:
        """Return the next message of the bot; None when it has closed its side."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._received.get()

    async def hello(self) -> play_pb2.Hello:
        """Receive the first message, which must have only a hello, and return the hello."""
        message = await self.receive()
        assert message is not None
        assert message == play_pb2.BotMessage(hello=message.hello)
        return message.hello

    async def send(self, message: play_pb2.RefereeMessage) -> None:
        await self.send_bytes(message.SerializeToString())

    async def send_bytes(self, data: bytes) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await (await self._stream).write(data)

    async def exchange(self, message: play_pb2.RefereeMessage) -> play_pb2.BotMessage | None:
        await self.send(message)
        return await self.receive()

    async def send_goodbye(self, reason: str = "") -> None:
        await self.send(play_pb2.RefereeMessage(goodbye=play_pb2.Goodbye(reason=reason)))

    async def close_stream(self) -> None:
        """Close the stream. Without an earlier goodbye, this is a fault of the referee."""
        self._over.set()
        async with asyncio.timeout(PATIENCE_S):
            await self._closed.wait()

    async def break_connection(self) -> None:
        """Break the connection."""
        await self._server.stop()

    def pause(self) -> None:
        """Stop the bot until `resume`."""
        os.killpg(self._launched.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let the bot continue."""
        os.killpg(self._launched.process.pid, signal.SIGCONT)

    def terminate(self) -> None:
        """Send SIGTERM, as the referee does."""
        self._launched.terminate()

    async def exit_code(self, limit_s: float = GOODBYE_S) -> int:
        """Wait for the end of the process and return its exit code.

        Raises TimeoutError when the process takes longer than `limit_s`.
        """
        async with asyncio.timeout(limit_s):
            return await self._launched.process.wait()

    def list_other_processes(self) -> list[str]:
        """Return the names of running processes that the bot started."""
        return self._launched.list_others()

    async def read_output(self) -> tuple[str, str]:
        """Wait for the end of the process; return its standard output and standard error."""
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.wait(self._drains)
        stdout, stderr = (output.tail(DEFAULT_KEPT_BYTES) for output in self._outputs)
        return stdout, stderr
