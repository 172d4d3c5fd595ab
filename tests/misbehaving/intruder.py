"""Run a bot that attacks the servers of other bots: `intruder.py NAME BOARD`.

Each bot is a class below, as in `bot.py`. `waits` is the victim. It tells the address of its server, and it says hello
only when the intruder has finished. The two bots leave texts for each other on a board of the test. BOARD is the name of
its abstract socket, which both bots reach on each rung without a sandbox. Apart from its attack, each bot plays correctly.
"""

import asyncio
import json
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

import grpc
from bot import METHOD, Fair, GoesWrong, complain, foreign_token, hello, kinds

from referee.pb import play_pb2

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\0\0\0\4\0\0\0\0\0"
PAUSE_S = 0.01


def ask_board(name, text=None):
    """Put a text on the board under `name`, unless it is None. Return what is there now; None if nothing is there."""
    with socket.socket(socket.AF_UNIX) as link, link.makefile("rw") as stream:
        link.connect(f"\0{sys.argv[2]}")
        stream.write(json.dumps([name, text]) + "\n")
        stream.flush()
        return json.loads(stream.readline())


async def appear(name):
    """Wait until the board has a text under `name`, and return the text."""
    while (text := ask_board(name)) is None:
        await asyncio.sleep(PAUSE_S)
    return text


def connect_to(address):
    if address.startswith("unix:"):
        link = socket.socket(socket.AF_UNIX)
        link.connect(address.removeprefix("unix:"))
        return link
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)))


class Waits(Fair):
    """The victim: connects only when the intruder has finished or is gone."""

    async def run(self):
        ask_board("token", os.environ["REFEREE_TOKEN"])
        ask_board("address", os.environ["REFEREE_ADDRESS"])
        intruder = Path("/proc", await appear("pid"))
        while intruder.exists() and ask_board("done") is None:
            await asyncio.sleep(PAUSE_S)
        await super().run()


class Intruder(Fair):
    """Attacks the victim before the victim's hello, and then plays."""

    async def greet(self):
        self.address = await appear("address")
        self.token = ask_board("token")
        self.kept = []
        ask_board("pid", str(os.getpid()))
        await self.intrude()
        complain("intruded")
        ask_board("done", "")
        await super().greet()

    async def open_stream(self, message=None):
        """Open a stream on a new connection to the server of the victim, and keep both open."""
        channel = grpc.aio.insecure_channel(
            self.address, options=[("grpc.use_local_subchannel_pool", 1)]
        )
        stream = channel.stream_stream(METHOD)()
        self.kept.append((channel, stream))
        await stream.wait_for_connection()
        if message is not None:
            with suppress(grpc.RpcError, grpc.aio.BaseError, asyncio.InvalidStateError):
                await stream.write(message)
        return stream


class Knocks(Intruder):
    """Opens streams without a valid hello, and connections without a stream."""

    async def intrude(self):
        for link in [connect_to(self.address) for _ in range(4)]:
            link.sendall(PREFACE)
            self.kept.append(link)
        await self.open_stream()
        (await self.open_stream()).cancel()
        for message in (
            play_pb2.BotMessage(hello=hello(version=2)).SerializeToString(),
            play_pb2.BotMessage(hello=hello(token="0" * 32)).SerializeToString(),
            b"\xff" * 20,
            b"x" * 100_000,
        ):
            stream = await self.open_stream(message)
            complain(f"knocked: {(await stream.code()).name}")


class StealsToken(Intruder):
    """Says hello in the place of the victim, with the victim's token."""

    async def intrude(self):
        message = play_pb2.BotMessage(hello=hello(token=self.token)).SerializeToString()
        stream = await self.open_stream(message)
        complain(f"stole: {(await stream.code()).name}")


class StealsTokenAndGoes(Intruder):
    """Says hello in the place of the victim, and closes the connection at once."""

    async def intrude(self):
        message = play_pb2.BotMessage(hello=hello(token=self.token)).SerializeToString()
        for _ in range(5):
            await self.open_stream(message)
            channel, _ = self.kept.pop()
            await channel.close()


class StealsTokenLate(GoesWrong):
    """Reads the victim's token from its environment during a game, and says hello with it on the victim's server."""

    async def go_wrong(self, request):
        token, address = foreign_token(with_address=True)
        async with grpc.aio.insecure_channel(address) as channel:
            stream = channel.stream_stream(METHOD)()
            message = play_pb2.BotMessage(hello=hello(token=token))
            await stream.write(message.SerializeToString())
            complain(f"stole: {(await stream.code()).name}")
        await self.say(replies=[self.reply(request)])


class TakesAllConnections(Intruder):
    """Opens so many connections to the victim's server that the victim gets none, and opens them again when they end."""

    async def intrude(self):
        while True:
            links = []
            with suppress(OSError):  # the referee may end a connection while it is being made
                links += (connect_to(self.address) for _ in range(100))
            for link in links:
                link.settimeout(1)  # the referee leaves a few connections open
                with suppress(OSError):
                    link.sendall(PREFACE + SETTINGS)
                    while await asyncio.to_thread(link.recv, 1 << 16):
                        pass


if __name__ == "__main__":
    complain(f"I am {sys.argv[1]}")
    asyncio.run(kinds()[sys.argv[1]]().run())
