"""Choose the actions of the stand-in, which decides instead of a bot after a fault.

The policy of the stand-in is fixed and deterministic. `proto/README.md` documents it for bot authors, and
`referee verify` checks every stand-in move of a record against it.
"""

from __future__ import annotations

from referee.rules.actions import Action, Choice, Decision, DecisionKind, Play

_CHOICES = {
    DecisionKind.TAKE_OR_LEAVE: Choice.LEAVE,
    DecisionKind.RECLAIM_OR_DISCARD: Choice.DISCARD,
    DecisionKind.OPTIONAL_DRAW: Choice.PASS,
}


def stand_in_action(decision: Decision) -> Action:
    """Return the stand-in's action for a decision.

    It plays the largest layer; of equally large ones the one with the fewest jokers, then the one of
    the lowest value. It leaves the layer that it snatches, discards its own layer when it may reclaim
    it, and passes an optional draw. It draws from the deck, or from the leftmost filled slot of the
    display when the deck is empty, and snatches the ghost's lowest set.

    It discards, because a game of two players that always reclaim might never end (ruling R12).
    """
    if decision.kind is DecisionKind.PLAY:
        return max(decision.legal, key=_preference)
    return _CHOICES.get(decision.kind, decision.legal[0])


def _preference(action: Action) -> tuple[int, int, int]:
    assert isinstance(action, Play)  # noqa: S101 - a play decision lists only plays
    layer = action.layer
    return layer.size, -layer.jokers, -layer.value
