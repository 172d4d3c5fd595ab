"""Write views as bytes, mostly without protobuf objects.

Building a request with protobuf took longer than sending the request. Therefore this module writes some fields
without protobuf. Protobuf serialises each layer and each slot of the display once, and this module keeps the bytes.

The wire format (https://protobuf.dev/programming-guides/encoding/): A field starts with a tag: the number and the
type of the field. If the field is a string, a message or a packed list, the length in bytes follows. Numbers are
written in base 128, lowest digit first. A number below 128 is one byte. Protobuf parses two concatenated messages
as one message with the fields of both.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress, count
from operator import is_not
from typing import TypeVar

from referee.pb import table_pb2
from referee.protocol.values import layer_message
from referee.rules.events import View
from referee.rules.ruleset import JOKER, Counts, Group, Layer

Key = TypeVar("Key")
Value = TypeVar("Value")


def memoize(size: int) -> Callable[[Callable[[Key], Value]], Callable[[Key], Value]]:
    """Decorate a function of one argument so that up to `size` of its results are kept.

    If `size` results are kept, the next new result replaces all of them. Exceptions are passed on and not kept.
    Use this decorator for functions that run at every decision. `functools.lru_cache` takes twice as long,
    because it maintains an order and builds a tuple of the arguments.
    """
    return lambda function: _Memo(function, size).__getitem__


class _Memo(dict[Key, Value]):
    def __init__(self, function: Callable[[Key], Value], size: int) -> None:
        super().__init__()
        self._function = function
        self._size = size

    def __missing__(self, key: Key) -> Value:
        value = self._function(key)
        if len(self) >= self._size:
            self.clear()
        self[key] = value
        return value


ONE_BYTE_LIMIT = 128
"""The wire format writes every number below 128 as one byte."""
_MEMO_SIZE = 1 << 12


def prefix(field: int) -> Callable[[int], bytes]:
    """Return a function that writes the tag and the length of a field whose content is a message, a string or a packed list.

    The function takes the length of the content in bytes. The caller must write the content after the returned bytes.

    Args:
        field: the number of the field.
    """
    tag = _base_128(field << 3 | 2)
    return memoize(_MEMO_SIZE)(lambda length: tag + _base_128(length))


def number_field(field: int) -> Callable[[int], bytes]:
    """Return a function that writes a whole field: the tag and a number, which can be an enum value.

    The number must not be negative. For 0 the function returns no bytes, because protobuf omits a field that is 0.

    Args:
        field: the number of the field.
    """
    tag = _base_128(field << 3)
    return memoize(_MEMO_SIZE)(lambda number: tag + _base_128(number) if number else b"")


def _base_128(number: int) -> bytes:
    digits = bytearray()
    while number >= ONE_BYTE_LIMIT:
        digits.append(number % ONE_BYTE_LIMIT + ONE_BYTE_LIMIT)
        number //= ONE_BYTE_LIMIT
    digits.append(number)
    return bytes(digits)


_HAND_PREFIX = prefix(table_pb2.View.HAND_FIELD_NUMBER)(JOKER + 1)
_hand_sizes_prefix = prefix(table_pb2.View.HAND_SIZES_FIELD_NUMBER)
_table_prefix = prefix(table_pb2.View.TABLES_FIELD_NUMBER)
_deck_size = number_field(table_pb2.View.DECK_SIZE_FIELD_NUMBER)
_turn = number_field(table_pb2.View.TURN_FIELD_NUMBER)


class ViewWriter:
    """Write the views of one game, for all its seats.

    The writer keeps some parts of the last view and their bytes: the layers of each seat, the display, the discards and the
    ghost. If the next view has the same object for a part, the part has not changed (see `View`), and the writer uses the
    kept bytes.
    """

    def __init__(self) -> None:
        self._layers: list[tuple[Layer, ...] | None] = []
        self._tables: list[bytes] = []
        """The layers of each seat as bytes."""
        self._display: tuple[Group, ...] | None = None
        self._slots = b""
        """The display as bytes."""
        self._discards: Counts | None = None
        self._ghost: Counts | None = None
        self._piles = b""
        """The discards and the ghost as bytes."""

    def write(self, view: View) -> bytes:
        """Return a view as a serialised `linko.v1.View`."""
        (
            seat,
            hand,
            hand_sizes,
            tables,
            display,
            deck_size,
            discards,
            ghost,
            active_seat,
            turn,
            snatched,
            victim,
            cards_to_draw,
        ) = view
        if not self._tables:
            self._layers, self._tables = [None] * len(tables), [b""] * len(tables)
        for changed in compress(count(), map(is_not, tables, self._layers)):
            self._layers[changed] = tables[changed]
            self._tables[changed] = _table(tables[changed])
        if display is not self._display:
            self._display = display
            self._slots = b"".join(map(_slot, display))
        if discards is not self._discards or ghost is not self._ghost:
            self._discards, self._ghost = discards, ghost
            self._piles = table_pb2.View(discards=discards, ghost=ghost).SerializeToString()
        return b"".join(
            (
                _seats((seat, active_seat, victim, cards_to_draw, snatched)),
                _deck_size(deck_size),
                _turn(turn),
                _HAND_PREFIX,
                bytes(hand),  # each count is below 128: one byte
                _hand_sizes_prefix(len(hand_sizes)),
                bytes(hand_sizes),  # each size is below 128 too
                *self._tables,
                self._slots,
                self._piles,
            )
        )


def _table(layers: tuple[Layer, ...]) -> bytes:
    body = b"".join(map(_layer, layers))
    return _table_prefix(len(body)) + body


@memoize(_MEMO_SIZE)
def _seats(fields: tuple[int, int, int | None, int, Layer | None]) -> bytes:
    """Write five fields of a view: the three that name a seat, the snatched layer and the number of draws left."""
    seat, active_seat, victim, cards_to_draw, snatched = fields
    return table_pb2.View(
        seat=seat,
        active_seat=active_seat,
        victim=victim,
        cards_to_draw=cards_to_draw,
        snatched=None if snatched is None else layer_message(snatched),
    ).SerializeToString()


@memoize(_MEMO_SIZE)
def _layer(layer: Layer) -> bytes:
    return table_pb2.Table(layers=[layer_message(layer)]).SerializeToString()


@memoize(_MEMO_SIZE)
def _slot(cards: Group) -> bytes:
    return table_pb2.View(display=[table_pb2.Slot(cards=cards)]).SerializeToString()
