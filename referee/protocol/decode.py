"""What bots say, read with distrust. Whatever cannot be understood is a ValueError."""

from __future__ import annotations

from functools import lru_cache

from google.protobuf.message import DecodeError

from referee.pb import play_pb2, table_pb2
from referee.player import Ask
from referee.protocol.messages import action_value
from referee.rules.actions import Action, DrawDisplay

_CACHED = 1 << 12
"""Bounded, since bots choose what they send."""


def bot_message(data: bytes) -> play_pb2.BotMessage:
    """Parse a message from a bot. Raises ValueError when the bytes are no such message."""
    try:
        return play_pb2.BotMessage.FromString(data)
    except DecodeError as error:
        raise ValueError("the bytes are no linko.v1.BotMessage") from error


@lru_cache(_CACHED)
def _action(data: bytes) -> Action:
    """An action from its bytes: bots echo what they are offered, so few are met for the first time."""
    return action_value(table_pb2.Action.FromString(data))


def action(message: table_pb2.Action, ask: Ask) -> Action:
    """The action that a bot names in answer to an ask. It need not be legal.

    A slot of the display that holds the same cards as one further left means that one (ruling R8).
    Raises ValueError when the message names no action.
    """
    chosen = _action(message.SerializeToString())
    if isinstance(chosen, DrawDisplay):
        display, slot = ask.view.display, chosen.slot
        cards = display[slot] if slot < len(display) else ()
        return DrawDisplay(display.index(cards) if cards else slot, cards)
    return chosen
