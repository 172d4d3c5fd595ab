"""Encode the messages that the referee sends to bots, and decode the messages of bots.

`RequestEncoder.encode`, `game_start`, `game_end` and `goodbye` return a serialised `RefereeMessage`. If the bytes
of several messages are concatenated, protobuf parses them as one message. The referee sends the requests of
several games in this way.

A request contains the whole view and every legal action, so it can be as long as a kilobyte. Building a request
as one protobuf object took longer than sending the request. Therefore each event and each action is serialised once,
and the bytes are used in many requests.

Messages of bots may have any content. `parse_bot_message` and `parse_action` raise ValueError for bytes that they cannot
understand. They do not check whether an action is legal; `Game.apply` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import call, getitem
from typing import get_args

from google.protobuf.message import DecodeError

from referee.clocks import Clocks
from referee.pb import play_pb2, table_pb2
from referee.protocol.values import (
    KINDS,
    action_message,
    action_value,
    event_message,
    ruleset_message,
)
from referee.protocol.view_bytes import ONE_BYTE_LIMIT, ViewWriter, memoize, number_field, prefix
from referee.records import Request
from referee.rules.actions import Action, DecisionKind, DrawDisplay, plays_by_count
from referee.rules.events import Event, View
from referee.rules.ruleset import JOKER, Ruleset

_request_prefix = prefix(play_pb2.RefereeMessage.REQUESTS_FIELD_NUMBER)
_decision_id = number_field(play_pb2.Request.DECISION_ID_FIELD_NUMBER)
_kind = number_field(play_pb2.Request.KIND_FIELD_NUMBER)
_view_prefix = prefix(play_pb2.Request.VIEW_FIELD_NUMBER)
_time_left = number_field(play_pb2.Request.TIME_LEFT_US_FIELD_NUMBER)
_bank_left = number_field(play_pb2.Request.BANK_LEFT_US_FIELD_NUMBER)
_last_elapsed = number_field(play_pb2.Request.LAST_ELAPSED_US_FIELD_NUMBER)
_start_prefix = prefix(play_pb2.RefereeMessage.GAME_STARTS_FIELD_NUMBER)
_first_view_prefix = prefix(play_pb2.GameStart.VIEW_FIELD_NUMBER)
_end_prefix = prefix(play_pb2.RefereeMessage.GAME_ENDS_FIELD_NUMBER)
_reply_game_prefix = prefix(play_pb2.Reply.GAME_ID_FIELD_NUMBER)
_reply_decision_id = number_field(play_pb2.Reply.DECISION_ID_FIELD_NUMBER)
_action_prefix = prefix(play_pb2.Reply.ACTION_FIELD_NUMBER)
_reply_prefix = prefix(play_pb2.BotMessage.REPLIES_FIELD_NUMBER)
_PLAY = DecisionKind.PLAY
"""A constant for speed: looking up an enum member takes as long as a function call."""


class RequestEncoder:
    """Encode the requests of one game, for all its seats."""

    def __init__(self, game_id: str) -> None:
        self._game_id = play_pb2.Request(game_id=game_id).SerializeToString()
        self._views = ViewWriter()

    def encode(self, request: Request) -> bytes:
        """Return one request as a serialised `RefereeMessage`."""
        decision, time = request.decision, request.time
        view = self._views.write(request.view)
        parts = [
            self._game_id,
            _decision_id(request.number),
            _kind(KINDS[decision.kind]),
            _time_left(time.limit_us),
            _last_elapsed(time.last_elapsed_us),
            _view_prefix(len(view)),
            view,
            *_EVENTS.parts(request.events),
        ]
        if time.bank_left_us:
            parts.append(_bank_left(time.bank_left_us))
        if decision.kind is _PLAY:
            hand = request.view.hand
            parts += map(getitem, _play_parts()[hand[JOKER]], hand)
        else:
            parts.append(_legal_part(decision.legal))
        body = b"".join(parts)
        return _request_prefix(len(body)) + body


def game_start(
    game_id: str,
    *,
    rules: Ruleset,
    view: View,
    clocks: Clocks,
    seed: int,
    names: Sequence[str],
    max_strikes: int,
) -> bytes:
    """Return the message that starts a game for one seat.

    `seed` is for the bot's random numbers. `names` has the bots' names, seat 0 first; `names` is empty if the
    tournament does not show names.
    """
    start = play_pb2.GameStart(
        game_id=game_id,
        ruleset=ruleset_message(rules),
        clocks=clocks_message(clocks),
        seed=seed,
        names=names,
        max_strikes=max_strikes,
    )
    first_view = ViewWriter().write(view)
    body = b"".join((start.SerializeToString(), _first_view_prefix(len(first_view)), first_view))
    return _start_prefix(len(body)) + body


def game_end(
    game_id: str, events: Sequence[Event], ranks: Sequence[int], reason: str, *, forfeited: bool
) -> bytes:
    """Return the message that ends a game for one seat.

    `reason` says why the seat forfeited; it is empty if the seat did not forfeit. A void game has no such message.
    """
    end = play_pb2.GameEnd(game_id=game_id, ranks=ranks, forfeited=forfeited, reason=reason)
    body = b"".join((end.SerializeToString(), *_FINAL_EVENTS.parts(events)))
    return _end_prefix(len(body)) + body


def goodbye(reason: str = "") -> bytes:
    """Return the last message to a bot. `reason` says what went wrong; `reason` is empty if nothing went wrong."""
    message = play_pb2.RefereeMessage(goodbye=play_pb2.Goodbye(reason=reason))
    return message.SerializeToString()


def clocks_message(clocks: Clocks) -> play_pb2.Clocks:
    """Return clocks as a message."""
    return play_pb2.Clocks(
        start_up_us=clocks.start_up_us,
        game_start_us=clocks.game_start_us,
        decision_us=clocks.decision_us,
        bank_us=clocks.bank_us or 0,
        increment_us=clocks.increment_us,
    )


# A part is a serialised message that has only some items of one list, for example two legal actions of a request.
# If a part follows the bytes of a request, protobuf appends the items of the part to the list of the request.


class _EventParts:
    """Serialise events as items of a list.

    Args:
        field: the number of the list's field.
    """

    def __init__(self, field: int) -> None:
        self._prefix = prefix(field)
        self._parts: dict[type[Event], Callable[[Event], bytes]] = {
            kind: memoize(1 << 10)(self._part) for kind in get_args(Event)
        }
        """One memo for each type of event, because events of two types can be equal as tuples."""

    def parts(self, events: Sequence[Event]) -> Iterable[bytes]:
        """Return the bytes of each event. `map` is faster than a loop, and every request needs this function."""
        return map(call, map(self._parts.__getitem__, map(type, events)), events)

    def _part(self, event: Event) -> bytes:
        body = event_message(event).SerializeToString()
        return self._prefix(len(body)) + body


_EVENTS = _EventParts(play_pb2.Request.EVENTS_FIELD_NUMBER)
_FINAL_EVENTS = _EventParts(play_pb2.GameEnd.EVENTS_FIELD_NUMBER)


@memoize(1 << 12)
def _action_part(action: Action) -> bytes:
    return play_pb2.Request(legal=[action_message(action)]).SerializeToString()


@memoize(1 << 8)  # small, because long lists of draws seldom recur
def _legal_part(legal: tuple[Action, ...]) -> bytes:
    return b"".join(map(_action_part, legal))


@cache
def _play_parts() -> list[list[list[bytes]]]:
    """Return `plays_by_count` with bytes: `_play_parts()[jokers][card][held]` has the plays of the value `card`.

    With this list, encoding the plays of a hand needs only one lookup for each value. A hand has some thirty plays.
    When each play needed a lookup, the lookups took a third of the time to encode a request.
    """
    return [
        [[b"".join(map(_action_part, plays)) for plays in by_held] for by_held in by_card]
        for by_card in plays_by_count()
    ]


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

    Returns None if the message is not exactly one reply with an action, if the reply is to another decision, if the
    message is longer than 129 bytes, or if the bytes before the action are not exactly those that protobuf writes.
    After None the caller must use `parse_bot_message`.
    """
    expected = _reply_game(game_id) + _reply_decision_id(number)
    size = len(data) - 2  # the prefixes of the reply and of its action have two bytes each
    action_size = size - len(expected) - 2
    if action_size < 0 or size >= ONE_BYTE_LIMIT:
        return None
    start = _reply_prefix(size) + expected + _action_prefix(action_size)
    return data[len(start) :] if data.startswith(start) else None


