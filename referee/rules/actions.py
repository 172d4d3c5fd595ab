"""Define the decisions of the game, the actions that can be chosen, and the legal plays of a hand.

Actions are named tuples, because Python compares and hashes tuples in C. Every turn builds and searches
a list of up to forty plays. Each kind of action has a tuple of another shape, so actions of different
kinds are never equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import chain
from operator import getitem
from typing import NamedTuple

from referee.rules.cards import COPIES, JOKER, JOKERS, Group, Layer


class Choice(Enum):
    """An action without parameters."""

    TAKE = "take"
    """The attacker takes the snatched layer into its hand; the owner draws as many cards."""
    LEAVE = "leave"
    """The attacker lets the owner decide about the snatched layer."""
    RECLAIM = "reclaim"
    """The owner takes its layer back into its hand and draws nothing."""
    DISCARD = "discard"
    """The owner puts its layer on the discard pile and draws as many cards."""
    DRAW_DECK = "draw-deck"
    """Draw the top card of the deck."""
    PASS = "pass"  # noqa: S105 - no password
    """Decline the optional draw."""

    __hash__ = object.__hash__  # in C; the hash of Enum is a slower Python function


class Play(NamedTuple):
    """Play a layer from the hand (turn, step 1)."""

    layer: Layer


class DrawDisplay(NamedTuple):
    """Draw the cards in a slot of the display.

    Of several slots with the same cards only the leftmost one is legal (ruling R8).
    """

    slot: int
    """The number of the slot, from 0 to 5."""
    cards: Group = ()
    """The cards in the slot. A bot may leave them out of its reply."""


class SnatchGhost(NamedTuple):
    """Snatch the ghost's set of this value (duel)."""

    value: int


Action = Play | DrawDisplay | SnatchGhost | Choice


class DecisionKind(Enum):
    """What a seat has to decide."""

    PLAY = "play"
    """Which layer to play from the hand: a `Play`."""
    TAKE_OR_LEAVE = "take-or-leave"
    """What to do with a snatched layer: `Choice.TAKE` or `Choice.LEAVE`."""
    RECLAIM_OR_DISCARD = "reclaim-or-discard"
    """What to do with the own layer that was left: `Choice.RECLAIM` or `Choice.DISCARD`."""
    DRAW = "draw"
    """Where to draw one card: `Choice.DRAW_DECK` or a `DrawDisplay`."""
    OPTIONAL_DRAW = "optional-draw"
    """Whether and where to draw one card: `Choice.PASS`, `Choice.DRAW_DECK` or a `DrawDisplay`."""
    GHOST_SET = "ghost-set"
    """Which of the ghost's sets to snatch (duel): a `SnatchGhost`."""

    __hash__ = object.__hash__  # as above


@dataclass(slots=True)
class Decision:
    """A decision that one seat has to take.

    Treat it as immutable. It is not frozen, because creating a frozen object takes three times as long,
    and the referee creates one for every decision. The same holds for requests and replies.
    """

    seat: int
    kind: DecisionKind
    legal: tuple[Action, ...]
    """Every legal action, each once."""


TAKE_OR_LEAVE = (Choice.TAKE, Choice.LEAVE)
RECLAIM_OR_DISCARD = (Choice.RECLAIM, Choice.DISCARD)


def _plays_of(value: int, held: int, jokers: int) -> tuple[Play, ...]:
    return tuple(
        Play(Layer(value, naturals, added))
        for naturals in range(1, held + 1)
        for added in range(jokers + 1)
    )


@cache
def _plays() -> list[list[list[tuple[Play, ...]]]]:
    """Return a table of legal plays, indexed by jokers held, card, and copies of the card held.

    The card `JOKER` has the plays of jokers alone. The table is built at the first call.
    """
    jokers_alone = [
        tuple(Play(Layer(JOKER, 0, size)) for size in range(1, held + 1))
        for held in range(JOKERS + 1)
    ]
    return [
        [
            *(
                [_plays_of(card, held, jokers) for held in range(COPIES + 1)]
                for card in range(JOKER)
            ),
            jokers_alone,
        ]
        for jokers in range(JOKERS + 1)
    ]


def legal_plays(hand: Sequence[int]) -> tuple[Play, ...]:
    """Return every legal play of a hand, which is 15 counts (turn, step 1; ruling R1).

    The plays are ordered by value, naturals and jokers; plays of jokers alone come last.
    """
    return tuple(chain.from_iterable(map(getitem, _plays()[hand[JOKER]], hand)))
