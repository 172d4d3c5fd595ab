"""Define the base class of bots, the game that a bot plays, and the result of a game.

A bot is a subclass of `Bot`, or a function that takes a request and returns an action. The SDK creates one
instance of the subclass for each game.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from inspect import ismethod
from random import Random
from typing import NamedTuple

from referee.pb import play_pb2
from referee.protocol.values import event_values, option_values
from referee.rules.actions import Action
from referee.rules.events import Event
from referee.rules.ruleset import RULESETS, Ruleset
from referee.sdk.request import Request, View


class Clocks(NamedTuple):
    """The time limits of your bot, in microseconds."""

    start_up_us: int
    """The time for the start of your bot. It begins when the referee begins to start the process, and ends when the
    hello arrives."""
    game_start_us: int
    """The time from the message that starts a game to your bot's `Ready`. The SDK sends `Ready` after `Bot.start`."""
    decision_us: int
    """The time from a request to its reply."""
    bank_us: int
    """The time for all decisions of a game together; 0 in a game without a bank."""
    increment_us: int
    """The time that is added to the bank after each decision."""


class Game:
    """A game that your bot plays."""

    def __init__(self, message: play_pb2.GameStart) -> None:
        self.message = message
        self.id = message.game_id
        """The opaque id of the game. A process never plays two games with the same id."""
        self.seat = message.view.seat
        """Your seat."""

    @cached_property
    def random(self) -> Random:
        """The generator of random numbers for this game, seeded by the referee.

        If the referee plays a game again, the seed is the same as before. If your bot takes all random numbers
        from this generator, it can make the same decisions as before.
        """
        return Random(self.message.seed)  # noqa: S311 - games need no cryptographic randomness

    @cached_property
    def ruleset(self) -> Ruleset:
        """The rules of this game."""
        rules = self.message.ruleset
        unknown = Ruleset(name=rules.name, min_players=self.players, max_players=self.players)
        return replace(
            RULESETS.get(rules.name, unknown),  # a newer referee may have other rulesets
            optional_draw=rules.optional_draw,
            ones_snatch_jokers=rules.ones_snatch_jokers,
            ones_snatch_thirteens=rules.ones_snatch_thirteens,
            hand_size_breaks_ties=rules.hand_size_breaks_ties,
            ghost=rules.ghost,
            max_turns=rules.max_turns,
            **option_values(rules),
        )

    @cached_property
    def clocks(self) -> Clocks:
        """The time limits of your bot in this game."""
        clocks = self.message.clocks
        return Clocks(
            clocks.start_up_us,
            clocks.game_start_us,
            clocks.decision_us,
            clocks.bank_us,
            clocks.increment_us,
        )

    @cached_property
    def view(self) -> View:
        """Your view before the first turn."""
        return View(self.message.view)

    @property
    def players(self) -> int:
        """The number of seats."""
        return self.view.players

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the bots, seat 0 first; empty if the tournament does not show names."""
        return tuple(self.message.names)

    @property
    def max_strikes(self) -> int:
        """The number of strikes at which you forfeit the game."""
        return self.message.max_strikes


class Result:
    """The result of a game for your seat."""

    def __init__(self, message: play_pb2.GameEnd, game: Game) -> None:
        self.message = message
        self.game = game

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """The events since your last request, oldest first. The last event is `GameOver`."""
        return event_values(self.message.events)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The final rank of each seat, forfeits counted; 1 is best."""
        return tuple(self.message.ranks)

    @property
    def forfeited(self) -> bool:
        """True if you forfeited the game."""
        return self.message.forfeited

    @property
    def reason(self) -> str:
        """Why you forfeited; empty if you did not forfeit."""
        return self.message.reason


Decide = Callable[[Request], Action]
"""A bot without memory: a function that returns the action for a request."""


class Bot:
    """The base class of bots that remember something during a game.

    The SDK creates one instance for each game, without arguments. Override `decide` or `decide_batch`. You can
    also override `start` and `end`.
    """

    def start(self, game: Game) -> None:
        """Prepare for a game. This method must return within `game.clocks.game_start_us`."""

    def decide(self, request: Request) -> Action:
        """Return the action for one request of this game, within `request.time_left_us`."""
        raise NotImplementedError(f"{type(self).__name__} has neither decide nor decide_batch")

    def end(self, result: Result) -> None:
        """Get the result of the game, for example to learn from it."""

    @classmethod
    def decide_batch(cls, requests: Sequence[Request]) -> Sequence[Action]:
        """Return one action for each request, in the order of `requests`.

        The requests came in one message, and each request belongs to a different game. `request.bot` is the
        instance of your class that plays the game of `request`. Override this method if your bot decides many
        requests together faster than one by one, as neural networks do. If you do not override it, `decide` is called for each request.
        To get batches, also call `run` with `max_games` above 1.
        """
        return [request.bot.decide(request) for request in requests]


def bot_class(bot: type[Bot] | Decide) -> type[Bot]:
    """Return a subclass of `Bot`: `bot` itself if it is one, or a new subclass with the function `bot` as its `decide`.

    Raises TypeError if `bot` is neither a subclass of `Bot` nor a function, or if its `decide_batch` is no class method.
    """
    if isinstance(bot, type):
        if not issubclass(bot, Bot):
            raise TypeError(f"{bot.__name__} is no subclass of referee.sdk.Bot")
        if not ismethod(bot.decide_batch):
            raise TypeError(
                f"{bot.__name__}: decide_batch is no class method; write @classmethod above it"
            )
        return bot
    if not callable(bot):
        raise TypeError(f"{bot!r} is neither a subclass of referee.sdk.Bot nor a function")
    return type("FunctionBot", (Bot,), {"decide": staticmethod(bot)})