@memoize(1 << 6)
def _reply_game(game_id: str) -> bytes:
    encoded = game_id.encode()
    return _reply_game_prefix(len(encoded)) + encoded


def _parse_action(data: bytes) -> Action:
    try:
        message = table_pb2.Action.FromString(data)
    except DecodeError as error:
        raise ValueError("the bytes are no linko.v1.Action") from error
    return action_value(message)


_short_action = memoize(1 << 12)(_parse_action)
"""`_parse_action` with a memo. Bots send back the legal actions of their requests, so most bytes recur. The caller must
not pass long bytes, because a bot could fill the referee's memory with them."""


def parse_action(data: bytes, request: Request) -> Action:
    """Parse the serialised action of a reply to `request`. The action may be illegal.

    If several slots of the display have equal cards, only the draw from the leftmost of them is legal (ruling R8 in
    `referee/rules/README.md`). If the bot draws from another one of these slots, this function returns the legal draw.
    Raises ValueError when the bytes name no action.
    """
    action = _short_action(data) if len(data) < ONE_BYTE_LIMIT else _parse_action(data)
    if isinstance(action, DrawDisplay):
        display, slot = request.view.display, action.slot
        cards = display[slot] if slot < len(display) else ()
        return DrawDisplay(display.index(cards) if cards else slot, cards)
    return action
