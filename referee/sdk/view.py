"""What your seat may know of a game at one moment, decoded field by field as it is read."""

from __future__ import annotations

from functools import cached_property

from referee.pb import table_pb2 as pb
from referee.sdk.cards import Counts, Group, Layer, layer_of


class View:
    """A game as your seat sees it. Seats are numbered from 0, clockwise."""

    def __init__(self, message: pb.View) -> None:
        self.message = message
        self.seat = message.seat
        """Your own seat."""

    @cached_property
    def hand(self) -> Counts:
        """Your hand: 15 counts."""
        return tuple(self.message.hand)

    @cached_property
    def hand_sizes(self) -> tuple[int, ...]:
        """How many cards each seat holds."""
        return tuple(self.message.hand_sizes)

    @cached_property
    def players(self) -> int:
        """How many sit at the table."""
        return len(self.message.hand_sizes)

    @cached_property
    def opponents(self) -> tuple[int, ...]:
        """The other seats, clockwise from your left: the order in which you snatch from them."""
        return tuple((self.seat + offset) % self.players for offset in range(1, self.players))

    @cached_property
    def tables(self) -> tuple[tuple[Layer, ...], ...]:
        """Each seat's played layers, oldest first."""
        return tuple(tuple(map(layer_of, table.layers)) for table in self.message.tables)

    def top(self, seat: int) -> Layer | None:
        """A seat's top layer, the only one that can be snatched; None where there is no layer."""
        layers = self.message.tables[seat].layers
        return layer_of(layers[-1]) if layers else None

    @cached_property
    def scores(self) -> tuple[int, ...]:
        """What each seat's score would be if the game ended now."""
        return tuple(
            sum(layer.naturals + layer.jokers for layer in table.layers) - held
            for table, held in zip(self.message.tables, self.message.hand_sizes, strict=True)
        )

    @cached_property
    def display(self) -> tuple[Group, ...]:
        """Six slots: empty, a card, or (duel) a group, bottom card first."""
        return tuple(tuple(slot.cards) for slot in self.message.display)

    @property
    def deck_size(self) -> int:
        """How many cards are left in the deck."""
        return self.message.deck_size

    @cached_property
    def discards(self) -> Counts:
        """The discard pile: 15 counts."""
        return tuple(self.message.discards)

    @cached_property
    def ghost(self) -> Counts | None:
        """The ghost's cards: 15 counts; None but in the duel."""
        return tuple(self.message.ghost) or None

    @property
    def active_seat(self) -> int:
        """Whose turn it is; the attacker while layers are snatched."""
        return self.message.active_seat

    @property
    def turn(self) -> int:
        """Number of the turn, from 1."""
        return self.message.turn

    @property
    def snatched(self) -> Layer | None:
        """The layer whose fate is being decided."""
        return layer_of(self.message.snatched) if self.message.HasField("snatched") else None

    @property
    def victim(self) -> int | None:
        """Whose layer was snatched, or who is drawing after a snatch."""
        return self.message.victim if self.message.HasField("victim") else None

    @property
    def cards_to_draw(self) -> int:
        """How many cards are still to be drawn, the one being decided included."""
        return self.message.cards_to_draw
