"""Rulings R1 to R8: plays, snatches, draws, and decisions with a single action."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playouts import POLICIES, TABLE_NAMES, TABLES, shuffled
from positions import (
    DECK,
    DISCARD,
    LEAVE,
    PASS,
    RECLAIM,
    TAKE,
    draw,
    follow,
    game,
    hand,
    layer,
    next_decision,
    of_kind,
    play,
    tops,
)

from referee.rules.actions import DecisionKind, DrawDisplay, Play, legal_plays
from referee.rules.events import (
    DisplayRefilled,
    Drawn,
    GameOver,
    GhostSnatched,
    Passed,
    SlotCard,
    Snatched,
    Termination,
)
from referee.rules.game import Game
from referee.rules.ruleset import JOKER, RULESETS, EndOn, Layer, count_cards

ALL = sorted(RULESETS)
EXPERT = ["expert", "expert-jokers"]


# R1: a play is (value, naturals, jokers); copies of a card are the same


def plays_of_physical_cards(held: list[int]) -> set[Play]:
    """Return every layer that a subset of the cards forms, by trying all subsets."""
    found = set()
    for size in range(1, len(held) + 1):
        for subset in combinations(held, size):
            numbers = [card for card in subset if card != JOKER]
            if len(set(numbers)) <= 1:
                value = numbers[0] if numbers else JOKER
                found.add(Play(Layer(value, len(numbers), size - len(numbers))))
    return found


@settings(max_examples=60)
@given(st.lists(st.sampled_from([1, 2, 13, JOKER]), min_size=1, max_size=10))
def test_R1_legal_plays_are_all_layers_of_the_hand(drawn):
    held = sorted(drawn)[:9]
    held = [card for at, card in enumerate(held) if held[:at].count(card) < 5]
    legal = legal_plays(list(count_cards(held)))
    assert len(legal) == len(set(legal))
    assert set(legal) == plays_of_physical_cards(held)


@pytest.mark.parametrize("jokers", range(6))
@pytest.mark.parametrize("held", range(9))
def test_R1_play_has_any_number_of_naturals_and_jokers(held, jokers):
    legal = legal_plays(list(count_cards([6] * held + [JOKER] * jokers)))
    assert len(legal) == held * (jokers + 1) + jokers
    assert set(legal) == {
        *(
            Play(Layer(6, some, added))
            for some in range(1, held + 1)
            for added in range(jokers + 1)
        ),
        *(Play(Layer(JOKER, 0, alone)) for alone in range(1, jokers + 1)),
    }


def test_R1_jokers_alone_are_a_legal_play():
    run = game("classic", ["4 J J", "1"])
    assert run.decision is not None
    assert set(run.decision.legal) == {
        *(play(text) for text in ("4", "4 J", "4 J J")),
        *(play(text) for text in ("J", "J J")),
    }


# R2: joker layers are snatched by nothing, except by 1s in the expert rulesets


@pytest.mark.parametrize("ruleset", ALL)
@pytest.mark.parametrize("size", [1, 2])
def test_R2_joker_layer_is_snatched_only_by_1s_of_the_expert_rulesets(ruleset, size):
    for attack in (*range(1, 14), JOKER):
        played = Layer(attack, 0, size) if attack == JOKER else Layer(attack, size, 0)
        cards = " ".join("J" if card == JOKER else str(card) for card in played.cards)
        run = game(ruleset, [f"{cards} 2", "2"], [[], ["J J"[: 2 * size - 1]]])
        snatched = bool(of_kind(run.apply(Play(played)), Snatched))
        assert snatched is (attack == 1 and ruleset in EXPERT)


@pytest.mark.parametrize("ruleset", ALL)
def test_R2_equal_value_does_not_snatch(ruleset):
    for value in (*map(str, range(1, 14)), "J"):
        run = game(ruleset, [f"{value} 2", "2"], [[], [value]])
        assert not of_kind(run.apply(play(value)), Snatched)


# R3: the optional draw needs a turn without any snatch, also from the ghost


@pytest.mark.parametrize("fate", [[(0, TAKE), (1, DECK)], [(0, LEAVE), (1, RECLAIM)]])
def test_R3_no_optional_draw_after_a_snatch_that_was_left(fate):
    run = game("basic", ["9 1", "2"], [[], ["8"]])
    follow(run, (0, play("9")), *fate)
    assert next_decision(run) == (1, DecisionKind.PLAY)


def test_R3_no_optional_draw_after_a_snatch_from_the_ghost():
    run = game("duel", ["9 1", "2"], ghost="8")
    assert of_kind(follow(run, (0, play("9"))), GhostSnatched)
    assert next_decision(run) == (1, DecisionKind.PLAY)


@pytest.mark.parametrize("ruleset", ALL)
def test_R3_optional_draw_without_a_snatch_in_basic_and_duel_only(ruleset):
    run = game(ruleset, ["9 1", "2"])
    follow(run, (0, play("9")))
    offered = next_decision(run) == (0, DecisionKind.OPTIONAL_DRAW)
    assert offered is (ruleset in {"basic", "duel"})


# R4: the optional draw refills the display like any draw, and can end the game


def test_R4_optional_draw_refills_the_display():
    run = game("basic", ["9 1", "2"], display="1 2 3 4 5 6", deck="7 8")
    follow(run, (0, play("9")))
    events = follow(run, (0, draw(run, "3")))
    assert events[-1] == DisplayRefilled((SlotCard(2, 7),))
    assert run.view(0).deck_size == 1


def test_R4_optional_draw_can_be_declined():
    run = game("basic", ["9 1", "2"])
    assert follow(run, (0, play("9")), (0, PASS))[-1] == Passed(0)
    assert next_decision(run) == (1, DecisionKind.PLAY)
    assert run.view(0).cards_to_draw == 0


@pytest.mark.parametrize(
    ("supply", "end_on", "termination"),
    [
        ({"display": "3 - - - - -", "deck": ""}, EndOn.DECK_AND_DISPLAY, Termination.EXHAUSTED),
        ({"display": "3 4 5 6 7 8", "deck": "9"}, EndOn.DECK, Termination.DECK_EMPTY),
    ],
)
def test_R4_optional_draw_can_end_the_game(supply, end_on, termination):
    run = game("basic", ["9 1", "2"], **supply, end_on=end_on)
    follow(run, (0, play("9")))
    events = follow(run, (0, draw(run, "3")))
    assert isinstance(events[-1], GameOver)
    assert run.outcome is not None
    assert run.outcome.termination is termination
    assert hand(run, 0) == [1, 3]


# R5: when a draw ends the game, remaining draws are dropped and no further opponent is checked


@pytest.mark.parametrize("fate", [[(0, TAKE)], [(0, LEAVE), (1, DISCARD)]])
def test_R5_end_of_the_game_drops_remaining_draws_and_opponents(fate):
    run = game(
        "classic",
        ["9 9 9 1", "2", "2"],
        [[], ["8 8 8"], ["7 7 7"]],
        display="4 5 - - - -",
        deck="",
    )
    follow(run, (0, play("9 9 9")), *fate)
    events = follow(run, (1, draw(run, "5")))
    assert events[:2] == [Drawn(1, 1, (5,)), Drawn(1, 0, (4,))]
    assert isinstance(events[2], GameOver)
    assert events[3:] == []
    assert hand(run, 1) == [2, 4, 5]  # two cards of three
    assert tops(run)[2] == layer("7 7 7")
    assert run.outcome is not None
    assert run.outcome.termination is Termination.EXHAUSTED
    assert (run.view(0).victim, run.view(0).cards_to_draw) == (1, 1)


# R6: a turn starts with a non-empty hand, so a legal decision always exists


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("ruleset", "players"), TABLES, ids=TABLE_NAMES)
def test_R6_every_turn_starts_with_cards_and_every_decision_has_a_legal_action(
    ruleset, players, policy
):
    chance = random.Random(6)
    run = Game(ruleset.with_options(max_turns=150), players, shuffled(ruleset, 6))
    while (decision := run.decision) is not None:
        assert decision.legal
        if decision.kind is DecisionKind.PLAY:
            assert run.view(0).hand_sizes[decision.seat] > 0
        run.apply(policy(decision, chance))


# R7: a single legal action is a decision only if it is a play


def test_R7_single_legal_play_is_a_decision():
    run = game("classic", ["9", "2"])
    assert next_decision(run) == (0, DecisionKind.PLAY)
    assert run.decision is not None
    assert run.decision.legal == (play("9"),)


def test_R7_single_set_of_the_ghost_is_snatched_without_a_decision():
    run = game("duel", ["9 1", "2"], ghost="3 4 4", deck="")
    events = follow(run, (0, play("9")))
    assert events[1:] == [GhostSnatched(0, layer("3"))]


def test_R7_single_source_is_drawn_from_without_a_decision():
    run = game("classic", ["9 9 9 1", "2"], [[], ["8 8 8"]], display="4 - - - - -", deck="5 6 7")
    follow(run, (0, play("9 9 9")), (0, TAKE))
    events = follow(run, (1, draw(run, "4")))
    assert events[:3] == [Drawn(1, 0, (4,)), Drawn(1, None, (5,)), Drawn(1, None, (6,))]
    assert next_decision(run) == (1, DecisionKind.PLAY)


def test_R7_equal_display_cards_are_a_single_source():
    run = game("classic", ["9 9 1", "2"], [[], ["8 8"]], display="- 5 5 5 - -", deck="")
    events = follow(run, (0, play("9 9")), (0, TAKE))
    assert events[-2:] == [Drawn(1, 1, (5,)), Drawn(1, 2, (5,))]
    assert next_decision(run) == (1, DecisionKind.PLAY)


def test_R7_optional_draw_with_a_single_source_is_a_decision():
    run = game("basic", ["9 1", "2"], display="5 - - - - 5", deck="")
    follow(run, (0, play("9")))
    assert run.decision is not None
    assert set(run.decision.legal) == {PASS, DrawDisplay(0, (5,))}


# R8: slots are refilled in place, left to right; each distinct card or group is listed once


def test_R8_empty_slots_are_refilled_in_place_left_to_right():
    run = game("classic", ["9 9 1", "2"], [[], ["8 8"]], display="1 2 3 4 5 6", deck="7 8 9")
    follow(run, (0, play("9 9")), (0, TAKE), (1, DrawDisplay(4, (5,))))
    events = follow(run, (1, DrawDisplay(1, (2,))))
    assert events[-1] == DisplayRefilled((SlotCard(1, 7), SlotCard(4, 8)))
    assert run.view(0).display == ((1,), (7,), (3,), (4,), (8,), (6,))


def test_R8_left_slots_are_refilled_first_when_the_deck_runs_out():
    run = game("classic", ["9 9 1", "2"], [[], ["8 8"]], display="1 2 3 4 5 6", deck="7")
    follow(run, (0, play("9 9")), (0, TAKE), (1, DrawDisplay(4, (5,))), (1, DrawDisplay(1, (2,))))
    assert run.view(0).display == ((1,), (7,), (3,), (4,), (), (6,))


def test_R8_each_distinct_card_or_group_is_listed_once_by_its_leftmost_slot():
    run = game("duel", ["9 1", "2"], [[], ["8"]], display="5 3+13 5 3+13 3 J", deck="1")
    follow(run, (0, play("9")), (0, TAKE))
    assert run.decision is not None
    assert run.decision.legal == (
        DECK,
        DrawDisplay(0, (5,)),
        DrawDisplay(1, (3, 13)),
        DrawDisplay(4, (3,)),
        DrawDisplay(5, (JOKER,)),
    )
