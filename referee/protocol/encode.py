"""What the referee says to bots, as bytes.

Every function returns a serialised `RefereeMessage`. Concatenated, such messages are their union
(protobuf merges what it parses), which is how the requests of several games go out as one message.

A request carries the whole view and every legal action, up to a kilobyte; building it anew took longer
than sending it. So what recurs (an event, an action) is serialised once and then put together as bytes,
since messages that lie one after the other are one message with the elements of all their lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import call, getitem
from typing import get_args

from referee.clocks import Clocks
from referee.pb import play_pb2
from referee.protocol.values import (
    KINDS,
    action_message,
    event_message,
    ruleset_message,
)
from referee.protocol.view_bytes import ViewWriter, head, memo, number_field
from referee.records import Request
from referee.rules.actions import Action, DecisionKind, legal_plays
from referee.rules.cards import COPIES, JOKER, JOKERS
from referee.rules.events import Event
from referee.rules.ruleset import Ruleset
from referee.rules.view import View

PROTOCOL_VERSION = 1
_request_head = head(play_pb2.RefereeMessage.DESCRIPTOR.fields_by_name["requests"].number)
_FIELDS = {name: field.number for name, field in play_pb2.Request.DESCRIPTOR.fields_by_name.items()}
_decision_id, _kind = number_field(_FIELDS["decision_id"]), number_field(_FIELDS["kind"])
_view_head = head(_FIELDS["view"])
_time_left = number_field(_FIELDS["time_left_us"])
_bank_left = number_field(_FIELDS["bank_left_us"])
_last_elapsed = number_field(_FIELDS["last_elapsed_us"])
_start_head = head(play_pb2.RefereeMessage.DESCRIPTOR.fields_by_name["game_starts"].number)
_first_view_head = head(play_pb2.GameStart.DESCRIPTOR.fields_by_name["view"].number)
_end_head = head(play_pb2.RefereeMessage.DESCRIPTOR.fields_by_name["game_ends"].number)
_LAST_EVENTS = play_pb2.GameEnd.DESCRIPTOR.fields_by_name["events"].number
_PLAY = DecisionKind.PLAY
"""Found once: to find a member of an enum takes as long as to call a function."""


class RequestEncoder:
    """Encodes the requests of one game, to all of its seats."""

    def __init__(self, game_id: str) -> None:
        self._game_id = play_pb2.Request(game_id=game_id).SerializeToString()
        self._views = ViewWriter()

    def encode(self, request: Request) -> bytes:
        """One request as a `RefereeMessage`."""
        decision, budget = request.decision, request.budget
        written = self._views.write(request.view)
        parts = [
            self._game_id,
            _decision_id(request.number),
            _kind(KINDS[decision.kind]),
            _time_left(budget.limit_us),
            _last_elapsed(budget.last_elapsed_us),
            _view_head(len(written)),
            written,
            *_NEWS.parts(request.events),
        ]
        if budget.bank_left_us:
            parts.append(_bank_left(budget.bank_left_us))
        if decision.kind is _PLAY:
            hand = request.view.hand
            parts += map(getitem, _play_parts()[hand[JOKER]], hand)
        else:
            parts.append(_legal_part(decision.legal))
        body = b"".join(parts)
        return _request_head(len(body)) + body


def clocks_message(clocks: Clocks) -> play_pb2.Clocks:
    """Return clocks as a message."""
    return play_pb2.Clocks(
        start_up_us=clocks.start_up_us,
        game_start_us=clocks.game_start_us,
        decision_us=clocks.decision_us,
        bank_us=clocks.bank_us or 0,
        increment_us=clocks.increment_us,
    )


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
    """The start of a game, to one seat. `names` is empty unless names are shown."""
    start = play_pb2.GameStart(
        game_id=game_id,
        ruleset=ruleset_message(rules),
        clocks=clocks_message(clocks),
        seed=seed,
        names=names,
        max_strikes=max_strikes,
    )
    written = ViewWriter().write(view)
    body = b"".join((start.SerializeToString(), _first_view_head(len(written)), written))
    return _start_head(len(body)) + body


def game_end(
    game_id: str, news: Sequence[Event], ranks: Sequence[int], reason: str, *, forfeited: bool
) -> bytes:
    """The end of a game, to one seat. `reason` says why it forfeited or was broken off."""
    end = play_pb2.GameEnd(game_id=game_id, ranks=ranks, forfeited=forfeited, reason=reason)
    body = b"".join((end.SerializeToString(), *_LAST_NEWS.parts(news)))
    return _end_head(len(body)) + body


def goodbye(reason: str = "") -> bytes:
    """The last message to a bot."""
    message = play_pb2.RefereeMessage(goodbye=play_pb2.Goodbye(reason=reason))
    return message.SerializeToString()


# Serialised pieces, each the whole message with one element in one list: merging it appends that element.


class _Events:
    """Events as elements of a list, by the number of its field."""

    def __init__(self, field: int) -> None:
        self._head = head(field)
        self._parts: dict[type[Event], Callable[[Event], bytes]] = {
            kind: memo(1 << 10)(self._part) for kind in get_args(Event)
        }
        """By kind, because named tuples of different kinds can be equal."""

    def parts(self, events: Sequence[Event]) -> Iterable[bytes]:
        """One for each event; found in C, since a seat is told half a dozen at once."""
        return map(call, map(self._parts.__getitem__, map(type, events)), events)

    def _part(self, event: Event) -> bytes:
        written = event_message(event).SerializeToString()
        return self._head(len(written)) + written


_NEWS, _LAST_NEWS = _Events(_FIELDS["events"]), _Events(_LAST_EVENTS)


@memo(1 << 12)
def _action_part(chosen: Action) -> bytes:
    return play_pb2.Request(legal=[action_message(chosen)]).SerializeToString()


@memo(1 << 8)  # some have dozens and are seen once: they recur soon or never
def _legal_part(legal: tuple[Action, ...]) -> bytes:
    return b"".join(map(_action_part, legal))


def _plays_of(value: int, held: int, jokers: int) -> bytes:
    """The plays of so many cards of one value with up to so many jokers; `JOKER`: of jokers alone."""
    hand = [0] * (JOKER + 1)
    hand[value], hand[JOKER] = held, jokers
    return b"".join(_action_part(play) for play in legal_plays(hand) if play.layer.value == value)


@cache
def _play_parts() -> list[list[list[bytes]]]:
    """By jokers held, card, and how many of it are held; made when first needed.

    What a hand can play is put together from these, in the order of `legal_plays`: looking up each of
    some thirty plays took a third of the time of a request.
    """
    alone = [_plays_of(JOKER, held, held) for held in range(JOKERS + 1)]
    return [
        [
            *(
                [_plays_of(card, held, jokers) for held in range(COPIES + 1)]
                for card in range(JOKER)
            ),
            alone,
        ]
        for jokers in range(JOKERS + 1)
    ]
