"""Let chance decide a deck card by card, for OpenSpiel.

In OpenSpiel, chance decides each card when it is drawn, but the rules need a whole deck. So a `LazyGame` has a whole
deck, but only the first cards of the deck are decided. `LazyGame` tries each move in a copy of the game. If the move
draws a card that is not decided, the copy is dropped. Then chance decides the next card, and the move is tried again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Self, cast

from referee.rules.actions import Action, DecisionKind
from referee.rules.events import Event, View, redact
from referee.rules.game import Game
from referee.rules.ruleset import Ruleset, full_deck, list_cards
from referee.sdk import Game as StartedGame
from referee.sdk import Request
from referee.sdk.simulate import InformationSet, Observer


@cache  # for each copy of a state, OpenSpiel first creates a new state, and so a new `LazyGame`
def _sorted_deck(ruleset: Ruleset, players: int) -> tuple[tuple[int, ...], int]:
    """Return all cards, the lowest first, and the smallest number of cards that a deal can draw.

    In a duel, each 13 or joker that is turned up for the ghost can make a deal longer by one card. The sorted deck has these cards
    last, so its deal turns up none of them and is as short as a deal can be.
    """
    deck = tuple(list_cards(full_deck(ruleset)))
    return deck, len(deck) - Game(ruleset, players, deck).table.deck_size


class LazyGame:
    """A game whose cards are decided one by one, when a move draws them.

    Args:
        ruleset: the rules.
        players: the number of seats.
    """

    #   undealt --the last card of the deal--> a seat decides --its move--> a seat decides, or the game is over
    #                                               |                              ^
    #                                               +--a move that draws--> chance-+ once for each card

    def __init__(self, ruleset: Ruleset, players: int) -> None:
        self._ruleset, self._players = ruleset, players
        self._deck, self._least = _sorted_deck(ruleset, players)
        self._decided = 0
        """The number of decided cards, which are the first cards of the deck. The order of the others has no meaning."""
        self.waiting_move: Action | None = None
        """The move that waits for a card."""
        self.game: Game | None = None
        """The game so far, without the move that waits for a card; None until all cards of the deal are decided."""
        self.events: tuple[Event, ...] = ()
        self._first_views: tuple[View, ...] = ()
        self._set: InformationSet | None = None
        """The information set of the next decision; None until `draw` needs it."""
        self._drawn_for: int | None = None
        """If this game comes from `draw`, the seat for which it was drawn; None for all other games."""

    def __deepcopy__(self, _memo: object) -> Self:
        """Return an independent game in the same position.

        This is faster than the default of `deepcopy`, which matters because OpenSpiel copies states very often.
        """
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._set = None
        if self.game is not None:
            other.game = self.game.copy()
        return other

    @property
    def needs_card(self) -> bool:
        """True if chance must decide a card."""
        return self.game is None or self.waiting_move is not None

    @property
    def undecided(self) -> Counter[int]:
        """The cards among which chance decides, each with its number of copies."""
        return Counter(self._deck[self._decided :])

    @property
    def drawn(self) -> tuple[int, ...]:
        """The cards that chance has decided for the deal or for the move that waits."""
        before = 0 if self.game is None else self._count_drawn(self.game)
        return self._deck[before : self._decided]

    def move(self, action: Action) -> None:
        """Make a move of the seat that must decide."""
        self._set = None
        self.waiting_move = action
        self._try_move()

    def decide_card(self, card: int) -> None:
        """Let chance decide the next card. Raises ValueError if no copy of the card is left."""
        try:
            at = self._deck.index(card, self._decided)
        except ValueError:
            left = ", ".join(map(str, sorted(self.undecided)))
            raise ValueError(f"no card {card} is left; the cards that are left: {left}") from None
        rest = (*self._deck[self._decided : at], *self._deck[at + 1 :])
        self._deck = (*self._deck[: self._decided], card, *rest)
        self._decided += 1
        if self.game is not None:
            self._try_move()
        elif self._decided >= self._least:
            self._try_deal()

    def draw(self, seat: int, chance: Random) -> LazyGame:
        """Return a random game that `seat` cannot tell apart from this one. `seat` must have the next decision.

        The returned game has the events only as `seat` saw them, so its own `draw` accepts only `seat`. Raises ValueError if
        `seat` does not have to decide now, or if this game comes from `draw` for another seat.
        """
        information_set = self._find_information_set(seat)
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.game = information_set.draw(chance)
        other._deck, other._decided = other.game.table.deck, 0
        other.events = tuple(redact(event, seat) for event in self.events)
        other._set = None
        other._drawn_for = seat
        return other

    def _count_drawn(self, game: Game) -> int:
        return len(self._deck) - game.table.deck_size

    def _try_deal(self) -> None:
        game = Game(self._ruleset, self._players, self._deck)
        if self._count_drawn(game) <= self._decided:
            self.game = game
            self._first_views = tuple(map(game.view, range(self._players)))

    def _try_move(self) -> None:
        assert self.game is not None  # noqa: S101 - there are no moves before the deal
        assert self.waiting_move is not None  # noqa: S101 - the callers have set it
        tried = self.game.copy()
        tried.table.deck = self._deck
        events = tried.apply(self.waiting_move)
        if self._count_drawn(tried) <= self._decided:
            self.game, self.waiting_move = tried, None
            self.events += events

    def _find_information_set(self, seat: int) -> InformationSet:
        game = self.game
        if game is None or game.decision is None or game.decision.seat != seat or self.needs_card:
            raise ValueError(
                f"only the player who decides now can resample; player {seat} does not decide now"
            )
        if self._drawn_for not in (None, seat):
            raise ValueError(
                f"this state was resampled for player {self._drawn_for}, so it does not contain what player {seat} has seen"
            )
        if self._set is None:
            events = tuple(redact(event, seat) for event in self.events)
            start = _Start(self._ruleset, seat, self._first_views[seat])
            seen = _Seen(game.view(seat), game.decision.kind, game.decision.legal, events)
            self._set = Observer(cast("StartedGame", start)).observe(cast("Request", seen))
        return self._set


@dataclass
class _Start:
    """What an `Observer` needs of a started game."""

    ruleset: Ruleset
    seat: int
    view: View


@dataclass
class _Seen:
    """What an `Observer` needs of a request."""

    view: View
    kind: DecisionKind
    legal: tuple[Action, ...]
    events: tuple[Event, ...]
