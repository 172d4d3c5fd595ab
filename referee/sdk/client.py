"""A bot as a process: where the referee is, the stream to it, and how the process exits.

Exit codes: 0 after the referee's goodbye or a SIGTERM, 1 when the bot raised, 2 when no referee
started the program, 3 when the stream broke.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import grpc

from referee.pb import play_pb2
from referee.sdk.bot import Bot, Decide
from referee.sdk.session import Session

PROTOCOL_VERSION = 1
METHOD = "/linko.v1.RefereeService/Play"
NO_REFEREE = 2
STREAM_BROKEN = 3
_CLOSING_S = 1.0
"""How long the referee may take to close its side after its goodbye."""


class _StreamBrokenError(Exception):
    """The stream ended without a goodbye."""


def run(bot: type[Bot] | Decide, *, max_games: int = 1, name: str = "") -> NoReturn:
    """Play for the referee that started this program, then exit.

    Args:
        bot: a subclass of `Bot`, of which every game gets its own instance, or a function of a
            request.
        max_games: how many games may be in progress at the same time. Their requests may come in
            one message, which `Bot.decide_batch` answers together.
        name: what the bot calls itself in logs; by default the folder of the program.

    An exception of the bot is printed and ends the process with exit code 1.
    """
    address = os.environ.get("REFEREE_ADDRESS")
    token = os.environ.get("REFEREE_TOKEN")
    if not address or token is None:
        _say("this program is a bot: start it with `referee play …`")
        sys.exit(NO_REFEREE)
    hello = play_pb2.Hello(
        protocol_version=PROTOCOL_VERSION,
        token=token,
        name=name or Path(sys.argv[0]).resolve().parent.name,
        max_games=max_games,
    )
    signal.signal(signal.SIGTERM, _leave)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_play(address, hello, Session(bot)))
    except _StreamBrokenError as error:
        _say(f"the stream to the referee broke: {error}")
        sys.exit(STREAM_BROKEN)
    sys.exit(0)


async def _play(address: str, hello: play_pb2.Hello, session: Session) -> None:
    """Hold the one stream of a bot's life. Raises `_StreamBrokenError`."""
    async with grpc.aio.insecure_channel(address) as channel:
        play: Any = channel.stream_stream(
            METHOD,
            request_serializer=play_pb2.BotMessage.SerializeToString,
            response_deserializer=play_pb2.RefereeMessage.FromString,
        )
        stream = play()
        await _unbroken(stream.write(play_pb2.BotMessage(hello=hello)))
        while True:
            message = await _unbroken(stream.read())
            if not isinstance(message, play_pb2.RefereeMessage):
                raise _StreamBrokenError("the referee closed it")
            answer = session.receive(message)
            if answer.ready or answer.replies:
                await _unbroken(stream.write(answer))
            if message.HasField("goodbye"):
                break
        if message.goodbye.reason:
            _say(f"the referee said goodbye: {message.goodbye.reason}")
        await stream.done_writing()
        await asyncio.wait([asyncio.ensure_future(stream.code())], timeout=_CLOSING_S)


async def _unbroken(reading_or_writing: Awaitable[Any]) -> Any:
    """Await one operation of the stream; nothing of the bot runs in it, so errors are the stream's."""
    try:
        return await reading_or_writing
    except grpc.aio.AioRpcError as error:
        raise _StreamBrokenError(f"{error.code().name}: {error.details()}") from None
    except asyncio.InvalidStateError:
        raise _StreamBrokenError("the referee closed it") from None


def _leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Exit cleanly at once, even in the middle of a decision."""
    sys.exit(0)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The faster event loop where it is installed, else the standard one."""
    try:
        import uvloop  # noqa: PLC0415 - optional
    except ImportError:
        return None
    return uvloop.new_event_loop


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
