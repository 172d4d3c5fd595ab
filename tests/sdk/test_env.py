"""The numbers of the training environments: actions, masks and observations; a policy as a bot."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.clocks import Clocks, DecisionTime
from referee.pb import play_pb2
from referee.protocol import messages
from referee.records import Request
from referee.rules.actions import Choice, DecisionKind, DrawDisplay, Play, SnatchGhost, legal_plays
from referee.rules.game import Game
from referee.rules.ruleset import FULL, RULESETS, Layer, count_cards
from referee.sdk import Session
from referee.sdk.env import (
    ACTIONS,
    LAYERS,
    Encoding,
    MaskedActionError,
    action_name,
    decode_action,
    encode_action,
    make_mask,
    policy_bot,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "rules"))
from few_tables import few_tables
from playouts import POLICIES, TABLE_NAMES, TABLES, anything, shuffled
from redeal import find_seat_that_tells_apart, play_log


def random_positions(ruleset, players, seed, policy=anything):
    """Yield the game at each decision, and at its end."""
    rules, chance = ruleset.with_options(max_turns=150), random.Random(seed)
    game = Game(rules, players, shuffled(rules, seed))
    yield game
    while game.decision is not None:
        game.apply(policy(game.decision, chance))
        yield game


# Actions


def test_every_action_has_its_own_number_and_text():
    plays = legal_plays(FULL)
    assert (len(plays), ACTIONS) == (629, 653)
    assert [encode_action(play) for play in plays] == list(range(629))
    assert len({action_name(number) for number in range(ACTIONS)}) == ACTIONS
    assert action_name(encode_action(Play(Layer(7, 2, 1)))) == "play 2×7+J"
    assert action_name(encode_action(DrawDisplay(5, (3, 14)))) == "draw slot 5"
    assert encode_action(SnatchGhost(12)) == ACTIONS - 1


@pytest.mark.parametrize("action", [DrawDisplay(6), SnatchGhost(13), Play(Layer(14, 1, 0))])
def test_impossible_action_has_no_number(action):
    with pytest.raises(ValueError, match="is no action of the game"):
        encode_action(action)


@pytest.mark.parametrize(("ruleset", "players"), TABLES, ids=TABLE_NAMES)
def test_mask_has_the_legal_actions_and_each_number_leads_back(ruleset, players):
    for game in random_positions(ruleset, players, 3):
        legal = game.decision.legal if game.decision else ()
        mask = make_mask(legal)
        assert mask.shape == (ACTIONS,)
        assert mask.sum() == len(legal)
        assert {decode_action(number, legal) for number in np.flatnonzero(mask)} == set(legal)


def test_masked_action_is_refused_with_action_and_mask():
    legal = (Choice.PASS, DrawDisplay(2, (7,)))
    with pytest.raises(MaskedActionError) as refused:
        decode_action(encode_action(DrawDisplay(3)), legal)
    assert str(refused.value) == (
        "action 638 (draw slot 3) is masked; the mask allows 634 (pass), 637 (draw slot 2)"
    )


@pytest.mark.parametrize("number", [-1, 653])
def test_number_of_no_action_is_refused(number):
    with pytest.raises(
        MaskedActionError, match=rf"action {number} \(not an action; actions are 0 to 652\)"
    ):
        decode_action(number, (Choice.PASS,))


def test_action_that_is_no_whole_number_is_refused():
    with pytest.raises(TypeError):
        decode_action(1.5, (Choice.PASS,))


# Observations


@pytest.mark.parametrize(
    ("name", "players", "size"),
    [
        ("basic", 2, 253),
        ("classic", 3, 312),
        ("expert", 4, 371),
        ("basic", 5, 430),
        ("duel", 2, 273),
    ],
)
def test_observation_has_the_listed_size(name, players, size):
    encoding = Encoding(RULESETS[name], players)
    assert encoding.size == size
    game = Game(RULESETS[name], players, shuffled(RULESETS[name], 1))
    observation = encoding.observe(game.view(0), DecisionKind.PLAY)
    assert (observation.shape, observation.dtype) == ((size,), np.int8)


def test_number_of_players_may_have_a_small_type_of_numpy():
    assert Encoding(RULESETS["classic"], np.int8(5)).size == Encoding(RULESETS["classic"], 5).size


def test_encoding_refuses_a_wrong_number_of_seats():
    with pytest.raises(ValueError, match="duel is for 2 players, not 3"):
        Encoding(RULESETS["duel"], 3)


def counts(cards):
    return list(count_cards(cards)[1:])


def table_rows(layers):
    tops = [layers[-depth].cards if depth <= len(layers) else () for depth in range(1, LAYERS + 1)]
    return [*map(counts, tops), counts(card for layer in layers[:-LAYERS] for card in layer.cards)]


def assert_same(encoding, observation, view, kind):
    """Compare every part of an observation with the view, in the order of the seats from the view's own."""
    seats = [(view.seat + offset) % encoding.players for offset in range(encoding.players)]
    kinds = list(DecisionKind)
    expected = {
        "kind": [each is kind for each in kinds],
        "active": [seat == view.active_seat for seat in seats],
        "victim": [seat == view.victim for seat in seats],
        "cards_to_draw": [view.cards_to_draw],
        "deck_size": [view.deck_size],
        "turns_left": [min(127, encoding.ruleset.max_turns - view.turn)],
        "hand_sizes": [view.hand_sizes[seat] for seat in seats],
        "hand": list(view.hand[1:]),
        "snatched": counts(view.snatched.cards if view.snatched else ()),
        "discards": list(view.discards[1:]),
        "display": [counts(cards) for cards in view.display],
        "tables": [table_rows(view.tables[seat]) for seat in seats],
    }
    if view.ghost is not None:
        expected["ghost"] = list(view.ghost[1:])
        expected["bottoms"] = [cards[0] if cards else 0 for cards in view.display]
    assert list(encoding.shapes) == list(expected)
    assert {name: encoding.part(observation, name).tolist() for name in expected} == expected


