"""Define what a seat may know of a game: its view of the table, and the events that changed the table.

A view is made for one seat. An event is made once for all seats and has all details. `redact` then hides
the only detail that a seat may not see: the card that another seat drew from the deck. Ruling R13 in
`referee/rules/README.md` says what is public.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeGuard

from referee.rules.ruleset import HIDDEN, Counts, Group, Layer


class View(NamedTuple):
    """A game as one seat sees it (ruling R13).

    All fields are immutable. The layers of each seat are one object, and so are the display, the discards and the ghost.
    Until a move changes one of these parts, all views contain the same object for it. `ViewWriter` in
    `protocol/view_bytes.py` then recognises the object and does not encode it again.
    """

    seat: int
    """The seat that this view is for."""
    hand: Counts
    """The hand of this seat."""
    hand_sizes: tuple[int, ...]
    """The number of cards in the hand of each seat."""
    tables: tuple[tuple[Layer, ...], ...]
    """The layers of each seat, oldest first."""
    display: tuple[Group, ...]
    """The cards in each of the six slots."""
    deck_size: int
    discards: Counts
    ghost: Counts | None
    """The cards of the ghost; None except in the duel."""
    active_seat: int
    """The seat whose turn it is."""
    turn: int
    """The number of the turn, from 1."""
    snatched: Layer | None
    """The snatched layer while a seat decides about it; None at all other times."""
    victim: int | None
    """The seat that lost the snatched layer, until this seat has made all its draws or has reclaimed the layer. It is None at
    all other times. If a draw of this seat ended the game, the field stays set."""
    cards_to_draw: int
    """How many draws are left, including the current one. It is 1 in an optional draw, and 0 if nobody draws. After the
    game it is the number of draws that were not made because the game ended (ruling R5)."""

    @property
    def players(self) -> int:
        """The number of seats."""
        return len(self.hand_sizes)


class Termination(Enum):
    """Why a game ended."""

    OUT = "out"
    """A player played its last card."""
    EXHAUSTED = "exhausted"
    """The deck and the display are both empty."""
    DECK_EMPTY = "deck-empty"
    """The deck is empty, in a game whose ruleset has `EndOn.DECK`."""
    TURN_LIMIT = "turn-limit"
    """The game has had as many turns as the ruleset's `max_turns` (ruling R12)."""


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
    """The attacker."""
    layer: Layer


class Left(NamedTuple):
    """The attacker let the victim decide about the snatched layer."""

    seat: int
    """The attacker."""


class Reclaimed(NamedTuple):
    """The victim took the snatched layer back into its hand."""

    seat: int
    """The victim."""
    layer: Layer


class Discarded(NamedTuple):
    """The victim put the snatched layer on the discard pile."""

    seat: int
    """The victim."""
    layer: Layer


class Drawn(NamedTuple):
    """A seat drew once, from the deck or from a slot of the display."""

    seat: int
    slot: int | None
    """The slot of the display; None for the deck."""
    cards: Group
    """The card from the deck, or all cards of the slot."""


class DisplayRefilled(NamedTuple):
    """The empty slots of the display were refilled from the deck."""

    cards: tuple[SlotCard, ...]
    """The new cards, in drawing order."""


class GhostSnatched(NamedTuple):
    """The attacker snatched all cards of one value from the duel's ghost."""

    seat: int
    """The attacker."""
    layer: Layer


class GhostRefilled(NamedTuple):
    """The duel's ghost was refilled."""

    ghost_cards: tuple[int, ...]
    """The cards that joined the ghost."""
    display_cards: tuple[SlotCard, ...]
    """The 13s and jokers that were turned up for the ghost, but were put onto the display."""


class GhostDeclined(NamedTuple):
    """The active player could have snatched from the duel's ghost, and passed (ruling R17)."""

    seat: int


class Passed(NamedTuple):
    """The active player passed instead of making the optional draw."""

    seat: int


class GameOver(NamedTuple):
    """The game is over."""

    termination: Termination
    scores: tuple[int, ...]
    """The points of each seat."""
    ranks: tuple[int, ...]
    """The rank of each seat, 1 for the best. Equal seats share a rank, as in 1-2-2-4 (ruling R15)."""


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
    | GhostDeclined
    | Passed
    | GameOver
)


def is_private(event: Event) -> TypeGuard[Drawn]:
    """Return True for a draw from the deck, because only the seat that drew may see the card."""
    return type(event) is Drawn and event.slot is None


def redact(event: Event, seat: int) -> Event:
    """Return the event as `seat` may see it."""
    if is_private(event) and event.seat != seat:
        return Drawn(event.seat, None, (HIDDEN,))
    return event
