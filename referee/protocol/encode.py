"""What the referee says to bots, as bytes.

Every function returns a serialised `RefereeMessage`. Concatenated, such messages are their union
(protobuf merges what it parses), which is how the requests of several games go out as one message.

A request carries the whole view and every legal action, up to a kilobyte; building it anew took longer
than sending it. So what recurs (an event, an action) is serialised once and then put together as bytes,
since messages that lie one after the other are one message with the elements of all their lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from operator import getitem

from referee.clocks import Clocks
from referee.pb import play_pb2
from referee.player import Ask
from referee.protocol.messages import (
    action_message,
    clocks_message,
    event_message,
    ruleset_message,
)
from referee.protocol.names import KINDS
from referee.protocol.view import ViewWriter
from referee.protocol.wire import head, number_field
from referee.rules.actions import Action, DecisionKind, legal_plays
from referee.rules.cards import COPIES, JOKER, JOKERS
from referee.rules.events import Event
from referee.rules.ruleset import Ruleset
from referee.rules.view import View

PROTOCOL_VERSION = 1
_REQUESTS = play_pb2.RefereeMessage.DESCRIPTOR.fields_by_name["requests"].number
_FIELDS = {name: field.number for name, field in play_pb2.Request.DESCRIPTOR.fields_by_name.items()}
_DECISION_ID, _VIEW, _TIME_LEFT = _FIELDS["decision_id"], _FIELDS["view"], _FIELDS["time_left_us"]
_BANK_LEFT, _LAST_ELAPSED = _FIELDS["bank_left_us"], _FIELDS["last_elapsed_us"]
_KIND_PARTS = {kind: number_field(_FIELDS["kind"], number) for kind, number in KINDS.items()}
_CACHED = 1 << 12
"""Entries of each cache below: what recurs within some games; more would only be memory."""
_RECENT = 1 << 8
"""Of sets of actions, some of which have dozens and are seen once: they recur soon or never."""


class RequestEncoder:
    """Encodes the requests of one game, to all of its seats."""

    def __init__(self, game_id: str) -> None:
        self._game_id = play_pb2.Request(game_id=game_id).SerializeToString()
        self._views = ViewWriter()

    def encode(self, ask: Ask) -> bytes:
        """One request as a `RefereeMessage`."""
        number, view, (_, kind, legal), news, (limit_us, bank_left_us, last_elapsed_us) = ask
        written = self._views.write(view)
        parts = [
            self._game_id,
            number_field(_DECISION_ID, number),
            _KIND_PARTS[kind],
            number_field(_TIME_LEFT, limit_us),
            number_field(_LAST_ELAPSED, last_elapsed_us),
            head(_VIEW, len(written)),
            written,
            *map(_event_part, news),
        ]
        if bank_left_us:
            parts.append(number_field(_BANK_LEFT, bank_left_us))
        if kind is DecisionKind.PLAY:
            hand = view.hand
            parts += map(getitem, _play_parts()[hand[JOKER]], hand)
        else:
            parts.append(_legal_part(legal))
        body = b"".join(parts)
        return head(_REQUESTS, len(body)) + body


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
    message = play_pb2.RefereeMessage()
    start = message.game_starts.add(
        game_id=game_id,
        ruleset=ruleset_message(rules),
        clocks=clocks_message(clocks),
        seed=seed,
        names=names,
        max_strikes=max_strikes,
    )
    start.view.ParseFromString(ViewWriter().write(view))
    return message.SerializeToString()


def game_end(
    game_id: str, news: Iterable[Event], ranks: Sequence[int], reason: str, *, forfeited: bool
) -> bytes:
    """The end of a game, to one seat. `reason` says why it forfeited or was broken off."""
    message = play_pb2.RefereeMessage()
    message.game_ends.add(
        game_id=game_id,
        events=[event_message(event) for event in news],
        ranks=ranks,
        forfeited=forfeited,
        reason=reason,
    )
    return message.SerializeToString()


def goodbye(reason: str = "") -> bytes:
    """The last message to a bot."""
    message = play_pb2.RefereeMessage(goodbye=play_pb2.Goodbye(reason=reason))
    return message.SerializeToString()


# Serialised pieces, each the whole message with one element in one list: merging it appends that
# element. Typed, because named tuples of different kinds can be equal.


@lru_cache(_CACHED, typed=True)
def _event_part(event: Event) -> bytes:
    return play_pb2.Request(events=[event_message(event)]).SerializeToString()


@lru_cache(_RECENT)
def _legal_part(legal: tuple[Action, ...]) -> bytes:
    return b"".join(map(_action_part, legal))


@lru_cache(_CACHED, typed=True)
def _action_part(chosen: Action) -> bytes:
    return play_pb2.Request(legal=[action_message(chosen)]).SerializeToString()


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
