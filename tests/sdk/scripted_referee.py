"""Let tests play the referee of one stream, with a bot as a real process on the other side."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc

from referee.pb import play_pb2, table_pb2

TOKEN = "a-token"  # noqa: S105 - it protects nothing
LIMIT_S = 30


class ScriptedReferee:
    """A server for one bot on a UNIX socket. The test sends the messages."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._stream: asyncio.Future[grpc.aio.ServicerContext] = asyncio.Future()
        self._over = asyncio.Event()
        self._gone = asyncio.Event()

    async def serve(self, _requests: object, stream: grpc.aio.ServicerContext) -> None:
        self._stream.set_result(stream)
        stream.add_done_callback(lambda _: self._gone.set())
        await self._over.wait()

    async def receive(self) -> play_pb2.BotMessage | None:
        """Return the next message of the bot; None when it has closed its side."""
        async with asyncio.timeout(LIMIT_S):
            message = await (await self._stream).read()
        return message if isinstance(message, play_pb2.BotMessage) else None

    async def send(self, message: play_pb2.RefereeMessage) -> None:
        await (await self._stream).write(message)

    async def exchange(self, message: play_pb2.RefereeMessage) -> play_pb2.BotMessage:
        """Send a message and return what the bot replies to it; a slow bot replies in several messages."""
        await self.send(message)
        answer = play_pb2.BotMessage()
        while len(answer.replies) < len(message.requests) or not answer.ByteSize():
            part = await self.receive()
            assert part is not None
            answer.MergeFrom(part)
        return answer

    async def assert_goodbye_ends_the_stream(self, reason: str = "") -> None:
        """Send a goodbye, check that the bot closes its side, and close the other side."""
        await self.send(play_pb2.RefereeMessage(goodbye=play_pb2.Goodbye(reason=reason)))
        assert await self.receive() is None
        self.close_stream()

    async def wait_closed(self) -> None:
        """Wait until the stream is closed."""
        async with asyncio.timeout(LIMIT_S):
            await self._gone.wait()

    def close_stream(self) -> None:
        """Close the stream without a goodbye."""
        self._over.set()


class BotProcess:
    """A bot process, started as the referee starts one."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def exit(self) -> tuple[int | None, str]:
        """Wait for the end of the process. Return its exit code and its standard error."""
        async with asyncio.timeout(LIMIT_S):
            _, stderr = await self._process.communicate()
        return self._process.returncode, stderr.decode()

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def interrupt(self) -> None:
        """Send what Ctrl-C sends."""
        self._process.send_signal(signal.SIGINT)

    async def first_line(self) -> str:
        """Return the first line of standard output."""
        assert self._process.stdout is not None
        async with asyncio.timeout(LIMIT_S):
            return (await self._process.stdout.readline()).decode()

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()


@asynccontextmanager
async def scripted_referee(folder: Path) -> AsyncIterator[ScriptedReferee]:
    server = grpc.aio.server()
    referee = ScriptedReferee(f"unix:{folder / 'socket'}")
    handler = grpc.stream_stream_rpc_method_handler(
        referee.serve,
        request_deserializer=play_pb2.BotMessage.FromString,
        response_serializer=play_pb2.RefereeMessage.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("linko.v1.RefereeService", {"Play": handler}),)
    )
    server.add_insecure_port(referee.address)
    await server.start()
    try:
        yield referee
    finally:
        referee.close_stream()
        await server.stop(None)


@asynccontextmanager
async def bot_process(
    program: Path, address: str | None, token: str | None = TOKEN
) -> AsyncIterator[BotProcess]:
    """Start `python PROGRAM` in the program's folder."""
    environment = {"REFEREE_ADDRESS": address, "REFEREE_TOKEN": token}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        program.name,
        cwd=program.parent,
        env={**os.environ, **{key: value for key, value in environment.items() if value}},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    bot = BotProcess(process)
    try:
        yield bot
    finally:
        bot.kill()
        await process.wait()


def game_starts(*game_ids: str, players: int = 2) -> play_pb2.RefereeMessage:
    view = table_pb2.View(hand_sizes=[13] * players)
    rules = table_pb2.Ruleset(
        name="classic", end_on=table_pb2.END_ON_DECK_AND_DISPLAY, max_turns=500
    )
    return play_pb2.RefereeMessage(
        game_starts=[
            play_pb2.GameStart(game_id=game_id, ruleset=rules, view=view, seed=seed)
            for seed, game_id in enumerate(game_ids)
        ]
    )


def requests(*decisions: tuple[str, int], draws: int = 3) -> play_pb2.RefereeMessage:
    """Return requests to draw, by game id and number of the decision."""
    legal = [
        table_pb2.Action(draw_display=table_pb2.DrawDisplay(slot=slot, cards=[slot + 1]))
        for slot in range(draws)
    ]
    return play_pb2.RefereeMessage(
        requests=[
            play_pb2.Request(
                game_id=game_id, decision_id=number, kind=table_pb2.DECISION_KIND_DRAW, legal=legal
            )
            for game_id, number in decisions
        ]
    )


def game_ends(*game_ids: str) -> play_pb2.RefereeMessage:
    return play_pb2.RefereeMessage(
        game_ends=[play_pb2.GameEnd(game_id=game_id, ranks=[1, 2]) for game_id in game_ids]
    )
