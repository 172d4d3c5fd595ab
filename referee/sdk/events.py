"""What happens in a game, one named tuple a kind, in the order of the rules.

You see everything but the cards that other seats draw from the deck: those are `HIDDEN`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

from referee.pb import table_pb2 as pb
from referee.sdk.cards import Group, Layer, layer_of


class Termination(Enum):
    """Why a game ended."""

    OUT = pb.TERMINATION_OUT
    """A player played its last card."""
    EXHAUSTED = pb.TERMINATION_EXHAUSTED
    """The deck and the display are both empty."""
    DECK_EMPTY = pb.TERMINATION_DECK_EMPTY
    """The deck is empty, in a game that ends then."""
    TURN_LIMIT = pb.TERMINATION_TURN_LIMIT
    """The ruleset's `max_turns` were played."""


class SlotCard(NamedTuple):
    """A card put into a slot of the display."""

    slot: int
    card: int


class Played(NamedTuple):
    """A layer was played; it begins a turn."""

    seat: int
    layer: Layer


class Snatched(NamedTuple):
    """A top layer was snatched and left its owner's table; what becomes of it follows."""

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
    """One draw: from the deck (`slot` is None), or what lay in a slot of the display."""

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
    """Rank of each seat by the rules: 1 is best, equal ranks are shared."""


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


def events_of(messages: Iterable[pb.Event]) -> tuple[Event, ...]:
    """Messages as events. One of a kind that this kit does not know is left out."""
    kinds = ((message.WhichOneof("kind"), message) for message in messages)
    return tuple(_DECODERS[kind](message) for kind, message in kinds if kind is not None)


def _slot_cards(messages: Iterable[pb.SlotCard]) -> tuple[SlotCard, ...]:
    return tuple(SlotCard(message.slot, message.card) for message in messages)


def _drawn(message: pb.Event.Drawn) -> Drawn:
    slot = message.slot if message.HasField("slot") else None
    return Drawn(message.seat, slot, tuple(message.cards))


def _snatched(message: pb.Event.Snatched) -> Snatched:
    return Snatched(message.attacker, message.victim, layer_of(message.layer))


def _ghost_refilled(message: pb.Event.GhostRefilled) -> GhostRefilled:
    return GhostRefilled(tuple(message.ghost_cards), _slot_cards(message.display_cards))


def _game_over(message: pb.Event.GameOver) -> GameOver:
    return GameOver(Termination(message.termination), tuple(message.scores), tuple(message.ranks))


_DECODERS: dict[str, Callable[[pb.Event], Event]] = {
    "played": lambda m: Played(m.played.seat, layer_of(m.played.layer)),
    "snatched": lambda m: _snatched(m.snatched),
    "taken": lambda m: Taken(m.taken.seat, layer_of(m.taken.layer)),
    "left": lambda m: Left(m.left.seat),
    "reclaimed": lambda m: Reclaimed(m.reclaimed.seat, layer_of(m.reclaimed.layer)),
    "discarded": lambda m: Discarded(m.discarded.seat, layer_of(m.discarded.layer)),
    "drawn": lambda m: _drawn(m.drawn),
    "display_refilled": lambda m: DisplayRefilled(_slot_cards(m.display_refilled.cards)),
    "ghost_snatched": lambda m: GhostSnatched(
        m.ghost_snatched.seat, layer_of(m.ghost_snatched.layer)
    ),
    "ghost_refilled": lambda m: _ghost_refilled(m.ghost_refilled),
    "passed": lambda m: Passed(m.passed.seat),
    "game_over": lambda m: _game_over(m.game_over),
}
