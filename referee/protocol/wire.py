"""The facts of the wire format that are written by hand, where protobuf itself took too long.

A field is its number and kind, then (for bytes, messages and packed lists) the length; a number is its
base-128 digits, low first, so that one below 128 is a byte of that value; and messages that lie one after
the other are one message with the fields of all. https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from functools import lru_cache

SMALL = 128
"""Numbers below this are written as a byte."""
_CACHED = 1 << 12


@lru_cache(_CACHED)
def head(field: int, length: int) -> bytes:
    """What stands before so many bytes of a field that is a message, a string or a packed list."""
    return _digits(field << 3 | 2) + _digits(length)


@lru_cache(_CACHED)
def number_field(field: int, number: int) -> bytes:
    """A field that is a number of at least 0, or an enum; one that is 0 is not written at all."""
    return _digits(field << 3) + _digits(number) if number else b""


def _digits(number: int) -> bytes:
    written = bytearray()
    while number >= SMALL:
        written.append(number % SMALL + SMALL)
        number //= SMALL
    written.append(number)
    return bytes(written)