@few_tables
def test_every_part_of_an_observation_is_what_the_view_has(ruleset, players):
    encoding = None
    for game in random_positions(ruleset, players, 8):
        encoding = encoding or Encoding(game.ruleset, players)
        kind = game.decision.kind if game.decision else None
        for seat in range(players):
            view = game.view(seat)
            assert_same(encoding, encoding.observe(view, kind), view, kind)


def test_part_of_a_batch_keeps_the_axes_of_the_batch():
    encoding = Encoding(RULESETS["basic"], 3)
    batch = np.zeros((5, 7, encoding.size), np.int8)
    assert encoding.part(batch, "tables").shape == (5, 7, 3, LAYERS + 1, 14)


# Leaks: see tests/rules/test_leaks.py


def list_observations(rules, players, deck, actions, seat):
    """Return all observations of a seat, and the masks of its own decisions."""
    game, encoding, seen = Game(rules, players, deck), Encoding(rules, players), []
    for action in (*actions, None):
        decision = game.decision
        seen.append(encoding.observe(game.view(seat), decision and decision.kind).tobytes())
        seen.append(
            make_mask(decision.legal).tobytes() if decision and decision.seat == seat else b""
        )
        if action is not None:
            game.apply(action)
    return seen


def find_leak(ruleset, players, seed, policy, testimony=list_observations):
    rules, chance = ruleset.with_options(max_turns=100), random.Random(seed)
    deck = shuffled(rules, seed)
    log = play_log(rules, players, deck, lambda game: policy(game.decision, chance))
    return find_seat_that_tells_apart(
        rules, deck, log, players=players, chance=chance, testimony=testimony
    )


@pytest.mark.unmeasured
@few_tables
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32), policy=st.sampled_from(POLICIES))
def test_observations_and_masks_do_not_depend_on_hidden_cards(ruleset, players, seed, policy):
    assert find_leak(ruleset, players, seed, policy) is None


@pytest.mark.unmeasured
@pytest.mark.parametrize("name", ["basic", "duel"])
def test_observation_of_another_seat_is_found_as_a_leak(name):
    def mixed_up(rules, players, deck, actions, seat):
        return list_observations(rules, players, deck, actions, (seat + 1) % players)

    found = (
        find_leak(RULESETS[name], 2, seed, anything, mixed_up) is not None for seed in range(20)
    )
    assert any(found)


# A policy as a bot


def first_messages(ruleset, players):
    """Return an unstarted game and the first two messages to seat 0, as the referee writes them."""
    game = Game(ruleset, players, shuffled(ruleset, 1))
    view = game.view(0)
    start = messages.game_start(
        "g", rules=ruleset, view=view, clocks=Clocks(), seed=1, names=(), max_strikes=3
    )
    request = Request(1, view, game.decision, (), DecisionTime(0, None, 0))
    written = (start, messages.RequestEncoder("g").encode(request))
    return game, *map(play_pb2.RefereeMessage.FromString, written)


def highest(observation):
    return int(np.flatnonzero(observation["action_mask"])[-1])


@pytest.mark.parametrize("name", ["basic", "duel"])
def test_policy_gets_the_observation_and_mask_of_its_request(name):
    seen = []

    def policy(observation):
        seen.append(observation)
        return highest(observation)

    session = Session(policy_bot(policy))
    game, start, request = first_messages(RULESETS[name], 2)
    session.receive(start)
    [reply] = session.receive(request).replies
    view, decision = game.view(0), game.decision
    expected = Encoding(RULESETS[name], 2).observe(view, decision.kind)
    assert seen[0]["observation"].tolist() == expected.tolist()
    assert seen[0]["action_mask"].tolist() == make_mask(decision.legal).tolist()
    last = max(decision.legal, key=encode_action).layer
    assert (reply.action.play.value, reply.action.play.naturals) == last[:2]


def test_masked_action_of_a_policy_is_an_error_of_its_bot():
    session = Session(policy_bot(lambda _: encode_action(Choice.PASS)))
    _, start, request = first_messages(RULESETS["basic"], 2)
    session.receive(start)
    with pytest.raises(MaskedActionError, match=r"action 634 \(pass\) is masked"):
        session.receive(request)
