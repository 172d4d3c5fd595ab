"""What the referee says to bots, as bytes.

Every function returns a serialised `RefereeMessage`. Concatenated, such messages are their union
(protobuf merges what it parses), which is how the requests of several games go out as one message.

A request carries the whole view and every legal action, up to a kilobyte; building it anew took longer
than sending it. So one message per game stays built and only what changed is written into it; what
recurs (a layer, an event, an action) is serialised once and then put behind it as bytes, since a
message and one more element of a list make that message with the element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from referee.clocks import Clocks
from referee.pb import play_pb2, table_pb2
from referee.player import Ask
from referee.protocol.messages import (
    action_message,
    clocks_message,
    event_message,
    layer_message,
    ruleset_message,
)
from referee.protocol.names import KINDS
from referee.rules.actions import Action, DecisionKind, legal_plays
from referee.rules.cards import COPIES, JOKER, JOKERS, Group, Layer
from referee.rules.events import Event
from referee.rules.ruleset import Ruleset
from referee.rules.view import View

PROTOCOL_VERSION = 1
_CACHED = 1 << 12
"""Entries of each cache below: what recurs within some games; more would only be memory."""


class RequestEncoder:
    """Encodes the requests of one game, to all of its seats."""

    def __init__(self, game_id: str) -> None:
        self._request = play_pb2.Request(game_id=game_id)
        self._view = _ViewWriter(self._request.view)

    def encode(self, ask: Ask) -> bytes:
        """One request as a `RefereeMessage`."""
        number, view, decision, news, budget = ask
        request = self._request
        request.decision_id = number
        request.kind = KINDS[decision.kind]
        request.time_left_us = budget.limit_us
        request.bank_left_us = budget.bank_left_us or 0
        request.last_elapsed_us = budget.last_elapsed_us
        self._view.write(view)
        parts = [request.SerializeToString()]
        parts += map(_event_part, news)
        if decision.kind is DecisionKind.PLAY:
            hand = view.hand
            jokers = hand[JOKER]
            parts += [part[held][jokers] for part, held in zip(_PLAY_PARTS, hand) if held]  # noqa: B905
        else:
            parts.append(_legal_part(decision.legal))
        body = b"".join(parts)
        return _head(len(body)) + body


class _ViewWriter:
    """Keeps a view message equal to the last view written, at the cost of what changed."""

    def __init__(self, message: table_pb2.View) -> None:
        self._message = message
        self._tables: list[table_pb2.Table] = []
        self._layers: list[tuple[Layer, ...]] = []
        self._display: tuple[Group, ...] = ()
        self._discards: object = None
        self._ghost: object = None
        self._snatched: Layer | None = None
        self._victim: int | None = None

    def write(self, view: View) -> None:
        message = self._message
        message.seat = view.seat
        message.hand[:] = view.hand
        message.hand_sizes[:] = view.hand_sizes
        message.deck_size = view.deck_size
        message.active_seat = view.active_seat
        message.turn = view.turn
        message.cards_to_draw = view.cards_to_draw
        if not self._tables:
            self._tables = [message.tables.add() for _ in view.tables]
            self._layers = [()] * len(view.tables)
        for seat, layers in enumerate(view.tables):
            if layers is not self._layers[seat]:
                self._tables[seat].ParseFromString(b"".join(map(_layer_part, layers)))
                self._layers[seat] = layers
        if view.display is not self._display:
            message.ClearField("display")
            message.MergeFromString(b"".join(map(_slot_part, view.display)))
            self._display = view.display
        if view.discards is not self._discards:
            message.discards[:] = self._discards = view.discards
        if view.ghost is not None and view.ghost is not self._ghost:
            message.ghost[:] = self._ghost = view.ghost
        if view.snatched is not self._snatched or view.victim != self._victim:
            self._write_snatch(view)

    def _write_snatch(self, view: View) -> None:
        message = self._message
        self._snatched, self._victim = view.snatched, view.victim
        if view.snatched is None:
            message.ClearField("snatched")
        else:
            message.snatched.CopyFrom(layer_message(view.snatched))
        if view.victim is None:
            message.ClearField("victim")
        else:
            message.victim = view.victim


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
    _ViewWriter(start.view).write(view)
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


@lru_cache(_CACHED)
def _layer_part(cards: Layer) -> bytes:
    return table_pb2.Table(layers=[layer_message(cards)]).SerializeToString()


@lru_cache(_CACHED)
def _slot_part(cards: Group) -> bytes:
    return table_pb2.View(display=[table_pb2.Slot(cards=cards)]).SerializeToString()


@lru_cache(_CACHED, typed=True)
def _event_part(event: Event) -> bytes:
    return play_pb2.Request(events=[event_message(event)]).SerializeToString()


@lru_cache(_CACHED)
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


_PLAY_PARTS = [
    [[_plays_of(value, held, jokers) for jokers in range(JOKERS + 1)] for held in range(COPIES + 1)]
    for value in range(JOKER)
] + [[[_plays_of(JOKER, held, held)] * (JOKERS + 1) for held in range(JOKERS + 1)]]
"""By card, how many of it are held, and jokers held: what a hand can play is put together from these, in
the order of `legal_plays`. Looking up each of some thirty plays took a third of the time of a request."""
_REQUESTS = play_pb2.RefereeMessage.DESCRIPTOR.fields_by_name["requests"].number
_TAG = bytes((_REQUESTS << 3 | 2,))
"""How a `RefereeMessage` announces a request: its field's number and "so many bytes follow"."""
_BASE = 128


@lru_cache(_CACHED)
def _head(length: int) -> bytes:
    """What makes a serialised request of this length the one request of a `RefereeMessage`.

    The only piece of the wire format that is written here by hand (base-128, low bits first): to have
    protobuf do it, it would have to parse the request again.
    """
    head = bytearray(_TAG)
    while length >= _BASE:
        head.append(length % _BASE + _BASE)
        length //= _BASE
    head.append(length)
    return bytes(head)
