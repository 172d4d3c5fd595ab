"""What a player can be asked and what it can answer.

Actions are named tuples, compared and hashed in C: a list of forty legal plays is built and searched
at every turn. No two kinds have tuples of the same shape, so actions of different kinds are never
equal.
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
    """An answer that needs no number."""

    TAKE = "take"
    LEAVE = "leave"
    RECLAIM = "reclaim"
    DISCARD = "discard"
    DRAW_DECK = "draw-deck"
    PASS = "pass"  # noqa: S105 - no password

    __hash__ = object.__hash__  # in C; that of Enum is a function of Python


class Play(NamedTuple):
    """Play a layer from the hand (turn, step 1)."""

    layer: Layer


class DrawDisplay(NamedTuple):
    """Draw the cards in a slot of the display; of equal slots, the leftmost one (ruling R8)."""

    slot: int
    """From 0 to 5."""
    cards: Group = ()
    """The cards in the slot. A bot may leave them out of its reply."""


class SnatchGhost(NamedTuple):
    """Snatch the ghost's set of this value (duel)."""

    value: int


Action = Play | DrawDisplay | SnatchGhost | Choice


class DecisionKind(Enum):
    """What a seat is asked."""

    PLAY = "play"
    TAKE_OR_LEAVE = "take-or-leave"
    RECLAIM_OR_DISCARD = "reclaim-or-discard"
    DRAW = "draw"
    OPTIONAL_DRAW = "optional-draw"
    GHOST_SET = "ghost-set"

    __hash__ = object.__hash__  # as above


@dataclass(slots=True)
class Decision:
    """A question put to one seat, with every answer that is legal, each once.

    Nobody changes one. It is not frozen, and so are other values that are made at every decision: it
    would take three times as long to make one.
    """

    seat: int
    kind: DecisionKind
    legal: tuple[Action, ...]


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
    """By jokers held, card, and how many of it are held; `JOKER`: jokers alone. Made when first needed."""
    alone = [
        tuple(Play(Layer(JOKER, 0, size)) for size in range(1, held + 1))
        for held in range(JOKERS + 1)
    ]
    return [
        [
            *(
                [_plays_of(card, held, jokers) for held in range(COPIES + 1)]
                for card in range(JOKER)
            ),
            alone,
        ]
        for jokers in range(JOKERS + 1)
    ]


def legal_plays(hand: Sequence[int]) -> tuple[Play, ...]:
    """Every layer that can be played from a hand of 15 counts (turn, step 1; ruling R1).

    By value, then naturals, then jokers added; jokers alone last.
    """
    return tuple(chain.from_iterable(map(getitem, _plays()[hand[JOKER]], hand)))
