"""The facts of the wire format that are written by hand, where protobuf itself took too long.

A field is its number and kind, then (for bytes, messages and packed lists) the length; a number is its
base-128 digits, low first, so that one below 128 is a byte of that value; and messages that lie one after
the other are one message with the fields of all. https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Callable

from referee.protocol.memo import memo

SMALL = 128
"""Numbers below this are written as a byte."""
_KEPT = 1 << 12


def head(field: int) -> Callable[[int], bytes]:
    """What stands before a field that is a message, a string or a packed list: a function of its length in bytes."""
    tag = _digits(field << 3 | 2)
    return memo(_KEPT)(lambda length: tag + _digits(length))


def number_field(field: int) -> Callable[[int], bytes]:
    """A field that is a number of at least 0, or an enum: a function of the number. 0 is not written at all."""
    tag = _digits(field << 3)
    return memo(_KEPT)(lambda number: tag + _digits(number) if number else b"")


def _digits(number: int) -> bytes:
    written = bytearray()
    while number >= SMALL:
        written.append(number % SMALL + SMALL)
        number //= SMALL
    written.append(number)
    return bytes(written)
