"""What bots say, read with distrust. Whatever cannot be understood is a ValueError."""

from __future__ import annotations

from functools import lru_cache

from google.protobuf.message import DecodeError

from referee.pb import play_pb2, table_pb2
from referee.player import Ask
from referee.protocol.messages import action_value
from referee.protocol.wire import SMALL, head, number_field
from referee.rules.actions import Action, DrawDisplay

_CACHED = 1 << 12
"""Bounded, since bots choose what they send."""
_FIELDS = {name: field.number for name, field in play_pb2.Reply.DESCRIPTOR.fields_by_name.items()}
_GAME_ID, _DECISION_ID = _FIELDS["game_id"], _FIELDS["decision_id"]
_REPLIES_FIELD = play_pb2.BotMessage.DESCRIPTOR.fields_by_name["replies"].number
_REPLIES = [head(_REPLIES_FIELD, length) for length in range(SMALL)]
"""What stands before a reply, by its length; two bytes, as below."""
_ACTIONS = [head(_FIELDS["action"], length) for length in range(SMALL)]


def bot_message(data: bytes) -> play_pb2.BotMessage:
    """Parse a message from a bot. Raises ValueError when the bytes are no such message."""
    try:
        return play_pb2.BotMessage.FromString(data)
    except DecodeError as error:
        raise ValueError("the bytes are no linko.v1.BotMessage") from error


def lone_action(data: bytes, game_id: str, number: int) -> bytes | None:
    """The action, still serialised, of a message that is a reply to a decision and nothing else.

    None for any other message, and for one that is written otherwise than protobuf writes it: `bot_message`
    reads them all, but takes three times as long, in code that is not in the cache. The bytes of the action
    can be anything.
    """
    question = _game(game_id) + number_field(_DECISION_ID, number)
    size = len(data) - 2
    action_size = size - len(question) - 2
    if action_size < 0 or size >= SMALL:
        return None
    before = _REPLIES[size] + question + _ACTIONS[action_size]
    return data[len(before) :] if data.startswith(before) else None


@lru_cache(_CACHED)
def _game(game_id: str) -> bytes:
    written = game_id.encode()
    return head(_GAME_ID, len(written)) + written


@lru_cache(_CACHED)
def _action(data: bytes) -> Action:
    """An action from its bytes: bots echo what they are offered, so few are met for the first time."""
    try:
        message = table_pb2.Action.FromString(data)
    except DecodeError as error:
        raise ValueError("the bytes are no linko.v1.Action") from error
    return action_value(message)


def action(written: bytes, ask: Ask) -> Action:
    """The action that a bot names in answer to an ask, from its bytes. It need not be legal.

    A slot of the display that holds the same cards as one further left means that one (ruling R8).
    Raises ValueError when the bytes name no action.
    """
    chosen = _action(written)
    if isinstance(chosen, DrawDisplay):
        display, slot = ask.view.display, chosen.slot
        cards = display[slot] if slot < len(display) else ()
        return DrawDisplay(display.index(cards) if cards else slot, cards)
    return chosen
