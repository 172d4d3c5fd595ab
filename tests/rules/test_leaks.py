"""No seat is told what it may not know: neither by its views and decisions nor by its events.

The same is shown of the bytes on the wire in `test_leaks_on_the_wire`.
"""

from __future__ import annotations

import random

import pytest
from few_tables import few_tables
from hypothesis import given, settings
from hypothesis import strategies as st
from playouts import POLICIES, TABLE_NAMES, TABLES, anything, shuffled
from redeal import Secrets, log_of, tells_apart

from referee.rules.cards import HIDDEN, Counts
from referee.rules.events import Drawn, redact
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS

pytestmark = pytest.mark.unmeasured


def honest(game: Game, seat: int, events) -> object:
    """What a seat is told at a decision, its own or another's."""
    decision = game.decision
    if decision is not None and decision.seat != seat:
        decision = (decision.seat, decision.kind)  # which follow from the events
    return (game.view(seat), decision, [redact(event, seat) for event in events])


def told_by(witness):
    """The testimony of a seat that at each decision is told what `witness` says."""

    def testimony(rules, players, deck, actions, seat) -> list[object]:
        game = Game(rules, players, deck)
        told = [witness(game, seat, ())]
        for action in actions:
            events = game.apply(action)
            told.append(witness(game, seat, events))
        return told

    return testimony


def find_leak(ruleset, players, seed, policy, witness):
    rules, chance = ruleset.with_options(max_turns=100), random.Random(seed)
    deck = shuffled(rules, seed)
    log = log_of(rules, players, deck, lambda game: policy(game.decision, chance))
    return tells_apart(rules, deck, log, players=players, chance=chance, testimony=told_by(witness))


@few_tables
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32), policy=st.sampled_from(POLICIES))
def test_what_a_seat_cannot_know_it_is_not_told(ruleset, players, seed, policy):
    assert find_leak(ruleset, players, seed, policy, honest) is None


# The check itself: it deals anew what matters, and finds what leaks


@pytest.mark.parametrize(("ruleset", "players"), TABLES, ids=TABLE_NAMES)
def test_another_deal_moves_cards_of_the_other_hands_and_of_the_deck(ruleset, players):
    deck, chance = shuffled(ruleset, 5), random.Random(5)
    log = log_of(ruleset, players, deck, lambda game: anything(game.decision, chance))[:25]
    secrets = Secrets(ruleset, players, deck, 0)
    for _, events in log:
        for event in events:
            secrets.note(event)

    def hidden(deck) -> tuple[list[Counts], tuple[int, ...]]:
        game = Game(ruleset, players, deck)
        for action, _ in log:
            game.apply(action)
        others = [game.view(seat).hand for seat in range(1, players)]
        return others, game.table.deck[len(game.table.deck) - game.table.deck_size :]

    hands, undrawn = hidden(deck)
    other_hands, other_undrawn = hidden(secrets.deal_anew(chance))
    assert all(map(lambda one, other: one != other, hands, other_hands))
    assert sum(map(lambda one, other: one != other, undrawn, other_undrawn)) > len(undrawn) / 2


def next_card_of_the_deck(game, seat, events):
    top = game.table.deck[len(game.table.deck) - game.table.deck_size :][:1]
    return (honest(game, seat, events), top)


def last_card_of_the_deck(game, seat, events):
    return (honest(game, seat, events), game.table.deck[-1])


def anothers_hand(game, seat, events):
    return (honest(game, seat, events), game.view((seat + 1) % game.players).hand)


def a_bit_of_anothers_hand(game, seat, events):
    """Whether anybody else holds a joker."""
    others = [game.view(other).hand[-1] for other in range(game.players) if other != seat]
    return (honest(game, seat, events), any(others))


def anothers_options(game, seat, events):
    return (honest(game, seat, events), game.decision and len(game.decision.legal))


def unredacted_events(game, seat, events):
    return (honest(game, seat, ()), events)


def events_that_mark_jokers(game, seat, events):
    def seen(event):
        if isinstance(event, Drawn) and event.cards != (14,):
            return redact(event, seat)
        return event

    return (honest(game, seat, ()), [seen(event) for event in events])


LEAKS = [
    next_card_of_the_deck,
    last_card_of_the_deck,
    anothers_hand,
    a_bit_of_anothers_hand,
    anothers_options,
    unredacted_events,
    events_that_mark_jokers,
]


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.__name__)
@pytest.mark.parametrize("name", RULESETS)
def test_a_leak_is_found(name, leak):
    found = (find_leak(RULESETS[name], 2, seed, anything, leak) is not None for seed in range(60))
    assert any(found)


def test_a_card_that_another_seat_draws_from_the_deck_is_hidden():
    event = Drawn(1, None, (7,))
    assert redact(event, 0) == Drawn(1, None, (HIDDEN,))
    assert redact(event, 1) is event
