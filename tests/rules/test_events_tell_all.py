"""A seat can compute its view from its first view and its redacted events."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playouts import POLICIES, TABLE_NAMES, TABLES, shuffled

from referee.rules.events import (
    Discarded,
    DisplayRefilled,
    Drawn,
    Event,
    GhostRefilled,
    GhostSnatched,
    Played,
    Reclaimed,
    Snatched,
    Taken,
    View,
    redact,
)
from referee.rules.game import Game
from referee.rules.ruleset import HIDDEN


class Books:
    """A view that is updated with the redacted events of one seat."""

    def __init__(self, view: View) -> None:
        self.seat = view.seat
        self.hand = list(view.hand)
        self.hand_sizes = list(view.hand_sizes)
        self.tables = [list(table) for table in view.tables]
        self.display = [list(slot) for slot in view.display]
        self.deck_size = view.deck_size
        self.discards = list(view.discards)
        self.ghost = None if view.ghost is None else list(view.ghost)

    def into_hand(self, seat: int, cards: tuple[int, ...]) -> None:
        self.hand_sizes[seat] += len(cards)
        if seat == self.seat:
            for card in cards:
                self.hand[card] += 1

    def note(self, event: Event) -> None:  # noqa: C901, PLR0912 - one case a kind
        match event:
            case Played(seat, layer):
                self.hand_sizes[seat] -= layer.size
                self.tables[seat].append(layer)
                if seat == self.seat:
                    for card in layer.cards:
                        self.hand[card] -= 1
            case Snatched(_, victim, layer):
                assert self.tables[victim].pop() == layer
            case Taken(seat, layer) | Reclaimed(seat, layer):
                self.into_hand(seat, layer.cards)
            case Discarded(_, layer):
                for card in layer.cards:
                    self.discards[card] += 1
            case Drawn(seat, slot, cards):
                self.into_hand(seat, cards)
                if slot is None:
                    self.deck_size -= 1
                else:
                    assert self.display[slot] == list(cards)
                    self.display[slot] = []
            case DisplayRefilled(turned):
                self.turn_up(turned)
            case GhostSnatched(seat, layer):
                self.ghost[layer.value] -= layer.size
                self.into_hand(seat, layer.cards)
            case GhostRefilled(ghost_cards, display_cards):
                self.deck_size -= len(ghost_cards)
                for card in ghost_cards:
                    self.ghost[card] += 1
                self.turn_up(display_cards)

    def turn_up(self, turned) -> None:
        self.deck_size -= len(turned)
        for slot, card in turned:
            self.display[slot].append(card)

    def assert_equal(self, view: View) -> None:
        assert self.hand == list(view.hand)
        assert self.hand[HIDDEN] == 0
        assert self.hand_sizes == list(view.hand_sizes)
        assert self.tables == [list(table) for table in view.tables]
        assert self.display == [list(slot) for slot in view.display]
        assert self.deck_size == view.deck_size
        assert self.discards == list(view.discards)
        assert self.ghost == (None if view.ghost is None else list(view.ghost))


@pytest.mark.parametrize(("ruleset", "players"), TABLES, ids=TABLE_NAMES)
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32), policy=st.sampled_from(POLICIES))
def test_redacted_events_of_a_seat_add_up_to_its_view(ruleset, players, seed, policy):
    rules = ruleset.with_options(max_turns=120)
    game, chance = Game(rules, players, shuffled(rules, seed)), random.Random(seed)
    books = [Books(game.view(seat)) for seat in range(players)]
    while game.decision is not None:
        for event in game.apply(policy(game.decision, chance)):
            for seat in range(players):
                books[seat].note(redact(event, seat))
        for seat in range(players):
            books[seat].assert_equal(game.view(seat))
