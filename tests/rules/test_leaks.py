"""No seat learns hidden cards from its views, decisions or events.

`test_leaks_on_the_wire` tests the same for the bytes of the messages.
"""

from __future__ import annotations

import random

import pytest
from few_tables import few_tables
from hypothesis import given, settings
from hypothesis import strategies as st
from playouts import POLICIES, TABLE_NAMES, TABLES, anything, shuffled
from redeal import Secrets, find_seat_that_tells_apart, play_log

from referee.rules.events import Drawn, redact
from referee.rules.game import Game
from referee.rules.ruleset import HIDDEN, RULESETS, Counts

pytestmark = pytest.mark.unmeasured


def honest(game: Game, seat: int, events) -> object:
    """Return what a seat may see at a decision."""
    decision = game.decision
    if decision is not None and decision.seat != seat:
        decision = (decision.seat, decision.kind)  # both follow from the events
    return (game.view(seat), decision, [redact(event, seat) for event in events])


def make_testimony(witness):
    """Return a testimony that collects what `witness` returns at each decision."""

    def testimony(rules, players, deck, actions, seat) -> list[object]:
        game = Game(rules, players, deck)
        seen = [witness(game, seat, ())]
        for action in actions:
            events = game.apply(action)
            seen.append(witness(game, seat, events))
        return seen

    return testimony


def find_leak(ruleset, players, seed, policy, witness):
    rules, chance = ruleset.with_options(max_turns=100), random.Random(seed)
    deck = shuffled(rules, seed)
    log = play_log(rules, players, deck, lambda game: policy(game.decision, chance))
    return find_seat_that_tells_apart(
        rules, deck, log, players=players, chance=chance, testimony=make_testimony(witness)
    )


@few_tables
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32), policy=st.sampled_from(POLICIES))
def test_views_decisions_and_events_do_not_depend_on_hidden_cards(ruleset, players, seed, policy):
    assert find_leak(ruleset, players, seed, policy, honest) is None


# The check itself finds leaks


@pytest.mark.parametrize(("ruleset", "players"), TABLES, ids=TABLE_NAMES)
def test_redeal_changes_the_other_hands_and_the_deck(ruleset, players):
    deck, chance = shuffled(ruleset, 5), random.Random(5)
    log = play_log(ruleset, players, deck, lambda game: anything(game.decision, chance))[:25]
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
    other_hands, other_undrawn = hidden(secrets.redeal(chance))
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
    """Show whether another seat holds a joker."""
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
def test_deliberate_leak_is_found(name, leak):
    found = (find_leak(RULESETS[name], 2, seed, anything, leak) is not None for seed in range(60))
    assert any(found)


def test_card_that_another_seat_draws_from_the_deck_is_hidden():
    event = Drawn(1, None, (7,))
    assert redact(event, 0) == Drawn(1, None, (HIDDEN,))
    assert redact(event, 1) is event
