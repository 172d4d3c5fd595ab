"""Define the view of a seat: everything that it may know of a game at one moment."""

from __future__ import annotations

from typing import NamedTuple

from referee.rules.cards import Counts, Group, Layer


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
