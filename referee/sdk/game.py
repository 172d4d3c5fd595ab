"""A game as a whole: what is known when it begins, and how it ended."""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from random import Random
from typing import NamedTuple

from referee.pb import play_pb2, table_pb2
from referee.sdk.cards import JOKER, Layer
from referee.sdk.events import Event, events_of
from referee.sdk.view import View


class EndOn(Enum):
    """When the supply of cards ends a game."""

    DECK_AND_DISPLAY = table_pb2.END_ON_DECK_AND_DISPLAY
    DECK = table_pb2.END_ON_DECK


class Ruleset(NamedTuple):
    """The rules of a game."""

    name: str
    """`classic`, `basic`, `advanced`, `expert`, `expert-jokers` or `duel`."""
    optional_draw: bool
    """An active player who snatched nothing may draw one card."""
    ones_snatch_jokers: bool
    """Layers of 1s snatch layers of jokers."""
    ones_snatch_thirteens: bool
    """Layers of 1s snatch layers of 13."""
    hand_size_breaks_ties: bool
    """Equal scores are told apart by the smaller hand."""
    ghost: bool
    """The duel's ghost, dealt jokers and display groups."""
    end_on: EndOn
    max_turns: int
    """The game ends after this many turns."""

    def snatches(self, attacker: Layer, victim: Layer) -> bool:
        """Whether a layer just played snatches another one that lies on top of a table."""
        if attacker.size != victim.size:
            return False
        return attacker.value > victim.value or (
            attacker.value == 1
            and (
                (self.ones_snatch_jokers and victim.value == JOKER)
                or (self.ones_snatch_thirteens and victim.value == JOKER - 1)
            )
        )


class Clocks(NamedTuple):
    """The limits on your time, in microseconds; 0 is no such limit."""

    start_up_us: int
    """From the start of the process to its hello."""
    game_start_us: int
    """From a game start to the end of `Bot.start`."""
    decision_us: int
    """From a request to its reply."""
    bank_us: int
    """For all decisions of a game together."""
    increment_us: int
    """Added to the bank after each decision."""


class Game:
    """A game that you play."""

    def __init__(self, message: play_pb2.GameStart) -> None:
        self.message = message
        self.id = message.game_id
        """Opaque; unique for the life of the process."""
        self.seat = message.view.seat
        """Your seat."""

    @cached_property
    def random(self) -> Random:
        """Chance for this game, seeded by the referee.

        A bot that uses no other chance plays the same game again when the same game is played
        again.
        """
        return Random(self.message.seed)  # noqa: S311 - games need no cryptographic randomness

    @cached_property
    def ruleset(self) -> Ruleset:
        """The rules of this game."""
        rules = self.message.ruleset
        return Ruleset(
            rules.name,
            rules.optional_draw,
            rules.ones_snatch_jokers,
            rules.ones_snatch_thirteens,
            rules.hand_size_breaks_ties,
            rules.ghost,
            EndOn(rules.end_on),
            rules.max_turns,
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
        """What you see before the first turn."""
        return View(self.message.view)

    @property
    def players(self) -> int:
        """How many sit at the table."""
        return self.view.players

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the bots, seat 0 first; empty unless the tournament shows names."""
        return tuple(self.message.names)

    @property
    def max_strikes(self) -> int:
        """How many missed decisions forfeit the game."""
        return self.message.max_strikes


class Result:
    """The end of a game."""

    def __init__(self, message: play_pb2.GameEnd, game: Game) -> None:
        self.message = message
        self.game = game

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """What happened since your last request; `GameOver` last, unless it was broken off."""
        return events_of(self.message.events)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Final rank of each seat, forfeits counted: 1 is best. Empty: the game was broken off."""
        return tuple(self.message.ranks)

    @property
    def forfeited(self) -> bool:
        """Whether you forfeited the game."""
        return self.message.forfeited

    @property
    def reason(self) -> str:
        """Why you forfeited, or why the game was broken off; else empty."""
        return self.message.reason
