"""What happens in a game, one named tuple a kind, and what each seat may see of it.

Events are complete; `redact` hides what a seat may not know (ruling R13: all is public but the card
that another seat drew from the deck).
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeGuard

from referee.rules.cards import HIDDEN, Group, Layer


class Termination(Enum):
    """Why a game ended."""

    OUT = "out"
    """A player played its last card."""
    EXHAUSTED = "exhausted"
    """The deck and the display are both empty."""
    DECK_EMPTY = "deck-empty"
    """The deck is empty, with `end_on = "deck"`."""
    TURN_LIMIT = "turn-limit"
    """`max_turns` turns were played (ruling R12)."""


class SlotCard(NamedTuple):
    """A card put into a slot of the display."""

    slot: int
    card: int


class Played(NamedTuple):
    """A layer was played; it begins a turn."""

    seat: int
    layer: Layer


class Snatched(NamedTuple):
    """A top layer was snatched and left its owner's table."""

    attacker: int
    victim: int
    layer: Layer


class Taken(NamedTuple):
    """The attacker took the snatched layer into its hand."""

    seat: int
    layer: Layer


class Left(NamedTuple):
    """The attacker left the snatched layer to its owner."""

    seat: int


class Reclaimed(NamedTuple):
    """The owner took the layer back into its hand."""

    seat: int
    layer: Layer


class Discarded(NamedTuple):
    """The owner put the layer on the discard pile."""

    seat: int
    layer: Layer


class Drawn(NamedTuple):
    """One draw: a card from the deck (`slot` is None), or what lay in a slot of the display."""

    seat: int
    slot: int | None
    cards: Group


class DisplayRefilled(NamedTuple):
    """The display was refilled from the deck, in drawing order."""

    cards: tuple[SlotCard, ...]


class GhostSnatched(NamedTuple):
    """A set of the duel's ghost went into the attacker's hand."""

    seat: int
    layer: Layer


class GhostRefilled(NamedTuple):
    """The duel's ghost was refilled; 13s and jokers went onto the display."""

    ghost_cards: tuple[int, ...]
    display_cards: tuple[SlotCard, ...]


class Passed(NamedTuple):
    """The active player did without the optional draw."""

    seat: int


class GameOver(NamedTuple):
    """The game is over."""

    termination: Termination
    scores: tuple[int, ...]
    """Points of each seat."""
    ranks: tuple[int, ...]
    """Rank of each seat by the rules, 1-2-2-4 (ruling R15)."""


Event = (
    Played
    | Snatched
    | Taken
    | Left
    | Reclaimed
    | Discarded
    | Drawn
    | DisplayRefilled
    | GhostSnatched
    | GhostRefilled
    | Passed
    | GameOver
)


def is_private(event: Event) -> TypeGuard[Drawn]:
    """Whether the seat that did it sees more of the event than all others, who see the same."""
    return type(event) is Drawn and event.slot is None


def redact(event: Event, seat: int) -> Event:
    """The event as a seat may know it."""
    if is_private(event) and event.seat != seat:
        return Drawn(event.seat, None, (HIDDEN,))
    return event
