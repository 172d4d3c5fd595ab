"""Records one after another, compressed: what an archive keeps its games in.

A gzip file of messages, each a `linko.v1.GameRecord` with its length before it as a varint, as
protobuf's libraries write and read them.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from io import BytesIO

from referee.match import Difference
from referee.protocol import record as wire
from referee.records import GameRecord
from referee.tournament.archive.layout import RECORDS

MAX_RECORD_SIZE = 2**20
"""Bytes. Records have about a thousand, more with much evidence; what claims more is no record."""
_MAX_LENGTH_SIZE = 3
"""Bytes of a varint that can say MAX_RECORD_SIZE."""
_MORE = 0x80
_BITS = 7
_CUT_OFF = "it ends in the middle of a record"


def dump(records: Iterable[GameRecord]) -> bytes:
    """The records as a compressed stream; the same bytes for the same records."""
    buffer = BytesIO()
    with gzip.GzipFile("", "wb", compresslevel=9, fileobj=buffer, mtime=0) as stream:
        for record in records:
            message = wire.dumps(record)
            stream.write(_varint(len(message)))
            stream.write(message)
    return buffer.getvalue()


def load(data: bytes) -> Iterator[GameRecord]:
    """The records of a stream, read one by one, so that its size when unpacked is no matter.

    Raises Difference where it goes wrong.
    """
    number = 1
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as stream:
            while (message := _message(stream)) is not None:
                yield wire.loads(message)
                number += 1
    except (gzip.BadGzipFile, EOFError, ValueError, zlib.error) as error:
        raise Difference(f"{RECORDS}: record {number}: {error}") from error


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= _MORE:
        out.append(number & (_MORE - 1) | _MORE)
        number >>= _BITS
    out.append(number)
    return bytes(out)


def _message(stream: gzip.GzipFile) -> bytes | None:
    """The next record; None at the end of the stream."""
    size = _length(stream)
    if size is None:
        return None
    message = stream.read(size)
    if len(message) < size:
        raise EOFError(_CUT_OFF)
    return message


def _length(stream: gzip.GzipFile) -> int | None:
    """The length of the next record; None at the end of the stream."""
    size = 0
    for place in range(_MAX_LENGTH_SIZE):
        byte = stream.read(1)
        if not byte:
            if place:
                raise EOFError(_CUT_OFF)
            return None
        size |= (byte[0] & (_MORE - 1)) << _BITS * place
        if byte[0] < _MORE and size <= MAX_RECORD_SIZE:
            return size
    raise ValueError(f"a record of more than {MAX_RECORD_SIZE} bytes")
