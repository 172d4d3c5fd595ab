"""What bots say, read with distrust. Whatever cannot be understood is a ValueError."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from referee.pb import play_pb2, table_pb2
from referee.protocol.values import action_value
from referee.protocol.view_bytes import SMALL, head, memo, number_field
from referee.records import Request
from referee.rules.actions import Action, DrawDisplay

_FIELDS = {name: field.number for name, field in play_pb2.Reply.DESCRIPTOR.fields_by_name.items()}
_game_head, _action_head = head(_FIELDS["game_id"]), head(_FIELDS["action"])
_decision_id = number_field(_FIELDS["decision_id"])
_reply = head(play_pb2.BotMessage.DESCRIPTOR.fields_by_name["replies"].number)


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
    question = _game(game_id) + _decision_id(number)
    size = len(data) - 2  # behind a head of two bytes, as the action is
    action_size = size - len(question) - 2
    if action_size < 0 or size >= SMALL:
        return None
    before = _reply(size) + question + _action_head(action_size)
    return data[len(before) :] if data.startswith(before) else None


@memo(1 << 6)
def _game(game_id: str) -> bytes:
    written = game_id.encode()
    return _game_head(len(written)) + written


def _action(data: bytes) -> Action:
    try:
        message = table_pb2.Action.FromString(data)
    except DecodeError as error:
        raise ValueError("the bytes are no linko.v1.Action") from error
    return action_value(message)


_short_action = memo(1 << 12)(_action)
"""Bots echo what they are offered, so few are met for the first time. Not for what is long: that is not
an echo, and to keep thousands of these would be a way to fill the referee's memory."""


def action(written: bytes, request: Request) -> Action:
    """The action that a bot names in answer to a request, from its bytes. It need not be legal.

    A slot of the display that holds the same cards as one further left means that one (ruling R8).
    Raises ValueError when the bytes name no action.
    """
    chosen = _short_action(written) if len(written) < SMALL else _action(written)
    if isinstance(chosen, DrawDisplay):
        display, slot = request.view.display, chosen.slot
        cards = display[slot] if slot < len(display) else ()
        return DrawDisplay(display.index(cards) if cards else slot, cards)
    return chosen
