"""Deals that a seat cannot tell apart: all that it may not know is dealt anew.

What a seat may not know lies at *hidden positions* of the deck: cards dealt to other seats, cards that
others drew from the deck, cards that nobody has drawn yet. Everything else of the deck it has seen.
The cards of two hidden positions may be swapped as long as every layer that the others have played
could still be played when it was. The same actions are then legal, and all that the seat may see is
the same. This is worked out from the events alone, without the engine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from referee.rules.actions import Action
from referee.rules.cards import JOKER
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
from referee.rules.ruleset import Ruleset

SWAPS = 150
"""Tried for each new deal."""


class Hand:
    """What went into a hand and what left it, in order."""

    def __init__(self, known: Sequence[int]) -> None:
        self._known = tuple(known)
        self._moves: list[tuple[int, Sequence[int]]] = []
        """+1 and the cards seen going in, -1 and the cards played, 0 and hidden positions."""

    def draws(self, positions: Sequence[int]) -> None:
        self._moves.append((0, positions))

    def gains(self, cards: Sequence[int]) -> None:
        self._moves.append((1, cards))

    def plays(self, cards: Sequence[int]) -> None:
        self._moves.append((-1, cards))

    @property
    def positions(self) -> list[int]:
        """The positions of the deck whose cards this hand drew unseen."""
        return [at for sign, positions in self._moves if sign == 0 for at in positions]

    def could_play(self, deck: Sequence[int]) -> bool:
        """Whether every play was possible, were the deck this one."""
        held = [0] * 15
        for card in self._known:
            held[card] += 1
        for sign, what in self._moves:
            for one in what:
                if sign == 0:
                    held[deck[one]] += 1
                else:
                    held[one] += sign
                    if held[one] < 0:
                        return False
        return True


class Secrets:
    """What one seat may not know of a game, kept from the game's complete events."""

    def __init__(self, ruleset: Ruleset, players: int, deck: Sequence[int], seat: int) -> None:
        self._deck = tuple(deck)
        self._seat = seat
        dealt = 11 if ruleset.ghost else 13
        self._hands = [Hand([JOKER, JOKER] if ruleset.ghost else []) for _ in range(players)]
        for number, hand in enumerate(self._hands):
            hand.draws(range(dealt * number, dealt * (number + 1)))
        self._top = len(deck) - Game(ruleset, players, deck).view(seat).deck_size

    def note(self, event: Event) -> None:
        """Follow one event."""
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

    def deal_anew(self, chance: random.Random) -> tuple[int, ...]:
        """Another deck under which the seat has seen all the same."""
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
"""All that a seat was told while these actions were played with this deck."""


def tells_apart(
    rules: Ruleset,
    deck: Sequence[int],
    log: Sequence[tuple[Action, tuple[Event, ...]]],
    *,
    players: int,
    chance: random.Random,
    testimony: Testimony,
) -> int | None:
    """A seat that is told something it may not know in this game, or None.

    Each seat's testimony up to a random decision is compared with the one it would have given had
    all that it could not know until then been dealt in another way.
    """
    for seat in range(players):
        stop = chance.randint(0, len(log))
        secrets = Secrets(rules, players, deck, seat)
        for _, events in log[:stop]:
            for event in events:
                secrets.note(event)
        actions = [action for action, _ in log[:stop]]
        told = testimony(rules, players, deck, actions, seat)
        for _ in range(2):
            other = secrets.deal_anew(chance)
            if testimony(rules, players, other, actions, seat) != told:
                return seat
    return None


def log_of(
    rules: Ruleset, players: int, deck: Sequence[int], choose: Callable[[Game], Action]
) -> list[tuple[Action, tuple[Event, ...]]]:
    """Play a game: every action and its events."""
    game = Game(rules, players, deck)
    log = []
    while game.decision is not None:
        action = choose(game)
        log.append((action, game.apply(action)))
    return log
