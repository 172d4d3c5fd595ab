"""The conformance corpus: requests of real games, and what greedy answers to them.

A file of protobuf messages, each behind its length, compressed. They come in twos, for one seat of one
game: a `RefereeMessage` with the game's start, some of its requests in their order, and its end; then a
`BotMessage` with the ready and the replies that are expected.
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
    """One seat of one game."""

    asked: play_pb2.RefereeMessage
    answered: play_pb2.BotMessage

    @property
    def start(self) -> play_pb2.GameStart:
        return self.asked.game_starts[0]

    @property
    def size(self) -> int:
        """How many requests there are."""
        return len(self.asked.requests)


def pack(seats: Iterable[Seat]) -> bytes:
    """The messages, not compressed yet."""
    stream = io.BytesIO()
    for seat in seats:
        for message in seat:
            proto.serialize_length_prefixed(message, stream)
    return stream.getvalue()


def compress(data: bytes) -> bytes:
    """Without the time of day, so that the same content gives the same file."""
    return gzip.compress(data, mtime=0)


def load() -> list[Seat]:
    """The corpus of the repository."""
    stream = io.BytesIO(gzip.decompress(PATH.read_bytes()))
    seats = []
    while asked := proto.parse_length_prefixed(play_pb2.RefereeMessage, stream):
        answered = proto.parse_length_prefixed(play_pb2.BotMessage, stream)
        seats.append(Seat(asked, answered))
    return seats
