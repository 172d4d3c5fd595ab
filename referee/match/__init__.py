"""Play one game between players, and replay its record.

A player is anything that decides for a seat (the protocol `Player` in `referee/records.py`). Processes and
streams of bots belong to `referee.bots`.

This module chooses the actions of the stand-in, which decides instead of a bot after a fault. The policy of the stand-in
is fixed and deterministic. `proto/README.md` documents it for bot authors, and `referee verify` checks every stand-in
move of a record against it.
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

    The stand-in plays the largest layer. Of several largest layers it plays the one with the fewest jokers. If
    several have equally few jokers, it plays the one with the lowest value. It leaves a snatched layer to the
    victim. As the victim it discards the layer. It passes an optional draw. It draws from the deck. If the
    deck is empty, it draws from the leftmost filled slot. From the ghost it snatches the lowest value.

    It never reclaims, because two players that always leave and reclaim can go on until `max_turns`
    (ruling R12 in `referee/rules/README.md`).
    """
    if decision.kind is DecisionKind.PLAY:
        return max(decision.legal, key=_preference)
    return _CHOICES.get(decision.kind, decision.legal[0])


def _preference(action: Action) -> tuple[int, int, int]:
    assert isinstance(action, Play)  # noqa: S101 - a play decision lists only plays
    layer = action.layer
    return layer.size, -layer.jokers, -layer.value
