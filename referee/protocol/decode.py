"""Decode the messages of bots, which may have any content.

`parse_bot_message` and `parse_action` raise ValueError for bytes that they cannot understand. They do not
check whether an action is legal; `Game.apply` does.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from referee.pb import play_pb2, table_pb2
from referee.protocol.values import action_value
from referee.protocol.view_bytes import ONE_BYTE_LIMIT, memoize, number_field, prefix
from referee.records import Request
from referee.rules.actions import Action, DrawDisplay

_FIELDS = {name: field.number for name, field in play_pb2.Reply.DESCRIPTOR.fields_by_name.items()}
_game_prefix, _action_prefix = prefix(_FIELDS["game_id"]), prefix(_FIELDS["action"])
_decision_id = number_field(_FIELDS["decision_id"])
_reply_prefix = prefix(play_pb2.BotMessage.DESCRIPTOR.fields_by_name["replies"].number)


def parse_bot_message(data: bytes) -> play_pb2.BotMessage:
    """Parse a message of a bot. Raises ValueError when the bytes are not a `BotMessage`."""
    try:
        return play_pb2.BotMessage.FromString(data)
    except DecodeError as error:
        raise ValueError("the bytes are no linko.v1.BotMessage") from error


def find_lone_action(data: bytes, game_id: str, number: int) -> bytes | None:
    """Return the serialised action of a reply to decision `number` of the game `game_id`.

    `data` is a message of a bot. Usually it has one reply and nothing else. This function reads only such
    messages, three times as fast as `parse_bot_message`. The caller must pass the returned bytes to `parse_action`.

    Returns None if the message has anything besides one reply, replies to another decision, is longer than 129
    bytes, or is not encoded exactly as protobuf encodes it. After None the caller must use `parse_bot_message`.
    """
    expected = _game(game_id) + _decision_id(number)
    size = len(data) - 2  # the prefixes of the reply and of its action have two bytes each
    action_size = size - len(expected) - 2
    if action_size < 0 or size >= ONE_BYTE_LIMIT:
        return None
    start = _reply_prefix(size) + expected + _action_prefix(action_size)
    return data[len(start) :] if data.startswith(start) else None


@memoize(1 << 6)
def _game(game_id: str) -> bytes:
    encoded = game_id.encode()
    return _game_prefix(len(encoded)) + encoded


def _action(data: bytes) -> Action:
    try:
        message = table_pb2.Action.FromString(data)
    except DecodeError as error:
        raise ValueError("the bytes are no linko.v1.Action") from error
    return action_value(message)


_short_action = memoize(1 << 12)(_action)
"""`_action` with a memo. Bots send back the legal actions of their requests, so most bytes recur. The caller must
not pass long bytes, because a bot could fill the referee's memory with them."""


def parse_action(data: bytes, request: Request) -> Action:
    """Return the action in the bytes of a reply to `request`. It may be illegal.

    Slots of the display can have equal cards. The legal actions then have only the draw from the leftmost of
    the slots with equal cards (ruling R8 in `referee/rules/README.md`). If the bot draws from another of these
    slots, the draw from the leftmost one is returned. Raises ValueError when the bytes name no action.
    """
    action = _short_action(data) if len(data) < ONE_BYTE_LIMIT else _action(data)
    if isinstance(action, DrawDisplay):
        display, slot = request.view.display, action.slot
        cards = display[slot] if slot < len(display) else ()
        return DrawDisplay(display.index(cards) if cards else slot, cards)
    return action
