"""Make decks that one seat cannot tell from the real deck, by dealing the hidden cards again.

The cards that a seat may not know are at *hidden positions* of the deck: cards dealt to other seats,
cards that others drew from the deck, and cards that nobody has drawn yet. The seat has seen all other
cards. Two hidden cards may be swapped if the other seats could still have played all their layers. Then
the same actions are legal, and the seat sees the same. This module uses only the events for this, not
the engine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from referee.rules.actions import Action
from referee.rules.events import (
    DisplayRefilled,
    Drawn,
    Event,
    GhostRefilled,
    GhostSnatched,
    Played,
    Reclaimed,
    Taken,
)
from referee.rules.game import Game
from referee.rules.ruleset import JOKER, Ruleset

SWAPS = 150
"""The number of swaps that are tried for each new deck."""


class Hand:
    """The cards that entered and left a hand, in order."""

    def __init__(self, known: Sequence[int]) -> None:
        self._known = tuple(known)
        self._moves: list[tuple[int, Sequence[int]]] = []
        """Pairs: +1 and visible cards gained, -1 and cards played, 0 and positions of hidden cards."""

    def draws(self, positions: Sequence[int]) -> None:
        self._moves.append((0, positions))

    def gains(self, cards: Sequence[int]) -> None:
        self._moves.append((1, cards))

    def plays(self, cards: Sequence[int]) -> None:
        self._moves.append((-1, cards))

    @property
    def positions(self) -> list[int]:
        """The positions in the deck of the cards that this hand drew unseen."""
        return [at for sign, positions in self._moves if sign == 0 for at in positions]

    def could_play(self, deck: Sequence[int]) -> bool:
        """Return True if every play would have been possible with this deck."""
        held = [0] * 15
        for card in self._known:
            held[card] += 1
        for sign, items in self._moves:
            for item in items:
                if sign == 0:
                    held[deck[item]] += 1
                else:
                    held[item] += sign
                    if held[item] < 0:
                        return False
        return True


class Secrets:
    """The cards that one seat may not know, followed by the complete events of a game."""

    def __init__(self, ruleset: Ruleset, players: int, deck: Sequence[int], seat: int) -> None:
        self._deck = tuple(deck)
        self._seat = seat
        dealt = 11 if ruleset.ghost else 13
        self._hands = [Hand([JOKER, JOKER] if ruleset.ghost else []) for _ in range(players)]
        for number, hand in enumerate(self._hands):
            hand.draws(range(dealt * number, dealt * (number + 1)))
        self._top = len(deck) - Game(ruleset, players, deck).view(seat).deck_size

    def note(self, event: Event) -> None:
        """Record one event."""
        match event:
            case Played(seat, layer):
                self._hands[seat].plays(layer.cards)
            case Taken(seat, layer) | Reclaimed(seat, layer) | GhostSnatched(seat, layer):
                self._hands[seat].gains(layer.cards)
            case Drawn(seat, None, (card,)):
                assert card == self._deck[self._top]
                self._hands[seat].draws([self._top])
                self._top += 1
            case Drawn(seat, _, cards):
                self._hands[seat].gains(cards)
            case DisplayRefilled(turned):
                self._top += len(turned)
            case GhostRefilled(ghost_cards, display_cards):
                self._top += len(ghost_cards) + len(display_cards)

    def redeal(self, chance: random.Random) -> tuple[int, ...]:
        """Return another deck with which the seat would have seen the same."""
        others = [hand for seat, hand in enumerate(self._hands) if seat != self._seat]
        owner = {at: hand for hand in others for at in hand.positions}
        hidden = [*owner, *range(self._top, len(self._deck))]
        deck = list(self._deck)
        for _ in range(SWAPS if len(hidden) > 1 else 0):
            one, other = chance.sample(hidden, 2)
            deck[one], deck[other] = deck[other], deck[one]
            touched = {owner[at] for at in (one, other) if at in owner}
            if not all(hand.could_play(deck) for hand in touched):
                deck[one], deck[other] = deck[other], deck[one]
        return tuple(deck)


Testimony = Callable[[Ruleset, int, Sequence[int], Sequence[Action], int], list[object]]
"""Returns everything that a seat sees while these actions are played with this deck."""


def find_seat_that_tells_apart(
    rules: Ruleset,
    deck: Sequence[int],
    log: Sequence[tuple[Action, tuple[Event, ...]]],
    *,
    players: int,
    chance: random.Random,
    testimony: Testimony,
) -> int | None:
    """Return a seat that sees something that it may not know in this game, or None.

    For each seat the function stops the game at a random decision and deals the hidden cards again. The
    seat must have seen the same with both decks.
    """
    for seat in range(players):
        stop = chance.randint(0, len(log))
        secrets = Secrets(rules, players, deck, seat)
        for _, events in log[:stop]:
            for event in events:
                secrets.note(event)
        actions = [action for action, _ in log[:stop]]
        seen = testimony(rules, players, deck, actions, seat)
        for _ in range(2):
            other = secrets.redeal(chance)
            if testimony(rules, players, other, actions, seat) != seen:
                return seat
    return None


def play_log(
    rules: Ruleset, players: int, deck: Sequence[int], choose: Callable[[Game], Action]
) -> list[tuple[Action, tuple[Event, ...]]]:
    """Play a game and return every action with its events."""
    game = Game(rules, players, deck)
    log = []
    while game.decision is not None:
        action = choose(game)
        log.append((action, game.apply(action)))
    return log
