"""Keep the state of a game: where every card is, and whose turn it is.

Most methods of `Table` move cards and record an event. They raise `GameEnded` when the move ends the game.
The function `turn` in `game` calls the methods in the right order. Section 2 of `proto/README.md` describes steps 1 to 4
of a turn, and `referee/rules/README.md` has the rulings.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from referee.rules.actions import Action, Choice, DrawDisplay
from referee.rules.events import (
    Discarded,
    DisplayRefilled,
    Drawn,
    Event,
    GhostRefilled,
    GhostSnatched,
    Left,
    Played,
    Reclaimed,
    SlotCard,
    Snatched,
    Taken,
    Termination,
    View,
)
from referee.rules.ruleset import (
    DISPLAY_SLOTS,
    EMPTY,
    HAND_SIZE,
    JOKER,
    JOKERS_DEALT,
    Counts,
    EndOn,
    GhostOverflow,
    GhostStart,
    Group,
    Layer,
    Ruleset,
    full_deck,
    list_cards,
)

GHOST_LIMIT = 13
"""All cards of the ghost are lower than this number."""
_draw_display = lru_cache(1 << 10)(DrawDisplay)  # the same draws are needed again and again


class GameEnded(Exception):
    """A move of cards ended the game. Only `Table` raises this, and only `Game` catches it."""

    def __init__(self, termination: Termination) -> None:
        super().__init__(termination)
        self.termination = termination


class Table:
    """All cards of a game and the state of its turn.

    `Game` creates a table with `deal`. The SDK's simulation and tests also create tables in other positions.
    """

    __slots__ = (
        "active",
        "cards_to_draw",
        "deck",
        "deck_size",
        "discards",
        "display",
        "events",
        "ghost",
        "hand_sizes",
        "hands",
        "layers",
        "ruleset",
        "snatched",
        "turn",
        "victim",
    )

    def __init__(self, ruleset: Ruleset, players: int, deck: Sequence[int] = ()) -> None:
        self.ruleset = ruleset
        self.hands: list[list[int]] = [list(EMPTY) for _ in range(players)]
        """The hand of each seat: 15 counts, indexed by card."""
        self.hand_sizes = [0] * players
        self.layers: list[tuple[Layer, ...]] = [()] * players
        self.display: tuple[Group, ...] = ((),) * DISPLAY_SLOTS
        self.deck = tuple(deck)
        self.deck_size = len(self.deck)
        """How many cards are left to draw: the last ones of `deck`. Drawing lowers this number and does not change `deck`."""
        self.discards: Counts = EMPTY
        self.ghost: Counts | None = EMPTY if ruleset.ghost else None
        self.active = 0
        """The seat of the active player."""
        self.turn = 1
        """The number of the turn, from 1."""
        self.snatched: Layer | None = None
        """The snatched layer, until it is taken, reclaimed or discarded; None at all other times."""
        self.victim: int | None = None
        """See `View.victim`."""
        self.cards_to_draw = 0
        """How many draws the victim has left. In an optional draw, how many the active player has left. See also `View.cards_to_draw`."""
        self.events: list[Event] = []
        """The events that `Game` has not collected yet."""

    @classmethod
    def deal(cls, ruleset: Ruleset, players: int, deck: Sequence[int]) -> Table:
        """Deal the cards of a new game (section 2 of `proto/README.md`; ruling R14).

        Raises ValueError when the ruleset does not allow this number of players or when the deck
        does not have exactly the cards of the ruleset.
        """
        ruleset.check_players(players)
        if sorted(deck) != list_cards(full_deck(ruleset)):
            raise ValueError(f"the deck does not have the cards of {ruleset.name}")
        table = cls(ruleset, players, deck)
        dealt_jokers = JOKERS_DEALT if ruleset.ghost else 0
        for seat in range(players):
            table._gain(seat, JOKER, dealt_jokers)
            for _ in range(HAND_SIZE - dealt_jokers):
                table._gain(seat, table._turn_up())
        table.display = tuple((table._turn_up(),) for _ in range(DISPLAY_SLOTS))
        if ruleset.ghost:
            as_dealt = ruleset.ghost_start is GhostStart.AS_DEALT  # ruling R16
            table._fill_ghost(table.deck_size - HAND_SIZE if as_dealt else 0)
        return table

    @property
    def players(self) -> int:
        """The number of seats."""
        return len(self.hands)

    def view(self, seat: int) -> View:
        """Return everything that `seat` may know (ruling R13)."""
        return View(
            seat,
            tuple(self.hands[seat]),
            tuple(self.hand_sizes),
            tuple(self.layers),
            self.display,
            self.deck_size,
            self.discards,
            self.ghost,
            self.active,
            self.turn,
            self.snatched,
            self.victim,
            self.cards_to_draw,
        )

    def copy(self) -> Table:
        """Return an independent table in the same position, without events."""
        other = Table.__new__(Table)
        other.ruleset = self.ruleset
        other.display = self.display
        other.deck = self.deck
        other.deck_size = self.deck_size
        other.discards = self.discards
        other.ghost = self.ghost
        other.active = self.active
        other.turn = self.turn
        other.snatched = self.snatched
        other.victim = self.victim
        other.cards_to_draw = self.cards_to_draw
        other.hands = list(map(list, self.hands))
        other.hand_sizes = self.hand_sizes[:]
        other.layers = self.layers[:]
        other.events = []
        return other

    # Layers

    def top(self, seat: int) -> Layer:
        """Return the top layer of a seat that has one."""
        return self.layers[seat][-1]

    def play(self, layer: Layer) -> None:
        """Move a layer from the active player's hand onto its table (step 1 of a turn).

        Raises GameEnded if the hand is empty after the move (step 2).
        """
        seat = self.active
        hand = self.hands[seat]
        value, naturals, jokers = layer
        hand[value] -= naturals
        hand[JOKER] -= jokers
        self.hand_sizes[seat] -= naturals + jokers
        self.layers[seat] += (layer,)
        self.events.append(Played(seat, layer))
        if not self.hand_sizes[seat]:
            raise GameEnded(Termination.OUT)

    def snatch(self, victim: int) -> None:
        """Remove the victim's top layer from its table (step 3 of a turn)."""
        self.snatched = self.top(victim)
        self.victim = victim
        self.layers[victim] = self.layers[victim][:-1]
        self.events.append(Snatched(self.active, victim, self.snatched))

    def take(self) -> None:
        """Put the snatched layer into the attacker's hand.

        The victim must draw once for each card of the layer.
        """
        layer = self._release()
        self._gain_layer(self.active, layer)
        self.cards_to_draw = layer.size
        self.events.append(Taken(self.active, layer))

    def leave(self) -> None:
        """Record that the attacker lets the victim decide about the snatched layer."""
        self.events.append(Left(self.active))

    def reclaim(self) -> None:
        """Put the snatched layer back into the victim's hand. The victim draws nothing."""
        victim, layer = self._victim(), self._release()
        self._gain_layer(victim, layer)
        self.victim = None
        self.events.append(Reclaimed(victim, layer))

    def discard(self) -> None:
        """Put the snatched layer on the discard pile.

        The victim must draw once for each card of the layer.
        """
        victim, layer = self._victim(), self._release()
        counts = list(self.discards)
        counts[layer.value] += layer.naturals
        counts[JOKER] += layer.jokers
        self.discards = tuple(counts)
        self.cards_to_draw = layer.size
        self.events.append(Discarded(victim, layer))

    # Drawing

    def draw_options(self) -> tuple[Action, ...]:
        """Return the legal draws: the deck, then each different card or group of the display (ruling R8)."""
        options: list[Action] = [Choice.DRAW_DECK] if self.deck_size else []
        distinct = dict.fromkeys(self.display)
        distinct.pop((), None)
        options += map(_draw_display, map(self.display.index, distinct), distinct)
        return tuple(options)

    def draw(self, seat: int, source: Action) -> None:
        """Let a seat draw once, from the deck or from a slot of the display.

        Raises GameEnded when the draw ends the game, even if the seat still has draws left (ruling R5).
        """
        self.cards_to_draw -= 1
        if isinstance(source, DrawDisplay):
            slot, cards = source
            self._put(slot, ())
            self.events.append(Drawn(seat, slot, cards))
        else:
            cards = (self._turn_up(),)
            self.events.append(Drawn(seat, None, cards))
        for card in cards:
            self._gain(seat, card)
        self._check_supply()

    def refill_display(self) -> None:
        """Fill the empty slots from the deck, left to right (rulings R8, R10)."""
        turned: list[SlotCard] = []
        for slot, cards in enumerate(self.display):
            if not cards and self.deck_size:
                turned.append(SlotCard(slot, self._turn_up()))
                self._put(slot, (turned[-1].card,))
        if turned:
            self.events.append(DisplayRefilled(tuple(turned)))
            self._check_supply()

    # The duel's ghost

    def snatch_ghost(self, value: int) -> None:
        """Put all cards of one value from the ghost into the attacker's hand, and refill the ghost."""
        counts = list(self.ghost or EMPTY)
        layer = Layer(value, counts[value], 0)
        counts[value] = 0
        self.ghost = tuple(counts)
        self._gain_layer(self.active, layer)
        self.events.append(GhostSnatched(self.active, layer))
        refilled = self._fill_ghost()
        if refilled.ghost_cards or refilled.display_cards:
            self.events.append(refilled)
            self._check_supply()

    def _fill_ghost(self, deck_left: int = 0) -> GhostRefilled:
        """Turn cards up until the ghost has 13 cards or only `deck_left` cards are in the deck, and return the event.

        13s and jokers are put onto the display and do not count (rulings R9 and R11).
        """
        counts = list(self.ghost or EMPTY)
        ghost_cards: list[int] = []
        display_cards: list[SlotCard] = []
        missing = HAND_SIZE - sum(counts)
        while len(ghost_cards) < missing and self.deck_size > deck_left:
            card = self._turn_up()
            if card < GHOST_LIMIT:
                counts[card] += 1
                ghost_cards.append(card)
            else:
                slot = self._slot_for_group()
                self._put(slot, (*self.display[slot], card))
                display_cards.append(SlotCard(slot, card))
        self.ghost = tuple(counts)
        return GhostRefilled(tuple(ghost_cards), tuple(display_cards))

    def _slot_for_group(self) -> int:
        """Return the slot for a 13 or joker that was turned up for the ghost (rulings R9 and R18).

        With `GhostOverflow.SINGLE`, it is the slot with the lowest single card. With `GhostOverflow.LOWEST`, and also
        if no slot has a single card, it is the slot with the lowest bottom card. If several slots fit equally well, it is
        the leftmost of them. If the display is empty, it is slot 0.
        """
        filled = [slot for slot, cards in enumerate(self.display) if cards]
        if self.ruleset.ghost_overflow is GhostOverflow.SINGLE:
            filled = [slot for slot in filled if len(self.display[slot]) == 1] or filled
        return min(filled, key=lambda slot: self.display[slot][0], default=0)

    # Shared

    def _victim(self) -> int:
        assert self.victim is not None  # noqa: S101 - only called while a layer is snatched
        return self.victim

    def _release(self) -> Layer:
        layer = self.snatched
        assert layer is not None  # noqa: S101 - only called while a layer is snatched
        self.snatched = None
        return layer

    def _gain(self, seat: int, card: int, copies: int = 1) -> None:
        self.hands[seat][card] += copies
        self.hand_sizes[seat] += copies

    def _gain_layer(self, seat: int, layer: Layer) -> None:
        hand = self.hands[seat]
        value, naturals, jokers = layer
        hand[value] += naturals
        hand[JOKER] += jokers
        self.hand_sizes[seat] += naturals + jokers

    def _turn_up(self) -> int:
        card = self.deck[len(self.deck) - self.deck_size]
        self.deck_size -= 1
        return card

    def _put(self, slot: int, cards: Group) -> None:
        self.display = (*self.display[:slot], cards, *self.display[slot + 1 :])

    def _check_supply(self) -> None:
        if self.deck_size:
            return
        if self.ruleset.end_on is EndOn.DECK:
            raise GameEnded(Termination.DECK_EMPTY)
        if not any(self.display):
            raise GameEnded(Termination.EXHAUSTED)
