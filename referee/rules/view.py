"""What one seat may know of a game at one moment, and nothing else."""

from __future__ import annotations

from typing import NamedTuple

from referee.rules.cards import Counts, Group, Layer


class View(NamedTuple):
    """A game as one seat sees it (ruling R13).

    Its parts are immutable and shared with the game's state: a part that did not change since the
    last view is the same object, so that an encoder can keep what it built from it.
    """

    seat: int
    hand: Counts
    hand_sizes: tuple[int, ...]
    tables: tuple[tuple[Layer, ...], ...]
    """Each seat's layers, oldest first."""
    display: tuple[Group, ...]
    """Six slots."""
    deck_size: int
    discards: Counts
    ghost: Counts | None
    """None but in the duel."""
    active_seat: int
    turn: int
    """From 1."""
    snatched: Layer | None
    """The layer whose fate is being decided."""
    victim: int | None
    """Whose layer was snatched, or who draws after a snatch."""
    cards_to_draw: int
    """Still owed, the one being decided included."""
