"""A seat's view as bytes: a serialised `View`, put together from pieces that stay as they are.

Building the message anew for each request took longer than sending it. What recurs (a layer, a slot) is
serialised once; what did not change since the last view is the same object (see `View`) and is not even
looked up.
"""

from __future__ import annotations

from itertools import compress, count
from operator import is_not

from referee.pb import table_pb2
from referee.protocol.memo import memo
from referee.protocol.messages import layer_message
from referee.protocol.wire import head, number_field
from referee.rules.cards import JOKER, Counts, Group, Layer
from referee.rules.view import View

_FIELDS = {name: field.number for name, field in table_pb2.View.DESCRIPTOR.fields_by_name.items()}
_HAND_HEAD = head(_FIELDS["hand"])(JOKER + 1)
_hand_sizes_head = head(_FIELDS["hand_sizes"])
_table_head = head(_FIELDS["tables"])
_deck_size, _turn = number_field(_FIELDS["deck_size"]), number_field(_FIELDS["turn"])
_KEPT = 1 << 12


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


@memo(_KEPT)
def _place(place: tuple[int, int, int | None, int, Layer | None]) -> bytes:
    seat, active_seat, victim, cards_to_draw, snatched = place
    return table_pb2.View(
        seat=seat,
        active_seat=active_seat,
        victim=victim,
        cards_to_draw=cards_to_draw,
        snatched=None if snatched is None else layer_message(snatched),
    ).SerializeToString()


@memo(_KEPT)
def _layer(cards: Layer) -> bytes:
    return table_pb2.Table(layers=[layer_message(cards)]).SerializeToString()


@memo(_KEPT)
def _slot(cards: Group) -> bytes:
    return table_pb2.View(display=[table_pb2.Slot(cards=cards)]).SerializeToString()
