"""Send the messages of real games to bots and wait for each reply, without a referee.

The benches compare the referee with this. As in the referee, each bot has its own server and socket.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import grpc
import uvloop

BOT = Path(__file__).with_name("kit_bot.py")


class Letter(NamedTuple):
    """One message to a bot."""

    seat: int
    data: bytes
    is_request: bool
    """True for the request of a decision."""
    is_answered: bool = True
    """False for a game end, which has no reply."""


class BareStream:
    """One bot process and the stream to it."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / f"{id(self)}.sock"
        self._context: asyncio.Future[grpc.aio.ServicerContext] = asyncio.Future()
        self._done = asyncio.Event()

    async def start(self) -> None:
        self._server = grpc.aio.server()
        handler = grpc.stream_stream_rpc_method_handler(self._play)
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("linko.v1.RefereeService", {"Play": handler})]
        )
        self._server.add_insecure_port(f"unix:{self._socket}")
        await self._server.start()
        environment = {
            **os.environ,
            "REFEREE_ADDRESS": f"unix:{self._socket}",
            "REFEREE_TOKEN": "x",
        }
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, str(BOT), env=environment
        )
        self.context = await self._context
        await self.context.read()  # the hello

    async def _play(self, _requests: object, context: grpc.aio.ServicerContext) -> None:
        self._context.set_result(context)
        await self._done.wait()

    async def send(self, letter: Letter) -> None:
        await self.context.write(letter.data)
        if letter.is_answered:
            await self.context.read()

    async def stop(self) -> None:
        self._process.kill()
        await self._process.wait()
        self._done.set()
        await self._server.stop(0)


async def measure(script: list[Letter], repeats: int) -> tuple[float, float]:
    """Send a script several times; return the CPU seconds and wall seconds of a decision."""
    with tempfile.TemporaryDirectory() as folder:
        seats = max(letter.seat for letter in script) + 1
        decisions = repeats * sum(letter.is_request for letter in script)
        bots = [BareStream(Path(folder)) for _ in range(seats)]
        await asyncio.gather(*(bot.start() for bot in bots))
        for letter in script:
            await bots[letter.seat].send(letter)
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(repeats):
            for letter in script:
                await bots[letter.seat].send(letter)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        await asyncio.gather(*(bot.stop() for bot in bots))
    return cpu / decisions, wall / decisions


def run(script: list[Letter], repeats: int, cores: set[int]) -> tuple[float, float]:
    """Pin this process and its bots to some cores, then measure."""
    os.sched_setaffinity(0, cores)
    return uvloop.run(measure(script, repeats))
