"""The game of OpenSpiel passes the tests of OpenSpiel, follows the rules, and hides what the protocol hides."""

from __future__ import annotations

import inspect
import random
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyspiel
import pytest
from absl import flags
from extended import extend_cases_but
from hypothesis import given, settings
from hypothesis import strategies as st
from open_spiel.python.algorithms.generate_playthrough import replay
from open_spiel.python.algorithms.ismcts import ISMCTSBot
from open_spiel.python.algorithms.mcts import RandomRolloutEvaluator
from open_spiel.python.observation import make_observation

from referee.rules.game import Game
from referee.rules.ruleset import FULL, RULESETS, Ruleset
from referee.sdk.env import ACTIONS, Encoding, MaskedActionError, encode_action
from referee.train.games import reward_by_rank
from referee.train.openspiel import GAME_TYPE, OPTIONS, bound_game_length

sys.path.insert(0, str(Path(__file__).parents[1] / "rules"))
from few_tables import few_tables
from playouts import POLICIES, TABLE_NAMES, TABLES, anything, shuffled
from redeal import find_seat_that_tells_apart, play_log

PLAYTHROUGH = Path(__file__).parent / "golden" / "linko_duel.txt"
CASES = {
    f"{name}-{players}": (name, players)
    for name, ruleset in RULESETS.items()
    for players in range(ruleset.min_players, ruleset.max_players + 1)
}
library_tests = pytest.mark.parametrize(
    ("name", "players", "turns"),
    [
        pytest.param("duel", 2, 6, id="short"),
        *extend_cases_but((), {key: (*case, 500) for key, case in CASES.items()}, "plays games"),
    ],
)


def load(name, players, turns=500):
    return pyspiel.load_game(f"linko(ruleset={name},players={players},max_turns={turns})")


def load_rules(rules, players):
    """Load the game of a ruleset with all its options."""
    params = {"ruleset": rules.name, "players": players, "max_turns": rules.max_turns}
    options = {option: getattr(rules, option).value for option in OPTIONS}
    return pyspiel.load_game("linko", params | options)


def play_deck(game, deck, actions):
    """Yield the state after the deal and after each action, if chance decides as the deck says."""
    state, cards = game.new_initial_state(), iter(deck)
    for action in (None, *actions):
        if action is not None:
            state.apply_action(encode_action(action))
        while state.is_chance_node():
            state.apply_action(next(cards))
        yield state


def play_random(state, chance):
    """Play a state on to its end. Return the number of its decisions."""
    decisions = 0
    while not state.is_terminal():
        decisions += not state.is_chance_node()
        state.apply_action(chance.choice(state.legal_actions()))
    return decisions


# The tests of OpenSpiel


@library_tests
def test_random_sim_test_passes(name, players, turns):
    pyspiel.random_sim_test(load(name, players, turns), num_sims=1, serialize=True, verbose=False)


@library_tests
def test_sim_game_passes(name, players, turns):
    from open_spiel.python.tests.games_sim_test import GamesSimTest  # noqa: PLC0415 - loads all games

    GamesSimTest().sim_game(load(name, players, turns))


@pytest.mark.filterwarnings("ignore:The chararray class:DeprecationWarning")  # OpenSpiel uses it
def test_playthrough_is_the_stored_one():
    flags.FLAGS.mark_as_parsed()  # `replay` reads one
    stored, now = replay(PLAYTHROUGH)
    assert now == stored, "if this is meant, run: .venv/bin/python tests/train/golden/regenerate.py"


@pytest.mark.parametrize(
    ("name", "players", "turns"),
    [
        ("duel", 2, 6),
        pytest.param("basic", 4, 40, marks=pytest.mark.extended("searches")),
        pytest.param("expert", 3, 40, marks=pytest.mark.extended("searches")),
    ],
)
def test_ismcts_plays_a_game(name, players, turns):
    game, chance = load(name, players, turns), np.random.RandomState(1)
    bot = ISMCTSBot(game, RandomRolloutEvaluator(1, chance), 2.0, 5, random_state=chance)
    state = game.new_initial_state()
    while not state.is_terminal():
        if state.is_chance_node():
            state.apply_action(chance.choice([card for card, _ in state.chance_outcomes()]))
        else:
            state.apply_action(bot.step(state))
    assert sum(state.returns()) == pytest.approx(0)


# The rules


@few_tables
def test_deck_and_actions_give_the_game_of_the_rules(ruleset, players):
    rules, chance = ruleset.with_options(max_turns=60), random.Random(3)
    deck = shuffled(rules, 3)
    actions = [a for a, _ in play_log(rules, players, deck, lambda g: anything(g.decision, chance))]
    game = Game(rules, players, deck)
    for number, state in enumerate(play_deck(load_rules(rules, players), deck, actions)):
        if number:
            game.apply(actions[number - 1])
        legal = game.decision.legal if game.decision else ()
        assert state.legal_actions() == sorted(map(encode_action, legal))
        texts = [state.action_to_string(action) for action in state.legal_actions()]
        assert len(set(texts)) == len(texts)
    assert state.is_terminal()
    assert state.returns() == list(reward_by_rank(game.outcome))


