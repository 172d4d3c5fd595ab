"""What a bot is asked and what it can answer, and the way of answers to and from messages.

Echoing one of `request.legal` is always right. A bot may also make its own action; an illegal one is
a strike.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from referee.pb import table_pb2 as pb
from referee.sdk.cards import Group, Layer, layer_of


class DecisionKind(Enum):
    """What you are asked."""

    PLAY = pb.DECISION_KIND_PLAY
    """Play a layer from the hand. Answer: `Play`."""
    TAKE_OR_LEAVE = pb.DECISION_KIND_TAKE_OR_LEAVE
    """You snatched a layer. Answer: `Choice.TAKE` or `Choice.LEAVE`."""
    RECLAIM_OR_DISCARD = pb.DECISION_KIND_RECLAIM_OR_DISCARD
    """The attacker left you your layer. Answer: `Choice.RECLAIM` or `Choice.DISCARD`."""
    DRAW = pb.DECISION_KIND_DRAW
    """Draw one card. Answer: `Choice.DRAW_DECK` or `DrawDisplay`."""
    OPTIONAL_DRAW = pb.DECISION_KIND_OPTIONAL_DRAW
    """Draw one card or not. Answer: `Choice.PASS`, `Choice.DRAW_DECK` or `DrawDisplay`."""
    GHOST_SET = pb.DECISION_KIND_GHOST_SET
    """Several of the ghost's sets can be snatched (duel). Answer: `SnatchGhost`."""


class Choice(Enum):
    """An answer that needs no number."""

    TAKE = pb.CHOICE_TAKE
    """The snatched layer goes into your hand; its owner draws as many cards."""
    LEAVE = pb.CHOICE_LEAVE
    """Its owner decides what becomes of the snatched layer."""
    RECLAIM = pb.CHOICE_RECLAIM
    """Your layer goes back into your hand; you draw nothing."""
    DISCARD = pb.CHOICE_DISCARD
    """Your layer goes to the discard pile; you draw as many cards."""
    DRAW_DECK = pb.CHOICE_DRAW_DECK
    """Draw the top card of the deck."""
    PASS = pb.CHOICE_PASS
    """Do without the optional draw."""


class Play(NamedTuple):
    """Play a layer from the hand."""

    layer: Layer


class DrawDisplay(NamedTuple):
    """Draw what lies in a slot of the display."""

    slot: int
    """0 to 5."""
    cards: Group = ()
    """What lies there. An answer may leave it out."""


class SnatchGhost(NamedTuple):
    """Snatch the ghost's set of this value (duel)."""

    value: int


Action = Play | DrawDisplay | SnatchGhost | Choice


def action_of(message: pb.Action) -> Action:
    """A message as an action."""
    match message.WhichOneof("kind"):
        case "play":
            return Play(layer_of(message.play))
        case "choice":
            return Choice(message.choice)
        case "draw_display":
            return DrawDisplay(message.draw_display.slot, tuple(message.draw_display.cards))
        case _:
            return SnatchGhost(message.ghost_value)


def message_of(action: Action | pb.Action) -> pb.Action:
    """An action as a message. Raises TypeError for what is no action."""
    match action:
        case pb.Action():
            return action
        case Play((value, naturals, jokers)):
            return pb.Action(play=pb.Layer(value=value, naturals=naturals, jokers=jokers))
        case Choice():
            return pb.Action(choice=action.value)
        case DrawDisplay(slot, cards):
            return pb.Action(draw_display=pb.DrawDisplay(slot=slot, cards=cards))
        case SnatchGhost(value):
            return pb.Action(ghost_value=value)
        case _:
            raise TypeError(f"the bot answered {action!r}, which is no action")
