"""Define the decisions of the game, the actions that can be chosen, and the legal plays of a hand.

Most actions are named tuples, because Python compares and hashes tuples in C. This speed matters, because every
turn builds and searches a list of some dozens of plays. Named tuples of different types are equal if their items
are equal. The items of `Play`, `DrawDisplay` and `SnatchGhost` differ in number or type, so two actions of
different types are never equal.

Section 2 of `proto/README.md` describes steps 1 to 4 of a turn. `referee/rules/README.md` has the rulings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import chain
from operator import getitem
from typing import NamedTuple

from referee.rules.ruleset import COPIES, JOKER, JOKERS, Group, Layer, card_name


class Choice(Enum):
    """An action without parameters."""

    TAKE = "take"
    """The attacker takes the snatched layer. The victim then draws once for each card of the layer."""
    LEAVE = "leave"
    """The attacker lets the victim decide about the snatched layer."""
    RECLAIM = "reclaim"
    """The victim takes its layer back into its hand and draws nothing."""
    DISCARD = "discard"
    """The victim puts its layer on the discard pile, and then draws once for each card of the layer."""
    DRAW_DECK = "draw-deck"
    """Draw the top card of the deck."""
    PASS = "pass"  # noqa: S105 - no password
    """Make no optional draw, or decline to snatch from the ghost where that is optional (ruling R17)."""

    __hash__ = object.__hash__  # written in C; `Enum.__hash__` is slower


class Play(NamedTuple):
    """Play a layer from the hand (step 1 of a turn)."""

    layer: Layer


class DrawDisplay(NamedTuple):
    """Draw the cards in a slot of the display.

    If several slots have the same cards, only the leftmost of these slots is legal (ruling R8).
    """

    slot: int
    """The number of the slot, from 0 to 5."""
    cards: Group = ()
    """The cards in the slot. A bot may omit the cards, because the slot is enough."""


class SnatchGhost(NamedTuple):
    """Snatch a set of the ghost (only in a duel). A set is all the ghost's cards of one value."""

    value: int


Action = Play | DrawDisplay | SnatchGhost | Choice


def action_text(action: Action) -> str:
    """Return an action as text with the field names of the schema, such as `play {value 7, naturals 2, jokers 1}`."""
    match action:
        case Choice():
            return f"CHOICE_{action.name}"
        case Play(layer):
            return f"play {{value {layer.value}, naturals {layer.naturals}, jokers {layer.jokers}}}"
        case DrawDisplay(slot, cards):
            cards_text = "+".join(map(card_name, cards)) or "empty"
            return f"draw_display {{slot {slot}}} ({cards_text})"
        case _:
            return f"ghost_value {action.value}"


class DecisionKind(Enum):
    """What a seat has to decide."""

    PLAY = "play"
    """Which layer to play from the hand: a `Play`."""
    TAKE_OR_LEAVE = "take-or-leave"
    """What to do with a snatched layer: `Choice.TAKE` or `Choice.LEAVE`."""
    RECLAIM_OR_DISCARD = "reclaim-or-discard"
    """What the victim does with the layer after `LEAVE`: `Choice.RECLAIM` or `Choice.DISCARD`."""
    DRAW = "draw"
    """Where to draw: `Choice.DRAW_DECK` or a `DrawDisplay`."""
    OPTIONAL_DRAW = "optional-draw"
    """Whether and where to draw: `Choice.PASS`, `Choice.DRAW_DECK` or a `DrawDisplay`."""
    GHOST_SET = "ghost-set"
    """Which set of the ghost to snatch (only in a duel): a `SnatchGhost`. With `GhostSnatch.OPTIONAL`, `Choice.PASS` is
    the last legal action."""

    __hash__ = object.__hash__  # as in `Choice`


@dataclass(slots=True)
class Decision:
    """A decision that one seat has to take.

    Treat it as immutable. The class is not frozen, because the referee creates very many decisions, and
    creating a frozen object takes three times as long. `Request` and `Reply` in `referee/records.py` are
    not frozen for the same reason.
    """

    seat: int
    kind: DecisionKind
    legal: tuple[Action, ...]
    """All legal actions, without duplicates. Only a `PLAY` can have a single one (ruling R7)."""


TAKE_OR_LEAVE = (Choice.TAKE, Choice.LEAVE)
RECLAIM_OR_DISCARD = (Choice.RECLAIM, Choice.DISCARD)


def _plays_of(value: int, held: int, jokers: int) -> tuple[Play, ...]:
    return tuple(
        Play(Layer(value, naturals, added))
        for naturals in range(1, held + 1)
        for added in range(jokers + 1)
    )


@cache
def plays_by_count() -> list[list[list[tuple[Play, ...]]]]:
    """Return a nested list of legal plays, which is built at the first call.

    `plays_by_count()[jokers][card][held]` has the plays of the value `card`, for a hand with `held` copies of this
    card and `jokers` jokers. For the card `JOKER` these are the plays of jokers alone.
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
    """Return every legal play of a hand (step 1 of a turn, ruling R1).

    `hand` has 15 counts, indexed by card. The plays are sorted by value, then by the number of naturals,
    then by the number of jokers. Plays of jokers alone come last.
    """
    return tuple(chain.from_iterable(map(getitem, plays_by_count()[hand[JOKER]], hand)))
