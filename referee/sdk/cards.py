"""Cards and layers as bots see them."""

from __future__ import annotations

from typing import NamedTuple

from referee.pb import table_pb2 as pb

HIDDEN = 0
"""A card that you may not see."""
JOKER = 14

Counts = tuple[int, ...]
"""A multiset of cards: 15 counts, indexed by card; `counts[HIDDEN]` is always 0."""
Group = tuple[int, ...]
"""What lies in one slot of the display: nothing, a card, or (duel) a group, bottom card first."""


class Layer(NamedTuple):
    """Cards of one value played together; jokers alone are `Layer(JOKER, 0, n)`."""

    value: int
    naturals: int
    jokers: int = 0

    @property
    def size(self) -> int:
        """Number of cards."""
        return self.naturals + self.jokers

    @property
    def cards(self) -> tuple[int, ...]:
        """The cards one by one: naturals, then jokers."""
        return (self.value,) * self.naturals + (JOKER,) * self.jokers


def layer_of(message: pb.Layer) -> Layer:
    """A message as a layer."""
    return Layer(message.value, message.naturals, message.jokers)
