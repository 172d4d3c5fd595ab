"""Engine and oracle agree at every decision, in real games and in unusual positions."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

import pytest
from few_tables import few_tables
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Oracle
from playouts import DUELS, POLICIES, VARIANTS, Policy, shuffled
from positions import Position

from referee.rules.events import Termination
from referee.rules.game import Game
from referee.rules.ruleset import JOKER, RULESETS, EndOn, Layer, Ruleset

pytestmark = pytest.mark.unmeasured

seeds = st.integers(0, 2**32)


def assert_same_game(
    game: Game, oracle: Oracle, policy: Policy, chance: random.Random
) -> Termination:
    """Play both to the end, compare everything, and return why the game ended."""
    while (decision := game.decision) is not None:
        expected = oracle.decision
        assert expected is not None
        assert (decision.seat, decision.kind) == (expected.seat, expected.kind)
        assert set(decision.legal) == set(expected.legal)
        assert len(decision.legal) == len(expected.legal), "an action is listed twice"
        for seat in range(game.players):
            assert game.view(seat) == oracle.view(seat)
        action = policy(decision, chance)
        events = game.apply(action)
        expected_events = oracle.apply(action)
        assert events == expected_events
        assert [type(event) for event in events] == [type(event) for event in expected_events]
    assert oracle.decision is None
    assert game.outcome is not None
    assert game.outcome == oracle.result
    for seat in range(game.players):
        ours, theirs = game.view(seat), oracle.view(seat)
        assert ours[: ours._fields.index("snatched")] == theirs[: theirs._fields.index("snatched")]
    return game.outcome.termination


@pytest.mark.parametrize("end_on", EndOn)
@few_tables
@settings(max_examples=10)
@given(
    seed=seeds,
    policy=st.sampled_from(POLICIES),
    max_turns=st.one_of(st.integers(1, 60), st.just(150)),
)
def test_engine_and_oracle_play_the_same_game(*, ruleset, players, end_on, seed, policy, max_turns):
    rules = ruleset.with_options(end_on=end_on, max_turns=max_turns)
    deck = shuffled(rules, seed)
    game, oracle = Game(rules, players, deck), Oracle.deal(rules, players, deck)
    assert_same_game(game, oracle, policy, random.Random(seed))


def unusual_position(rules: Ruleset, players: int, chance: random.Random) -> Position:
    """Return a random position, with gaps and groups in the display, small decks and high ghosts."""
    deck = list(shuffled(rules, chance.getrandbits(32)))

    def some(most: int, least: int = 0) -> tuple[int, ...]:
        return tuple(deck.pop() for _ in range(min(len(deck), chance.randint(least, most))))

    def layers() -> list[Layer]:
        found = []
        for _ in range(chance.randint(0, 3)):
            value = chance.choice((1, 5, 12, 13, JOKER))
            naturals = 0 if value == JOKER else chance.randint(1, 3)
            jokers = chance.randint(0 if naturals else 1, 2)
            wanted = Layer(value, naturals, jokers)
            if not Counter(wanted.cards) - Counter(deck):
                found.append(wanted)
                for card in wanted.cards:
                    deck.remove(card)
        return found

    tables = [layers() for _ in range(players)]
    sparse = chance.random() < 0.5
    supply = 1 if sparse or rules.end_on is EndOn.DECK else 0
    group_size = 3 if rules.ghost else 1
    return Position(
        ruleset=rules,
        hands=[some(6, least=1) for _ in range(players)],
        tables=tables,
        display=[some(group_size, least=0 if sparse else 1) for _ in range(6)],
        deck=some(chance.choice((1, 2, 5, 20)), least=supply),
        ghost=tuple(card for card in some(13) if card < 13) if rules.ghost else (),
        active=chance.randrange(players),
        turn=chance.randint(1, 3),
    )


@pytest.mark.parametrize("end_on", EndOn)
@pytest.mark.parametrize("name", VARIANTS)
@settings(max_examples=40)
@given(seed=seeds, policy=st.sampled_from(POLICIES), max_turns=st.integers(3, 40))
def test_engine_and_oracle_agree_in_unusual_positions(name, end_on, seed, policy, max_turns):
    chance = random.Random(seed)
    rules = VARIANTS[name].with_options(end_on=end_on, max_turns=max_turns)
    players = chance.randint(rules.min_players, rules.max_players)
    position = unusual_position(rules, players, chance)
    assert_same_game(position.game(), position.oracle(), policy, chance)


@pytest.mark.extended("plays more random games")
@pytest.mark.parametrize("name", DUELS)
def test_engine_and_oracle_play_the_same_500_duels_with_each_combination_of_options(name):
    rules = DUELS[name]
    for seed in range(500):
        deck, policy = shuffled(rules, seed), POLICIES[seed % len(POLICIES)]
        game, oracle = Game(rules, 2, deck), Oracle.deal(rules, 2, deck)
        assert_same_game(game, oracle, policy, random.Random(seed))


@pytest.mark.extended("plays more random games")
@pytest.mark.parametrize("name", RULESETS)
def test_policies_reach_every_end_of_a_game(name):
    """Otherwise the comparison above would be incomplete."""
    ends = set()
    for end_on, max_turns, policy in product(EndOn, (20, 300), POLICIES):
        rules = RULESETS[name].with_options(end_on=end_on, max_turns=max_turns)
        players = min(5, rules.max_players)
        deck = shuffled(rules, max_turns)
        game, oracle = Game(rules, players, deck), Oracle.deal(rules, players, deck)
        ends.add(assert_same_game(game, oracle, policy, random.Random(max_turns)))
    assert ends == set(Termination)
