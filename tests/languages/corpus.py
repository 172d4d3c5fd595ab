"""Read and write the conformance corpus: requests of real games with the replies of `greedy`.

The corpus is a compressed file of protobuf messages, each preceded by its length. There are two messages
for one seat of one game: a `RefereeMessage` with the game's start, some requests in order, and its end,
and a `BotMessage` with the expected ready and replies.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from google.protobuf import proto

from referee.pb import play_pb2

PATH = Path(__file__).with_name("corpus.binpb.gz")


class Seat(NamedTuple):
    """The messages of one seat in one game."""

    sent: play_pb2.RefereeMessage
    """The start, the requests and the end of the game."""
    expected: play_pb2.BotMessage
    """The expected ready and replies."""

    @property
    def start(self) -> play_pb2.GameStart:
        return self.sent.game_starts[0]

    @property
    def size(self) -> int:
        """The number of requests."""
        return len(self.sent.requests)


def pack(seats: Iterable[Seat]) -> bytes:
    """Return the messages as bytes, not compressed."""
    stream = io.BytesIO()
    for seat in seats:
        for message in seat:
            proto.serialize_length_prefixed(message, stream)
    return stream.getvalue()


def compress(data: bytes) -> bytes:
    """Compress without a time stamp, so that the same content gives the same file."""
    return gzip.compress(data, mtime=0)


def load() -> list[Seat]:
    """Return the corpus of the repository."""
    stream = io.BytesIO(gzip.decompress(PATH.read_bytes()))
    seats = []
    while sent := proto.parse_length_prefixed(play_pb2.RefereeMessage, stream):
        expected = proto.parse_length_prefixed(play_pb2.BotMessage, stream)
        seats.append(Seat(sent, expected))
    return seats