def test_default_options_are_those_of_all_rulesets():
    for ruleset in RULESETS.values():
        assert {option: getattr(ruleset, option) for option in OPTIONS} == OPTIONS


def test_chance_decides_among_the_cards_that_are_left():
    state = load("basic", 2).new_initial_state()
    assert dict(state.chance_outcomes()) == {
        card: copies / 109 for card, copies in enumerate(FULL) if copies
    }
    for _ in range(8):
        state.apply_action(7)
    assert dict(state.chance_outcomes())[14] == 5 / 101
    assert 7 not in dict(state.chance_outcomes())


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("ruleset", "players"), TABLES, ids=TABLE_NAMES)
def test_no_game_is_longer_than_the_bound(ruleset, players, policy):
    rules, chance = ruleset.with_options(max_turns=40), random.Random(1)
    log = play_log(rules, players, shuffled(rules, 1), lambda g: policy(g.decision, chance))
    assert len(log) <= bound_game_length(rules, players)


def test_states_with_different_cards_or_moves_are_different():
    """By default, OpenSpiel compares states by their texts."""
    texts, chance, state = [], random.Random(1), load("duel", 2, 40).new_initial_state()
    assert str(state.child(7).child(14)) == "the deal, so far: 7 J; 103 cards are left"
    while not state.is_terminal():
        children = [state.child(action) for action in state.legal_actions()]
        assert len(set(map(str, children))) == len(children)
        texts.append(str(state))
        state = chance.choice(children)
    assert len(set(texts)) == len(texts)
    whole = "\n".join(texts)
    for drawn in ("none", "[0-9J]+"):
        assert re.search(rf"the move \S.* draws cards, so far: {drawn}\n", whole)


def test_game_tells_its_bounds():
    game = load("duel", 2, 10)
    assert game.max_game_length() == bound_game_length(
        RULESETS["duel"].with_options(max_turns=10), 2
    )
    assert game.max_chance_nodes_in_history() == 105
    assert game.num_distinct_actions() == ACTIONS
    assert (game.min_utility(), game.max_utility(), game.utility_sum()) == (-1, 1, 0)


# Observations


def test_tensor_has_the_observation_and_its_parts():
    game, chance = load("basic", 3), random.Random(1)
    state, observer = game.new_initial_state(), make_observation(game)
    encoding = Encoding(RULESETS["basic"], 3)
    assert game.observation_tensor_shape() == [encoding.size]
    observer.set_from(state, 0)
    assert not observer.tensor.any()
    *_, state = play_deck(game, shuffled(RULESETS["basic"], 1), ())
    for _ in range(30):
        state.apply_action(chance.choice(state.legal_actions()))
        if state.is_chance_node():
            continue
        table = state.lazy_game.game
        for seat in range(3):
            expected = encoding.observe(table.view(seat), table.decision.kind).tolist()
            observer.set_from(state, seat)
            assert state.observation_tensor(seat) == observer.tensor.tolist() == expected
            assert observer.dict["hand"].tolist() == list(table.view(seat).hand[1:])


def test_there_is_no_observer_of_less_than_a_player_knows():
    none = pyspiel.PrivateInfoType.NONE
    public = pyspiel.IIGObservationType(perfect_recall=False, private_info=none)
    assert make_observation(load("basic", 2), public) is None
    with pytest.raises(ValueError, match="observations of linko have no parameters"):
        make_observation(load("basic", 2), params={"size": 3})


def list_observations(rules, players, deck, actions, seat):
    """Return all that a player gets from OpenSpiel."""
    return [
        (
            state.observation_string(seat),
            state.information_state_string(seat),
            state.observation_tensor(seat),
            state.legal_actions(seat),
            state.current_player(),
        )
        for state in play_deck(load_rules(rules, players), deck, actions)
    ]


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("name", "players"), extend_cases_but(("basic-3", "duel-2"), CASES, "plays more random games")
)
@settings(max_examples=2)
@given(seed=st.integers(0, 2**32), policy=st.sampled_from(POLICIES))
def test_player_gets_nothing_that_depends_on_hidden_cards(name, players, seed, policy):
    rules, chance = RULESETS[name].with_options(max_turns=30), random.Random(seed)
    deck = shuffled(rules, seed)
    log = play_log(rules, players, deck, lambda game: policy(game.decision, chance))
    assert (
        find_seat_that_tells_apart(
            rules, deck, log, players=players, chance=chance, testimony=list_observations
        )
        is None
    )


# Resampling


def all_cards(game):
    table = game.table
    drawn = len(table.deck) - table.deck_size
    cards = Counter(table.deck[drawn:])
    for counts in (*table.hands, table.discards, table.ghost or ()):
        cards.update(dict(enumerate(counts)))
    cards.update(card for group in table.display for card in group)
    cards.update(card for layers in table.layers for layer in layers for card in layer.cards)
    cards.update(table.snatched.cards if table.snatched else ())
    return +cards


