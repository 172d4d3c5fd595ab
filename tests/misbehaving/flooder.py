"""Run a bot that floods its own server with HTTP/2 frames or connections: `flooder.py NAME`.

Each bot is a class below, as in `bot.py`. It plays correctly, but at one request of each game it floods without end, on a
connection beside its stream. `trickles` floods before its hello.
"""

import asyncio
import os
import select
import socket
import sys
from contextlib import suppress

from bot import Fair, GoesWrong, complain, connect, kinds

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MANY = 4000
"""How many small frames are sent at once."""


def frame(kind, flags=0, stream=0, payload=b""):
    """Return one HTTP/2 frame."""
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")
    return head + payload


def field(name, value):
    return b"\0" + b"".join(bytes((len(text),)) + text.encode() for text in (name, value))


SETTINGS = frame(4)
HEADERS = b"".join(
    field(*each)
    for each in (
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/linko.v1.RefereeService/Play"),
        (":authority", "localhost"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
    )
)


class Flooder(GoesWrong):
    """Sends `opening` once and then `repeated` for ever, and opens a new connection when the server ends one."""

    opening = b""

    async def go_wrong(self, request):
        while True:
            with suppress(OSError), connect() as link:
                link.sendall(PREFACE + SETTINGS + self.opening)
                self.pump(link)

    def pump(self, link):
        """Send `repeated` until the connection ends, and read what comes back."""
        link.setblocking(False)
        rest = self.repeated
        while True:
            readable, writable, _ = select.select([link], [link], [])
            if readable and not link.recv(1 << 20):
                return
            if writable:
                rest = rest[link.send(rest) :] or self.repeated


class FloodsPings(Flooder):
    repeated = frame(6, payload=b"12345678") * MANY


class FloodsPingAnswers(Flooder):
    repeated = frame(6, 1, payload=b"12345678") * MANY


class FloodsSettings(Flooder):
    repeated = SETTINGS * MANY


class FloodsWindowUpdates(Flooder):
    repeated = frame(8, payload=b"\0\0\0\1") * MANY


class FloodsResets(Flooder):
    repeated = frame(3, 0, 1, b"\0\0\0\1") * MANY


class FloodsUnknownFrames(Flooder):
    repeated = frame(200) * MANY


class FloodsHeaders(Flooder):
    """Sends headers that never end."""

    opening = frame(1, 0, 1, HEADERS)
    repeated = frame(9, 0, 1, field("a" * 20, "b" * 100) * 10) * 100


class FloodsBeside(FloodsWindowUpdates):
    """Plays on, slowly but correctly, while a child process floods from one request of its first game on."""

    async def run(self):
        begin, self.begin = os.pipe()
        if os.fork() == 0:  # before gRPC has threads
            os.read(begin, 1)
            await super().go_wrong(None)
        await super().run()

    async def go_wrong(self, request):
        os.write(self.begin, b"x")
        await self.say(replies=[self.reply(request)])

    async def answer(self, request):
        await asyncio.sleep(0.2)
        await super().answer(request)


class FloodsConnections(GoesWrong):
    """Opens and closes connections."""

    async def go_wrong(self, request):
        while True:
            with suppress(OSError):
                connect().close()


class FloodsBytes(GoesWrong):
    """Sends frames byte by byte, as fast as it can."""

    async def go_wrong(self, request):
        link = connect()
        link.sendall(PREFACE + SETTINGS)
        while True:
            for byte in frame(200, payload=bytes(100)):
                link.send(bytes((byte,)))


class Trickles(Fair):
    """Sends its first bytes one by one, and begins again when the server ends the connection."""

    async def run(self):
        while True:
            with suppress(OSError):
                link = connect()
                for byte in PREFACE + SETTINGS * MANY:
                    link.send(bytes((byte,)))


if __name__ == "__main__":
    complain(f"I am {sys.argv[1]}")
    asyncio.run(kinds()[sys.argv[1]]().run())
