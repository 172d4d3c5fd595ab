"""Read a request of the referee: the view of your seat, the events and the legal actions.

A value is decoded from the protobuf message when the bot reads the value. A bot spends no time on values that
it does not read. The protobuf message is available as `.message`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, overload

from referee.pb import play_pb2
from referee.pb import table_pb2 as pb
from referee.protocol.values import KINDS_BACK, action_value, event_values, layer_value
from referee.rules.actions import Action, DecisionKind, Play
from referee.rules.events import Event
from referee.rules.ruleset import Counts, Group, Layer

if TYPE_CHECKING:
    from referee.sdk.bot import Bot, Game


class View:
    """Everything that your seat may know of a game at one moment.

    Seats are numbered from 0, clockwise.
    """

    def __init__(self, message: pb.View) -> None:
        self.message = message
        self.seat = message.seat
        """Your own seat."""

    @cached_property
    def hand(self) -> Counts:
        """Your hand: 15 counts, indexed by card."""
        return tuple(self.message.hand)

    @cached_property
    def hand_sizes(self) -> tuple[int, ...]:
        """The number of cards in each seat's hand."""
        return tuple(self.message.hand_sizes)

    @cached_property
    def players(self) -> int:
        """The number of seats."""
        return len(self.message.hand_sizes)

    @cached_property
    def opponents(self) -> tuple[int, ...]:
        """The other seats, clockwise from your seat. You snatch from them in this order."""
        return tuple((self.seat + offset) % self.players for offset in range(1, self.players))

    @cached_property
    def tables(self) -> tuple[tuple[Layer, ...], ...]:
        """The layers of each seat, oldest first."""
        return tuple(tuple(map(layer_value, table.layers)) for table in self.message.tables)

    def top(self, seat: int) -> Layer | None:
        """Return a seat's top layer, the only one that can be snatched; None if the seat has no layer."""
        layers = self.message.tables[seat].layers
        return layer_value(layers[-1]) if layers else None

    @cached_property
    def scores(self) -> tuple[int, ...]:
        """The score that each seat would have if the game ended now."""
        return tuple(
            sum(layer.naturals + layer.jokers for layer in table.layers) - held
            for table, held in zip(self.message.tables, self.message.hand_sizes, strict=True)
        )

    @cached_property
    def display(self) -> tuple[Group, ...]:
        """The cards in each of the six slots. In a duel a slot can have several cards, bottom card first."""
        return tuple(tuple(slot.cards) for slot in self.message.display)

    @property
    def deck_size(self) -> int:
        """The number of cards left in the deck."""
        return self.message.deck_size

    @cached_property
    def discards(self) -> Counts:
        """The discard pile: 15 counts, indexed by card."""
        return tuple(self.message.discards)

    @cached_property
    def ghost(self) -> Counts | None:
        """The ghost's cards: 15 counts, indexed by card; None except in the duel."""
        return tuple(self.message.ghost) or None

    @property
    def active_seat(self) -> int:
        """The seat whose turn it is. While layers are snatched, this seat is the attacker."""
        return self.message.active_seat

    @property
    def turn(self) -> int:
        """The number of the turn, from 1."""
        return self.message.turn

    @property
    def snatched(self) -> Layer | None:
        """The snatched layer while a seat decides about it; None at all other times."""
        return layer_value(self.message.snatched) if self.message.HasField("snatched") else None

    @property
    def victim(self) -> int | None:
        """The seat that lost a layer, until it has reclaimed the layer or made all its draws; None at all other times."""
        return self.message.victim if self.message.HasField("victim") else None

    @property
    def cards_to_draw(self) -> int:
        """How many draws are left, the current draw included; 1 in an optional draw, 0 if nobody draws."""
        return self.message.cards_to_draw


class LegalActions(Sequence[Action]):
    """All legal actions, without duplicates. An action is decoded when you read it."""

    def __init__(self, messages: Sequence[pb.Action]) -> None:
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Action]:
        return map(action_value, self._messages)

    @overload
    def __getitem__(self, index: int) -> Action: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Action]: ...
    def __getitem__(self, index: int | slice) -> Action | Sequence[Action]:
        if isinstance(index, slice):
            return tuple(map(action_value, self._messages[index]))
        return action_value(self._messages[index])


class Request:
    """A decision that the referee requests from your bot.

    Args:
        message: the request as a message.
        game: the game in which to decide.
        bot: the instance of your bot that plays this game.
    """

    def __init__(self, message: play_pb2.Request, game: Game, bot: Bot) -> None:
        self.message = message
        self.game = game
        self.bot = bot

    @property
    def kind(self) -> DecisionKind:
        """What you have to decide."""
        return KINDS_BACK[self.message.kind]

    @cached_property
    def view(self) -> View:
        """Everything that your seat may know when it decides."""
        return View(self.message.view)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """The events since your last request in this game, oldest first."""
        return event_values(self.message.events)

    @property
    def legal(self) -> LegalActions:
        """Every legal action; there is always at least one."""
        return LegalActions(self.message.legal)

    @property
    def plays(self) -> tuple[Play, ...]:
        """Every legal play; empty unless `kind` is `DecisionKind.PLAY`."""
        return tuple(
            Play(layer_value(action.play))
            for action in self.message.legal
            if action.HasField("play")
        )

    def victims(self, layer: Layer) -> tuple[int, ...]:
        """Return the seats with a top layer that `layer` snatches, clockwise from your seat.

        The method does not check whether `layer` is your whole hand. If it is, playing it ends the game before anything
        is snatched. The ghost of a duel has no seat and is never among the victims.
        """
        view, snatches = self.view, self.game.ruleset.snatches
        tops = ((seat, view.top(seat)) for seat in view.opponents)
        return tuple(seat for seat, top in tops if top is not None and snatches(layer, top))

    @property
    def time_left_us(self) -> int:
        """Microseconds for this decision; 0 means no limit.

        If your bot passes `batch_wait_us` to `run`, up to `batch_wait_us` of this time may have passed when you get
        the request.
        """
        return self.message.time_left_us

    @property
    def bank_left_us(self) -> int:
        """Microseconds left in your bank; 0 in a game without a bank."""
        return self.message.bank_left_us

    @property
    def last_elapsed_us(self) -> int:
        """Microseconds that the referee measured for your last decision in this game; 0 at your first decision."""
        return self.message.last_elapsed_us
