"""The three facts of the wire format that are written by hand, where protobuf itself took too long.

A field is its number and kind, then (for bytes, messages and packed lists) the length; a number is its
base-128 digits, low first, so that one below 128 is a byte of that value; and messages that lie one after
the other are one message with the fields of all. https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from functools import lru_cache

_BASE = 128
_CACHED = 1 << 12


@lru_cache(_CACHED)
def head(field: int, length: int) -> bytes:
    """What stands before so many bytes of a field that is a message, a string or a packed list."""
    written = bytearray()
    for number in (field << 3 | 2, length):
        left = number
        while left >= _BASE:
            written.append(left % _BASE + _BASE)
            left //= _BASE
        written.append(left)
    return bytes(written)
