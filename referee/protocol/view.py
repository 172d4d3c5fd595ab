"""A seat's view as bytes: a serialised `View`, put together from pieces that stay as they are.

Building the message anew for each request took longer than sending it. What recurs (a layer, a slot) is
serialised once; what did not change since the last view is the same object (see `View`) and is not even
looked up.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import compress, count
from operator import is_not

from referee.pb import table_pb2
from referee.protocol.messages import layer_message
from referee.protocol.wire import head, number_field
from referee.rules.cards import EMPTY, Counts, Group, Layer
from referee.rules.view import View

_CACHED = 1 << 12
"""Entries of each cache below: what recurs within some games; more would only be memory."""
_FIELDS = {name: field.number for name, field in table_pb2.View.DESCRIPTOR.fields_by_name.items()}
_HAND_SIZES, _TABLES = _FIELDS["hand_sizes"], _FIELDS["tables"]
_DECK_SIZE, _TURN = _FIELDS["deck_size"], _FIELDS["turn"]
_HAND_HEAD = head(_FIELDS["hand"], len(EMPTY))


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
                _place(seat, active_seat, victim, cards_to_draw, snatched),
                number_field(_DECK_SIZE, deck_size),
                number_field(_TURN, turn),
                _HAND_HEAD,
                bytes(hand),  # each count is below 128: a byte
                head(_HAND_SIZES, len(hand_sizes)),
                bytes(hand_sizes),  # so is each size
                *self._tables,
                self._slots,
                self._piles,
            )
        )


@lru_cache(_CACHED)
def _place(
    seat: int, active_seat: int, victim: int | None, cards_to_draw: int, snatched: Layer | None
) -> bytes:
    return table_pb2.View(
        seat=seat,
        active_seat=active_seat,
        victim=victim,
        cards_to_draw=cards_to_draw,
        snatched=None if snatched is None else layer_message(snatched),
    ).SerializeToString()


def _table(layers: tuple[Layer, ...]) -> bytes:
    body = b"".join(map(_layer, layers))
    return head(_TABLES, len(body)) + body


@lru_cache(_CACHED)
def _layer(cards: Layer) -> bytes:
    return table_pb2.Table(layers=[layer_message(cards)]).SerializeToString()


@lru_cache(_CACHED)
def _slot(cards: Group) -> bytes:
    return table_pb2.View(display=[table_pb2.Slot(cards=cards)]).SerializeToString()
