"""One decision to take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, overload

from referee.pb import play_pb2, table_pb2
from referee.sdk.actions import Action, DecisionKind, Play, action_of
from referee.sdk.cards import Layer, layer_of
from referee.sdk.events import Event, events_of
from referee.sdk.game import Game
from referee.sdk.view import View

if TYPE_CHECKING:
    from referee.sdk.bot import Bot


class LegalActions(Sequence[Action]):
    """Every action that is legal now, each once, decoded one by one as they are looked at."""

    def __init__(self, messages: Sequence[table_pb2.Action]) -> None:
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Action]:
        return map(action_of, self._messages)

    @overload
    def __getitem__(self, index: int) -> Action: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Action]: ...
    def __getitem__(self, index: int | slice) -> Action | Sequence[Action]:
        if isinstance(index, slice):
            return tuple(map(action_of, self._messages[index]))
        return action_of(self._messages[index])


class Request:
    """A decision to take.

    Args:
        message: what the referee asks.
        game: the game it asks about.
        bot: the instance that plays this game.
    """

    def __init__(self, message: play_pb2.Request, game: Game, bot: Bot) -> None:
        self.message = message
        self.game = game
        self.bot = bot

    @property
    def kind(self) -> DecisionKind:
        """What is to be decided."""
        return DecisionKind(self.message.kind)

    @cached_property
    def view(self) -> View:
        """Everything your seat may know now."""
        return View(self.message.view)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """What happened since your last request in this game, oldest first."""
        return events_of(self.message.events)

    @property
    def legal(self) -> LegalActions:
        """Every legal action; there is always at least one."""
        return LegalActions(self.message.legal)

    @property
    def plays(self) -> tuple[Play, ...]:
        """Every legal play; empty where something else is to be decided."""
        return tuple(
            Play(layer_of(action.play)) for action in self.message.legal if action.HasField("play")
        )

    def victims(self, layer: Layer) -> tuple[int, ...]:
        """The seats, in order, whose top layers would be snatched if you played this layer now."""
        view, snatches = self.view, self.game.ruleset.snatches
        tops = ((seat, view.top(seat)) for seat in view.opponents)
        return tuple(seat for seat, top in tops if top is not None and snatches(layer, top))

    @property
    def time_left_us(self) -> int:
        """Microseconds for this decision; 0 is no limit."""
        return self.message.time_left_us

    @property
    def bank_left_us(self) -> int:
        """Microseconds left in your bank; 0 where the game has none."""
        return self.message.bank_left_us

    @property
    def last_elapsed_us(self) -> int:
        """What the referee measured for your last decision in this game."""
        return self.message.last_elapsed_us
