"""Implement the rules a second time, slowly and simply, from the written rules alone.

Tests compare this oracle with the engine. It uses only the types of `referee.rules`: cards are items of
lists, and a turn is an explicit state machine. Comments name the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from referee.rules.actions import (
    Action,
    Choice,
    Decision,
    DecisionKind,
    DrawDisplay,
    Play,
    SnatchGhost,
)
from referee.rules.events import (
    Discarded,
    DisplayRefilled,
    Drawn,
    Event,
    GameOver,
    GhostDeclined,
    GhostRefilled,
    GhostSnatched,
    Left,
    Passed,
    Played,
    Reclaimed,
    SlotCard,
    Snatched,
    Taken,
    Termination,
    View,
)
from referee.rules.ruleset import EndOn, GhostOverflow, GhostSnatch, GhostStart, Layer, Ruleset

X = 14  # a joker


class Step(Enum):
    """The next step of a turn."""

    PLAY = auto()
    GHOST = auto()
    COMPARE = auto()
    TAKE_OR_LEAVE = auto()
    RECLAIM_OR_DISCARD = auto()
    DRAW = auto()
    MAY_DRAW = auto()
    PASS_ON = auto()
    OVER = auto()


def multiset(cards: Sequence[int]) -> tuple[int, ...]:
    return tuple(list(cards).count(card) for card in range(15))


def value_of(layer: list[int]) -> int:
    numbers = [card for card in layer if card != X]
    return numbers[0] if numbers else X  # only jokers: higher than 13


def as_layer(layer: list[int]) -> Layer:
    jokers = layer.count(X)
    return Layer(value_of(layer), len(layer) - jokers, jokers)


def as_cards(layer: Layer) -> list[int]:
    return [layer.value] * layer.naturals + [X] * layer.jokers


class Oracle:
    """One game, with the interface of `referee.rules.game.Game`."""

    def __init__(self, ruleset: Ruleset, players: int) -> None:
        """Start with an empty table."""
        self.rules = ruleset
        self.deck: list[int] = []
        self.hands: list[list[int]] = [[] for _ in range(players)]
        self.tables: list[list[list[int]]] = [[] for _ in range(players)]
        self.display: list[list[int]] = [[], [], [], [], [], []]
        self.discards: list[int] = []
        self.ghost: list[int] | None = [] if ruleset.ghost else None

        self.active = 0  # R14: seat 0 starts
        self.turn = 1
        self.step = Step.PLAY
        self.opponents: list[int] = []  # not yet compared in this turn
        self.snatches = 0  # in this turn, also from the ghost (R3)
        self.snatched: list[int] = []  # the layer that is being decided about
        self.victim: int | None = None
        self.drawer: int | None = None
        self.draws_left = 0
        self.after_draw = Step.PASS_ON
        self.result: GameOver | None = None
        self.events: list[Event] = []

    @classmethod
    def deal(cls, ruleset: Ruleset, players: int, deck: Sequence[int]) -> Oracle:
        # R14: 13 cards a seat; in the duel 2 jokers from outside and 11 cards.
        game = cls(ruleset, players)
        game.deck = list(deck)
        for seat in range(players):
            if ruleset.ghost:
                game.hands[seat] = [X, X] + [game.deck.pop(0) for _ in range(11)]
            else:
                game.hands[seat] = [game.deck.pop(0) for _ in range(13)]
        for slot in range(6):
            game.display[slot] = [game.deck.pop(0)]
        if ruleset.ghost and ruleset.ghost_start is GhostStart.THIRTEEN:
            game._fill_ghost()
        elif ruleset.ghost:
            for _ in range(13):  # R16: as dealt
                game._turn_up_for_ghost()
        return game

    # The interface.

    @property
    def decision(self) -> Decision | None:
        decisions = {
            Step.PLAY: (DecisionKind.PLAY, self.active),
            Step.GHOST: (DecisionKind.GHOST_SET, self.active),
            Step.TAKE_OR_LEAVE: (DecisionKind.TAKE_OR_LEAVE, self.active),
            Step.RECLAIM_OR_DISCARD: (DecisionKind.RECLAIM_OR_DISCARD, self.victim),
            Step.DRAW: (DecisionKind.DRAW, self.drawer),
            Step.MAY_DRAW: (DecisionKind.OPTIONAL_DRAW, self.active),
        }
        if self.step is Step.OVER:
            return None
        kind, seat = decisions[self.step]
        assert seat is not None
        return Decision(seat, kind, tuple(self._options()))

    def view(self, seat: int) -> View:
        layer_pending = self.step in (Step.TAKE_OR_LEAVE, Step.RECLAIM_OR_DISCARD)
        victim = None
        if layer_pending or self.step is Step.DRAW:
            victim = self.victim
        to_draw = 0
        if self.step is Step.DRAW:
            to_draw = self.draws_left
        if self.step is Step.MAY_DRAW:
            to_draw = 1
        return View(
            seat=seat,
            hand=multiset(self.hands[seat]),
            hand_sizes=tuple(len(hand) for hand in self.hands),
            tables=tuple(tuple(as_layer(layer) for layer in table) for table in self.tables),
            display=tuple(tuple(slot) for slot in self.display),
            deck_size=len(self.deck),
            discards=multiset(self.discards),
            ghost=None if self.ghost is None else multiset(self.ghost),
            active_seat=self.active,
            turn=self.turn,
            snatched=as_layer(self.snatched) if layer_pending else None,
            victim=victim,
            cards_to_draw=to_draw,
        )

    def apply(self, action: Action) -> tuple[Event, ...]:
        assert action in self._options()
        self.events = []
        if self.step is Step.PLAY:
            self._play(as_cards(action.layer))
        elif self.step is Step.GHOST:
            self._decide_about_ghost(action)
        elif self.step is Step.TAKE_OR_LEAVE:
            self._take_or_leave(action)
        elif self.step is Step.RECLAIM_OR_DISCARD:
            self._reclaim_or_discard(action)
        elif action is Choice.PASS:
            self._record(Passed(self.active))
            self.step = Step.PASS_ON
        else:
            self._start_optional_draw()
            self._draw(action)
        self._go_on()
        return tuple(self.events)

    # Legal actions.

    def _options(self) -> list[Action]:
        if self.step is Step.PLAY:
            return self._plays()
        if self.step is Step.GHOST:
            sets = [SnatchGhost(value) for value in self._ghost_sets()]
            return [*sets, Choice.PASS] if self._may_spare_ghost() else sets
        if self.step is Step.TAKE_OR_LEAVE:
            return [Choice.TAKE, Choice.LEAVE]
        if self.step is Step.RECLAIM_OR_DISCARD:
            return [Choice.RECLAIM, Choice.DISCARD]
        if self.step is Step.MAY_DRAW:
            return [Choice.PASS, *self._sources()]
        return self._sources()

    def _plays(self) -> list[Action]:
        hand = self.hands[self.active]
        options: list[Action] = []
        for value in range(1, 14):
            for naturals in range(1, hand.count(value) + 1):
                for jokers in range(hand.count(X) + 1):
                    options.append(Play(Layer(value, naturals, jokers)))  # noqa: PERF401
        for jokers in range(1, hand.count(X) + 1):
            options.append(Play(Layer(X, 0, jokers)))  # noqa: PERF401
        return options

    def _sources(self) -> list[Action]:
        options: list[Action] = []
        if self.deck:
            options.append(Choice.DRAW_DECK)
        listed: list[list[int]] = []
        for slot, cards in enumerate(self.display):
            if cards and cards not in listed:  # R8: each distinct card or group once
                listed.append(cards)
                options.append(DrawDisplay(slot, tuple(cards)))
        return options

    def _ghost_sets(self) -> list[int]:
        if self.ghost is None:
            return []
        new = self.tables[self.active][-1]
        return [
            value
            for value in range(1, 14)
            if self.ghost.count(value) == len(new) and value < value_of(new)
        ]

    def _may_spare_ghost(self) -> bool:
        return self.rules.ghost_snatch is GhostSnatch.OPTIONAL  # R17

    def _snatches(self, new: list[int], top: list[int]) -> bool:
        if len(new) != len(top):
            return False
        if value_of(new) > value_of(top):
            return True
        if value_of(new) == 1 and value_of(top) == X:
            return self.rules.ones_snatch_jokers
        if value_of(new) == 1 and value_of(top) == 13:
            return self.rules.ones_snatch_thirteens
        return False

    # The turn.

    def _go_on(self) -> None:
        """Take every step that needs no decision."""
        while True:
            if self.step is Step.GHOST:
                sets = self._ghost_sets()
                if len(sets) > 1 or (sets and self._may_spare_ghost()):
                    return
                if sets:
                    self._snatch_from_ghost(sets[0])  # R7: one set only
                else:
                    self.step = Step.COMPARE
            elif self.step is Step.COMPARE:
                self._compare()
            elif self.step is Step.DRAW:
                sources = self._sources()
                if len(sources) > 1:
                    return
                self._draw(sources[0])  # R7: one source only
            elif self.step is Step.PASS_ON:
                self._pass_on()
            else:
                return

    def _play(self, cards: list[int]) -> None:
        for card in cards:
            self.hands[self.active].remove(card)
        self.tables[self.active].append(cards)
        self._record(Played(self.active, as_layer(cards)))
        self.snatches = 0
        seats = len(self.hands)
        self.opponents = [(self.active + step) % seats for step in range(1, seats)]
        self.step = Step.GHOST
        if not self.hands[self.active]:
            self._end(Termination.OUT)

    def _decide_about_ghost(self, action: Action) -> None:
        if action is Choice.PASS:
            self._record(GhostDeclined(self.active))
            self.step = Step.COMPARE
        else:
            self._snatch_from_ghost(action.value)

    def _snatch_from_ghost(self, value: int) -> None:
        assert self.ghost is not None
        cards = [card for card in self.ghost if card == value]
        self.ghost = [card for card in self.ghost if card != value]
        self.hands[self.active] += cards
        self.snatches += 1
        self._record(GhostSnatched(self.active, as_layer(cards)))
        self.step = Step.COMPARE
        joined, aside = self._fill_ghost()
        if joined or aside:
            self._record(GhostRefilled(tuple(joined), tuple(aside)))
        self._end_if_used_up()

    def _compare(self) -> None:
        if not self.opponents:
            may_draw = self.rules.optional_draw and self.snatches == 0
            self.step = Step.MAY_DRAW if may_draw else Step.PASS_ON
            return
        opponent = self.opponents.pop(0)
        table = self.tables[opponent]
        if table and self._snatches(self.tables[self.active][-1], table[-1]):
            self.snatched = table.pop()
            self.victim = opponent
            self.snatches += 1
            self._record(Snatched(self.active, opponent, as_layer(self.snatched)))
            self.step = Step.TAKE_OR_LEAVE

    def _take_or_leave(self, action: Action) -> None:
        if action is Choice.LEAVE:
            self._record(Left(self.active))
            self.step = Step.RECLAIM_OR_DISCARD
            return
        self._record(Taken(self.active, as_layer(self.snatched)))
        self.hands[self.active] += self.snatched
        self._victim_draws()

    def _reclaim_or_discard(self, action: Action) -> None:
        assert self.victim is not None
        if action is Choice.RECLAIM:
            self._record(Reclaimed(self.victim, as_layer(self.snatched)))
            self.hands[self.victim] += self.snatched
            self.step = Step.COMPARE
            return
        self._record(Discarded(self.victim, as_layer(self.snatched)))
        self.discards += self.snatched
        self._victim_draws()

    def _victim_draws(self) -> None:
        self.draws_left = len(self.snatched)
        self.drawer = self.victim
        self.after_draw = Step.COMPARE
        self.step = Step.DRAW

    def _start_optional_draw(self) -> None:
        if self.step is Step.MAY_DRAW:
            self.draws_left = 1
            self.drawer = self.active
            self.after_draw = Step.PASS_ON

    def _draw(self, source: Action) -> None:
        assert self.drawer is not None
        if isinstance(source, DrawDisplay):
            cards = self.display[source.slot]
            self.display[source.slot] = []
            self._record(Drawn(self.drawer, source.slot, tuple(cards)))
        else:
            cards = [self.deck.pop(0)]
            self._record(Drawn(self.drawer, None, tuple(cards)))
        self.hands[self.drawer] += cards
        self.draws_left -= 1
        self.step = Step.DRAW
        self._end_if_used_up()
        if self.step is Step.OVER or self.draws_left:
            return
        self.step = self.after_draw
        self._refill_display()
        self._end_if_used_up()

    def _pass_on(self) -> None:
        if self.turn == self.rules.max_turns:  # R12
            self._end(Termination.TURN_LIMIT)
            return
        self.turn += 1
        self.active = (self.active + 1) % len(self.hands)
        self.step = Step.PLAY

    # The deck.

    def _refill_display(self) -> None:
        turned = []
        for slot in range(6):  # R8: in place, left to right
            if self.deck and not self.display[slot]:
                card = self.deck.pop(0)
                self.display[slot].append(card)
                turned.append(SlotCard(slot, card))
        if turned:
            self._record(DisplayRefilled(tuple(turned)))

    def _fill_ghost(self) -> tuple[list[int], list[SlotCard]]:
        assert self.ghost is not None
        joined = []
        aside = []
        while self.deck and len(self.ghost) < 13:  # R11
            turned = self._turn_up_for_ghost()
            if isinstance(turned, SlotCard):
                aside.append(turned)
            else:
                joined.append(turned)
        return joined, aside

    def _turn_up_for_ghost(self) -> int | SlotCard:
        """Turn up one card: a card of the ghost, or a 13 or joker for the display."""
        assert self.ghost is not None
        card = self.deck.pop(0)
        if card in (13, X):
            slot = self._slot_for_group()
            self.display[slot].append(card)
            return SlotCard(slot, card)
        self.ghost.append(card)
        return card

    def _slot_for_group(self) -> int:
        if self.rules.ghost_overflow is GhostOverflow.LOWEST:
            # R18: the slot with the lowest bottom card, then leftmost; else slot 0.
            bottoms = sorted((cards[0], slot) for slot, cards in enumerate(self.display) if cards)
            return bottoms[0][1] if bottoms else 0
        # R9: the lowest single, then leftmost; else the group with the lowest bottom; else slot 0.
        best = None
        for wanted_single in (True, False):
            for slot, cards in enumerate(self.display):
                if not cards or (len(cards) == 1) is not wanted_single:
                    continue
                if best is None or cards[0] < self.display[best][0]:
                    best = slot
            if best is not None:
                return best
        return 0

    # The end.

    def _end_if_used_up(self) -> None:
        if self.deck:
            return
        if self.rules.end_on is EndOn.DECK:
            self._end(Termination.DECK_EMPTY)
        elif not any(self.display):
            self._end(Termination.EXHAUSTED)

    def _end(self, why: Termination) -> None:
        scores = []
        for hand, table in zip(self.hands, self.tables, strict=True):
            scores.append(sum(len(layer) for layer in table) - len(hand))
        self.result = GameOver(why, tuple(scores), self._ranks(scores))
        self._record(self.result)
        self.step = Step.OVER

    def _ranks(self, scores: list[int]) -> tuple[int, ...]:
        # R15: one plus the number of seats that are better.
        def better(one: int, other: int) -> bool:
            if scores[one] != scores[other]:
                return scores[one] > scores[other]
            if self.rules.hand_size_breaks_ties:
                return len(self.hands[one]) < len(self.hands[other])
            return False

        seats = range(len(scores))
        return tuple(1 + sum(better(other, seat) for other in seats) for seat in seats)

    def _record(self, event: Event) -> None:
        self.events.append(event)
