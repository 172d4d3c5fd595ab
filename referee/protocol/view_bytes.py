"""What recurs, made once.

The facts of the wire format that are written by hand, where protobuf itself took too long.

A field is its number and kind, then (for bytes, messages and packed lists) the length; a number is its
base-128 digits, low first, so that one below 128 is a byte of that value; and messages that lie one after
the other are one message with the fields of all. https://protobuf.dev/programming-guides/encoding/

A seat's view as bytes: a serialised `View`, put together from pieces that stay as they are.

Building the message anew for each request took longer than sending it. What recurs (a layer, a slot) is
serialised once; what did not change since the last view is the same object (see `View`) and is not even
looked up.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress, count
from operator import is_not
from typing import TypeVar

from referee.pb import table_pb2
from referee.protocol.values import layer_message
from referee.rules.cards import JOKER, Counts, Group, Layer
from referee.rules.view import View

Key = TypeVar("Key")
Made = TypeVar("Made")


def memo(size: int) -> Callable[[Callable[[Key], Made]], Callable[[Key], Made]]:
    """Decorate a function of one argument, so that it is called once for each of so many equal arguments.

    For what is needed at every decision: what `functools.lru_cache` makes takes twice as long, since it keeps
    an order and makes a tuple of its arguments. When the memo is full it begins anew. What the function raises
    goes through, and is not kept.
    """
    return lambda make: _Memo(make, size).__getitem__


class _Memo(dict[Key, Made]):
    def __init__(self, make: Callable[[Key], Made], size: int) -> None:
        super().__init__()
        self._make = make
        self._size = size

    def __missing__(self, key: Key) -> Made:
        made = self._make(key)
        if len(self) >= self._size:
            self.clear()
        self[key] = made
        return made


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


_FIELDS = {name: field.number for name, field in table_pb2.View.DESCRIPTOR.fields_by_name.items()}
_HAND_HEAD = head(_FIELDS["hand"])(JOKER + 1)
_hand_sizes_head = head(_FIELDS["hand_sizes"])
_table_head = head(_FIELDS["tables"])
_deck_size, _turn = number_field(_FIELDS["deck_size"]), number_field(_FIELDS["turn"])
_KEPT_of_view = 1 << 12


class ViewWriter:
    """Writes the views of one game, of all its seats."""

    def __init__(self) -> None:
        self._layers: list[tuple[Layer, ...] | None] = []
        self._tables: list[bytes] = []
        """The layers of each seat, written."""
        self._display: tuple[Group, ...] | None = None
        self._slots = b""
        """The display, written."""
        self._discards: Counts | None = None
        self._ghost: Counts | None = None
        self._piles = b""
        """These two, written."""

    def write(self, view: View) -> bytes:
        """A view as a serialised `View`."""
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
                _place((seat, active_seat, victim, cards_to_draw, snatched)),
                _deck_size(deck_size),
                _turn(turn),
                _HAND_HEAD,
                bytes(hand),  # each count is below 128: a byte
                _hand_sizes_head(len(hand_sizes)),
                bytes(hand_sizes),  # so is each size
                *self._tables,
                self._slots,
                self._piles,
            )
        )


def _table(layers: tuple[Layer, ...]) -> bytes:
    body = b"".join(map(_layer, layers))
    return _table_head(len(body)) + body


@memo(_KEPT_of_view)
def _place(place: tuple[int, int, int | None, int, Layer | None]) -> bytes:
    seat, active_seat, victim, cards_to_draw, snatched = place
    return table_pb2.View(
        seat=seat,
        active_seat=active_seat,
        victim=victim,
        cards_to_draw=cards_to_draw,
        snatched=None if snatched is None else layer_message(snatched),
    ).SerializeToString()


@memo(_KEPT_of_view)
def _layer(cards: Layer) -> bytes:
    return table_pb2.Table(layers=[layer_message(cards)]).SerializeToString()


@memo(_KEPT_of_view)
def _slot(cards: Group) -> bytes:
    return table_pb2.View(display=[table_pb2.Slot(cards=cards)]).SerializeToString()
