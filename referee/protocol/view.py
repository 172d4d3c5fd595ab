"""A seat's view as bytes: a serialised `View`, put together from pieces that stay as they are.

Building the message anew for each request took longer than sending it. What recurs (a layer, a slot) is
serialised once; what did not change since the last view is the same object (see `View`) and is not even
looked up.
"""

from __future__ import annotations

from functools import lru_cache

from referee.pb import table_pb2
from referee.protocol.messages import layer_message
from referee.protocol.wire import head
from referee.rules.cards import Counts, Group, Layer
from referee.rules.view import View

_CACHED = 1 << 12
"""Entries of each cache below: what recurs within some games; more would only be memory."""
_FIELDS = {name: field.number for name, field in table_pb2.View.DESCRIPTOR.fields_by_name.items()}
_HAND, _HAND_SIZES, _TABLES = _FIELDS["hand"], _FIELDS["hand_sizes"], _FIELDS["tables"]


class ViewWriter:
    """Writes the views of one game, of all its seats."""

    def __init__(self) -> None:
        self._layers: list[tuple[Layer, ...] | None] = []
        self._tables: list[bytes] = []
        """The layers of each seat, written."""
        self._display: tuple[Group, ...] | None = None
        self._discards: Counts | None = None
        self._ghost: Counts | None = None
        self._middle = b""
        """These three, written."""

    def write(self, view: View) -> bytes:
        """A view as a serialised `View`."""
        tables = view.tables
        if not self._tables:
            self._layers, self._tables = [None] * len(tables), [b""] * len(tables)
        for seat, layers in enumerate(tables):
            if layers is not self._layers[seat]:
                self._layers[seat] = layers
                self._tables[seat] = _table(layers)
        if (
            view.display is not self._display
            or view.discards is not self._discards
            or view.ghost is not self._ghost
        ):
            self._display, self._discards, self._ghost = view.display, view.discards, view.ghost
            self._middle = _middle(view)
        sizes = bytes(view.hand_sizes)
        return b"".join(
            (
                _place(view.seat, view.active_seat, view.victim, view.cards_to_draw, view.snatched),
                _progress(view.deck_size, view.turn),
                head(_HAND, len(view.hand)),
                bytes(view.hand),  # each count is below 128: a byte
                head(_HAND_SIZES, len(sizes)),
                sizes,  # so is each size
                *self._tables,
                self._middle,
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


@lru_cache(_CACHED)
def _progress(deck_size: int, turn: int) -> bytes:
    return table_pb2.View(deck_size=deck_size, turn=turn).SerializeToString()


def _middle(view: View) -> bytes:
    """What lies in the middle of the table."""
    rest = table_pb2.View(discards=view.discards, ghost=view.ghost).SerializeToString()
    return b"".join((*map(_slot, view.display), rest))


def _table(layers: tuple[Layer, ...]) -> bytes:
    body = b"".join(map(_layer, layers))
    return head(_TABLES, len(body)) + body


@lru_cache(_CACHED)
def _layer(cards: Layer) -> bytes:
    return table_pb2.Table(layers=[layer_message(cards)]).SerializeToString()


@lru_cache(_CACHED)
def _slot(cards: Group) -> bytes:
    return table_pb2.View(display=[table_pb2.Slot(cards=cards)]).SerializeToString()
