"""Define what a seat may know of a game: its view of the table, and the events that changed the table.

A view is made for one seat. Events are complete until `redact` hides the only part that a seat may not see:
the card that another seat drew from the deck (ruling R13).
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeGuard

from referee.rules.cards import HIDDEN, Counts, Group, Layer


class View(NamedTuple):
    """A game as one seat sees it (ruling R13).

    Its parts are immutable and shared with the state of the game. A part that did not change since
    the last view is the same object, so an encoder can reuse the bytes that it built from it.
    """

    seat: int
    hand: Counts
    hand_sizes: tuple[int, ...]
    tables: tuple[tuple[Layer, ...], ...]
    """The layers of each seat, oldest first."""
    display: tuple[Group, ...]
    """The six slots."""
    deck_size: int
    discards: Counts
    ghost: Counts | None
    """The cards of the ghost; None except in the duel."""
    active_seat: int
    turn: int
    """The number of the turn, from 1."""
    snatched: Layer | None
    """The snatched layer that is being decided about."""
    victim: int | None
    """The seat that lost the snatched layer, or that draws after it."""
    cards_to_draw: int
    """The number of cards still to draw, the one being decided included."""


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
    """A card that was put into a slot of the display."""

    slot: int
    card: int


class Played(NamedTuple):
    """A layer was played; this is the first event of a turn."""

    seat: int
    layer: Layer


class Snatched(NamedTuple):
    """A top layer was snatched and is no longer on its owner's table."""

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
    """A seat drew once, from the deck or from a slot of the display."""

    seat: int
    slot: int | None
    """The slot of the display; None for the deck."""
    cards: Group
    """The card of the deck, or all cards of the slot."""


class DisplayRefilled(NamedTuple):
    """The display was refilled from the deck."""

    cards: tuple[SlotCard, ...]
    """The new cards, in drawing order."""


class GhostSnatched(NamedTuple):
    """A set of the duel's ghost went into the attacker's hand."""

    seat: int
    layer: Layer


class GhostRefilled(NamedTuple):
    """The duel's ghost was refilled."""

    ghost_cards: tuple[int, ...]
    """The cards that joined the ghost."""
    display_cards: tuple[SlotCard, ...]
    """The 13s and jokers, which go onto the display."""


class Passed(NamedTuple):
    """The active player declined the optional draw."""

    seat: int


class GameOver(NamedTuple):
    """The game is over."""

    termination: Termination
    scores: tuple[int, ...]
    """The points of each seat."""
    ranks: tuple[int, ...]
    """The rank of each seat by the rules; 1 is best, ties share a rank: 1-2-2-4 (ruling R15)."""


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
    """Return True when only the acting seat may see all of the event."""
    return type(event) is Drawn and event.slot is None


def redact(event: Event, seat: int) -> Event:
    """Return the event as `seat` may see it."""
    if is_private(event) and event.seat != seat:
        return Drawn(event.seat, None, (HIDDEN,))
    return event
