"""Define cards, multisets of cards, and layers.

A card is an int: 1 to 13 for the number cards, `JOKER` (14) for a joker, `HIDDEN` (0) for a card that a
seat may not see. A joker is 14, because a layer of jokers snatches a layer of 13s.

A multiset of cards is a tuple of 15 counts, indexed by card. The count of `HIDDEN` is always 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

HIDDEN = 0
JOKER = 14
NUMBERS = range(1, 14)
COPIES = 8
"""The number of copies of each number card."""
JOKERS = 5
"""The number of jokers."""
HAND_SIZE = 13
"""The number of cards that each player gets at the start. The duel's ghost is refilled to this number."""
DISPLAY_SLOTS = 6
DECK_SIZE = len(NUMBERS) * COPIES + JOKERS


Counts = tuple[int, ...]
"""A multiset of cards: 15 counts, indexed by card."""
Group = tuple[int, ...]
"""The cards in one slot of the display: none, one, or in a duel several, the bottom card first."""

EMPTY: Counts = (0,) * 15
FULL: Counts = (0, *(COPIES for _ in NUMBERS), JOKERS)
"""All 109 cards."""


class Layer(NamedTuple):
    """Cards of one value that were played together, jokers included.

    A layer of `n` jokers alone is `Layer(JOKER, 0, n)`. It does not matter which copies of a card a layer
    has (ruling R1 in `referee/rules/README.md`).
    """

    value: int
    naturals: int
    """The number of number cards."""
    jokers: int = 0
    """The number of jokers."""

    @property
    def size(self) -> int:
        """The number of cards."""
        return self.naturals + self.jokers

    @property
    def cards(self) -> tuple[int, ...]:
        """The cards one by one: first the naturals, then the jokers."""
        return (self.value,) * self.naturals + (JOKER,) * self.jokers


def count_cards(cards: Iterable[int]) -> Counts:
    """Return `cards` as a multiset."""
    counts = [0] * 15
    for card in cards:
        counts[card] += 1
    return tuple(counts)


def list_cards(counts: Counts) -> list[int]:
    """Return the cards of a multiset one by one, the lowest first."""
    return [card for card, copies in enumerate(counts) for _ in range(copies)]


def card_name(card: int) -> str:
    """Return `1` to `13`, `J` for a joker, or `?` for a hidden card."""
    return {HIDDEN: "?", JOKER: "J"}.get(card, str(card))
