"""Who decides when a bot cannot: fixed, deterministic, simple and fit for play.

It is documented for bot authors in `proto/README.md`, and `referee verify` holds every stand-in move
of a record to it.
"""

from __future__ import annotations

from referee.rules.actions import Action, Choice, Decision, DecisionKind, Play
from referee.rules.cards import Layer

_ANSWERS = {
    DecisionKind.TAKE_OR_LEAVE: Choice.LEAVE,
    DecisionKind.RECLAIM_OR_DISCARD: Choice.DISCARD,
    DecisionKind.OPTIONAL_DRAW: Choice.PASS,
}


def stand_in(decision: Decision) -> Action:
    """The stand-in's action for a decision.

    It plays the layer with the most cards, of those the one with the fewest jokers, of those the
    lowest; leaves what it snatches, discards what is left to it, and passes. It draws from the deck,
    or from the leftmost slot when there is none, and snatches the ghost's lowest set. (It discards
    because two that reclaim for ever need never end a game: ruling R12.)
    """
    if decision.kind is DecisionKind.PLAY:
        return max(decision.legal, key=_strength)
    return _ANSWERS.get(decision.kind, decision.legal[0])


def _strength(action: Action) -> tuple[int, int, int]:
    assert isinstance(action, Play)  # noqa: S101 - a play decision lists plays
    layer: Layer = action.layer
    return layer.size, -layer.jokers, -layer.value
