"""Define what a bot is, and the game that it plays.

A bot is a subclass of `Bot`, with one instance for each game, or a plain function of a request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from random import Random
from typing import NamedTuple

from referee.pb import play_pb2
from referee.protocol.values import END_ON_BACK, event_values
from referee.rules.actions import Action
from referee.rules.events import Event
from referee.rules.ruleset import RULESETS, Ruleset
from referee.sdk.request import Request, View


class Clocks(NamedTuple):
    """The limits on your time, in microseconds; 0 means no such limit."""

    start_up_us: int
    """From the start of the process to its hello."""
    game_start_us: int
    """From the start of a game to the end of `Bot.start`."""
    decision_us: int
    """From a request to its reply."""
    bank_us: int
    """For all decisions of a game together."""
    increment_us: int
    """Added to the bank after each decision."""


class Game:
    """A game that your bot plays."""

    def __init__(self, message: play_pb2.GameStart) -> None:
        self.message = message
        self.id = message.game_id
        """An opaque name, unique in the life of the process."""
        self.seat = message.view.seat
        """Your seat."""

    @cached_property
    def random(self) -> Random:
        """The random numbers of this game, seeded by the referee.

        A bot that uses no other random numbers repeats its game when the same game is played again.
        """
        return Random(self.message.seed)  # noqa: S311 - games need no cryptographic randomness

    @cached_property
    def ruleset(self) -> Ruleset:
        """The rules of this game."""
        rules = self.message.ruleset
        unknown = Ruleset(name=rules.name, min_players=self.players, max_players=self.players)
        return replace(
            RULESETS.get(rules.name, unknown),  # a newer referee may have more rulesets
            optional_draw=rules.optional_draw,
            ones_snatch_jokers=rules.ones_snatch_jokers,
            ones_snatch_thirteens=rules.ones_snatch_thirteens,
            hand_size_breaks_ties=rules.hand_size_breaks_ties,
            ghost=rules.ghost,
            end_on=END_ON_BACK[rules.end_on],
            max_turns=rules.max_turns,
        )

    @cached_property
    def clocks(self) -> Clocks:
        """The limits on your time in this game."""
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
        """The names of the bots, seat 0 first; empty unless the tournament shows names."""
        return tuple(self.message.names)

    @property
    def max_strikes(self) -> int:
        """You forfeit the game at this strike."""
        return self.message.max_strikes


class Result:
    """The end of a game."""

    def __init__(self, message: play_pb2.GameEnd, game: Game) -> None:
        self.message = message
        self.game = game

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """The events since your last request; the last one is `GameOver`, unless the game was void."""
        return event_values(self.message.events)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The final rank of each seat, forfeits counted; 1 is best. Empty for a void game."""
        return tuple(self.message.ranks)

    @property
    def forfeited(self) -> bool:
        """True if you forfeited the game."""
        return self.message.forfeited

    @property
    def reason(self) -> str:
        """Why you forfeited, or why the game was void; empty otherwise."""
        return self.message.reason


Decide = Callable[[Request], Action]
"""A bot without memory: a function that returns the action for a request."""


class Bot:
    """The base class of bots that remember something within a game.

    Every game gets its own instance, made without arguments. Override `decide`, or `decide_batch` if
    several requests are best decided together. Override the other methods if you need them.
    """

    def start(self, game: Game) -> None:
        """Prepare for a game. The limit for the game start runs until this returns."""

    def decide(self, request: Request) -> Action:
        """Return the action for one request of this game, within `request.time_left_us`."""
        raise NotImplementedError(f"{type(self).__name__} has neither decide nor decide_batch")

    def end(self, result: Result) -> None:
        """Use the result of the game, if you want to."""

    @classmethod
    def decide_batch(cls, requests: Sequence[Request]) -> Sequence[Action]:
        """Return the actions for all requests of one message, in order; each is of another game.

        This is for bots that decide many requests at little more than the cost of one, such as neural
        networks. Run them with `max_games` above 1. `request.bot` is the instance of each game.
        """
        return [request.bot.decide(request) for request in requests]


def bot_class(bot: type[Bot] | Decide) -> type[Bot]:
    """Return the class of a bot given as a class or a function.

    Raises TypeError for anything else.
    """
    if isinstance(bot, type):
        if not issubclass(bot, Bot):
            raise TypeError(f"{bot.__name__} is no subclass of referee.sdk.Bot")
        return bot
    if not callable(bot):
        raise TypeError(f"{bot!r} is neither a subclass of referee.sdk.Bot nor a function")
    return type("FunctionBot", (Bot,), {"decide": staticmethod(bot)})