@few_tables
def test_resampled_state_looks_the_same_and_has_other_hidden_cards(ruleset, players):
    chance = random.Random(2)
    game = load_rules(ruleset, players)
    *_, state = play_deck(game, shuffled(ruleset, 2), ())
    differ = [False, False]
    for _ in range(60):
        state.apply_action(chance.choice(state.legal_actions()))
        if state.is_terminal():
            break
        if state.is_chance_node():
            continue
        seat = state.current_player()
        other = state.resample_from_infostate(seat, chance.random)
        assert other.information_state_string() == state.information_state_string()
        assert other.legal_actions() == state.legal_actions()
        assert other.history() == state.history()  # as the documents say
        assert all_cards(other.lazy_game.game) == Counter(dict(enumerate(FULL))) - Counter([0])
        again = state.resample_from_infostate(seat, chance.random)
        opponent = 1 - min(seat, 1)
        true, *drawn = (each.lazy_game.game.view(opponent).hand for each in (state, other, again))
        differ = [differ[0] or true != drawn[0], differ[1] or drawn[0] != drawn[1]]
    assert differ == [True, True]
    before = str(state)
    play_random(other, chance)
    assert other.is_terminal()
    assert str(state) == before


def test_resampled_state_has_no_hidden_draw_of_the_true_state():
    """The events of a resampled state are those that its player saw."""
    chance, seen_draw = random.Random(3), re.compile(r"slot=None, cards=\([1-9]")
    *_, state = play_deck(load("basic", 3), shuffled(RULESETS["basic"], 3), ())

    def find_seats(state):
        """Return the seats whose information states have a card from the deck."""
        return [seat for seat in range(3) if seen_draw.search(state.information_state_string(seat))]

    while state.is_chance_node() or len(find_seats(state)) < 3:
        state.apply_action(chance.choice(state.legal_actions()))
    seat = state.current_player()
    assert find_seats(state.resample_from_infostate(seat, chance.random)) == [seat]


def test_player_that_must_not_decide_cannot_resample():
    *_, state = play_deck(load("basic", 2), shuffled(RULESETS["basic"], 2), ())
    with pytest.raises(ValueError, match="does not decide now"):
        state.resample_from_infostate(1, random.random)


def test_resampled_state_can_be_resampled_for_the_same_player_only():
    chance = random.Random(4)
    *_, state = play_deck(load("basic", 2), shuffled(RULESETS["basic"], 2), ())
    other = state.resample_from_infostate(0, chance.random)
    again = other.resample_from_infostate(0, chance.random)
    assert again.information_state_string() == state.information_state_string()
    while other.is_chance_node() or other.current_player() == 0:
        other.apply_action(chance.choice(other.legal_actions()))
    with pytest.raises(
        ValueError, match="resampled for player 0, so it does not contain what player 1 has seen"
    ):
        other.resample_from_infostate(1, chance.random)


# Parameters


def test_every_option_of_a_ruleset_is_a_parameter():
    options = set(inspect.signature(Ruleset.with_options).parameters) - {"self"}
    assert set(GAME_TYPE.parameter_specification) == {"ruleset", "players", *options}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("linko(ruleset=poker)", "unknown ruleset 'poker'; choose one of"),
        ("linko(ruleset=duel,players=3)", "duel is for 2 players, not 3"),
        ("linko(max_turns=0)", "max_turns is 0, but it must be at least 1"),
        ("linko(max_turns=300000000)", "max_turns is 300000000; choose a smaller number"),
        ("linko(end_on=never)", "unknown end_on 'never'; choose one of deck-and-display, deck"),
        ("linko(ghost_snatch=optional)", "basic has no ghost, so it has no ghost_snatch"),
    ],
)
def test_parameter_that_does_not_fit_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        pyspiel.load_game(text)


def test_masked_action_is_refused():
    *_, state = play_deck(load("basic", 2), shuffled(RULESETS["basic"], 2), ())
    with pytest.raises(MaskedActionError, match=r"action 634 \(pass\) is masked"):
        state.apply_action(634)


@pytest.mark.parametrize("card", [0, 7, 600, -3])
def test_card_that_is_not_left_is_refused(card):
    state = load("basic", 2).new_initial_state()
    for _ in range(8):
        state.apply_action(7)
    left = "the cards that are left: 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14"
    with pytest.raises(ValueError, match=f"no card {card} is left; {left}"):
        state.apply_action(card)
    assert len(state.history()) == 8


@pytest.mark.parametrize("number", [-3, ACTIONS])
def test_number_of_no_action_has_no_text(number):
    *_, state = play_deck(load("basic", 2), shuffled(RULESETS["basic"], 2), ())
    with pytest.raises(ValueError, match=f"{number} is not an action; actions are 0 to 652"):
        state.action_to_string(0, number)
