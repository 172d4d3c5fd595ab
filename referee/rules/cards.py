"""Cards, multisets of cards and layers: the nouns of the game.

A card is an int: 1…13 for the number cards, `JOKER` (14) for a joker, `HIDDEN` (0) where the reader
may not know it. The joker's number makes "higher than 13" an ordinary comparison.

A multiset of cards is 15 counts, `counts[card]`; `counts[HIDDEN]` is always 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

HIDDEN = 0
JOKER = 14
NUMBERS = range(1, 14)
COPIES = 8
"""How many of each number card there are."""
JOKERS = 5
HAND_SIZE = 13
"""Cards dealt to each player; also the size to which the duel's ghost is refilled."""
DISPLAY_SLOTS = 6
DECK_SIZE = len(NUMBERS) * COPIES + JOKERS


Counts = tuple[int, ...]
"""A multiset of cards: 15 counts, indexed by card."""
Group = tuple[int, ...]
"""What lies in one slot of the display: nothing, a card, or (duel) a group, bottom card first."""

EMPTY: Counts = (0,) * 15
FULL: Counts = (0, *(COPIES for _ in NUMBERS), JOKERS)
"""All 109 cards."""


class Layer(NamedTuple):
    """Cards of one value played together. A joker layer is `(JOKER, 0, n)` (ruling R1)."""

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


def count_cards(cards: Iterable[int]) -> Counts:
    """The multiset of some cards."""
    counts = [0] * 15
    for card in cards:
        counts[card] += 1
    return tuple(counts)


def list_cards(counts: Counts) -> list[int]:
    """The cards of a multiset one by one, the lowest first."""
    return [card for card, copies in enumerate(counts) for _ in range(copies)]


def card_name(card: int) -> str:
    """`1`…`13`, `J` for a joker, `?` for a hidden card."""
    return {HIDDEN: "?", JOKER: "J"}.get(card, str(card))
