"""What a bot is: a class with one instance a game, or a plain function."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from referee.sdk.actions import Action
from referee.sdk.game import Game, Result
from referee.sdk.request import Request

Decide = Callable[[Request], Action]
"""A bot that remembers nothing."""


class Bot:
    """Base of bots that remember something within a game.

    There is one instance for every game, made without arguments. Override `decide`, or
    `decide_batch` when several requests are best answered together, and the others at will.
    """

    def start(self, game: Game) -> None:
        """Set up for a game; the game-start limit runs until this returns."""

    def decide(self, request: Request) -> Action:
        """Answer one request of this game, within `request.time_left_us`."""
        raise NotImplementedError(f"{type(self).__name__} has neither decide nor decide_batch")

    def end(self, result: Result) -> None:
        """Look at the end of the game."""

    @classmethod
    def decide_batch(cls, requests: Sequence[Request]) -> Sequence[Action]:
        """Answer all requests that came in one message, one of each of several games, in order.

        For bots that answer many requests at little more than the price of one, such as neural
        networks: run them with `max_games` above 1. `request.bot` is the instance of each game.
        """
        return [request.bot.decide(request) for request in requests]


def bot_class(bot: type[Bot] | Decide) -> type[Bot]:
    """The class of a bot given as a class or a function. Raises TypeError for anything else."""
    if isinstance(bot, type):
        if not issubclass(bot, Bot):
            raise TypeError(f"{bot.__name__} is no subclass of referee.sdk.Bot")
        return bot
    if not callable(bot):
        raise TypeError(f"{bot!r} is neither a subclass of referee.sdk.Bot nor a function")
    return type("FunctionBot", (Bot,), {"decide": staticmethod(bot)})
