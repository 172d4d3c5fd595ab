"""Rulings R10 to R13: refills in the duel, the turn limit, and public information."""

from __future__ import annotations

import random

import pytest
from playouts import TABLE_NAMES, TABLES, VARIANTS, anything, circle, shuffled
from positions import (
    DECK,
    LEAVE,
    RECLAIM,
    TAKE,
    follow,
    game,
    layer,
    next_decision,
    of_kind,
    play,
)

from referee.rules.actions import Choice, DecisionKind, DrawDisplay
from referee.rules.events import (
    DisplayRefilled,
    Drawn,
    GameOver,
    GhostRefilled,
    SlotCard,
    Snatched,
    Taken,
    Termination,
    is_private,
    redact,
)
from referee.rules.game import Game
from referee.rules.ruleset import DEFAULT_MAX_TURNS, HIDDEN, JOKER, RULESETS, EndOn, count_cards

ALL = sorted(RULESETS)
EXPERT = ["expert", "expert-jokers"]


# R10: a group takes one slot, and a refill puts one card into each empty slot


def test_R10_group_takes_one_slot_and_a_refill_puts_any_card_into_an_empty_slot():
    run = game(
        "duel",
        ["9 9 1", "2"],
        [[], ["8 8"]],
        display="1 2+13 3+13 4 5 6",
        deck="13 J 7",
    )
    follow(run, (0, play("9 9")), (0, TAKE), (1, DrawDisplay(0, (1,))))
    events = follow(run, (1, DrawDisplay(1, (2, 13))))
    assert events[-1] == DisplayRefilled((SlotCard(0, 13), SlotCard(1, JOKER)))
    assert run.view(0).display == ((13,), (JOKER,), (3, 13), (4,), (5,), (6,))


# R11: the ghost is refilled as far as the deck goes; that ends the game only if the display is empty


def test_R11_refill_of_the_ghost_stops_when_the_deck_is_empty():
    run = game("duel", ["9 1", "2"], ghost="3 4 4", display="1 2 3 4 5 6", deck="5 13")
    events = follow(run, (0, play("9")))
    assert events[-1] == GhostRefilled((5,), (SlotCard(0, 13),))
    assert run.view(0).deck_size == 0
    assert run.view(0).ghost == count_cards([4, 4, 5])
    assert next_decision(run) == (1, DecisionKind.PLAY)


def test_R11_ghost_is_not_refilled_without_a_deck():
    run = game("duel", ["9 1", "2"], ghost="3 4 4", deck="")
    assert of_kind(follow(run, (0, play("9"))), GhostRefilled) == []
    assert next_decision(run) == (1, DecisionKind.PLAY)


def test_R11_refill_of_the_ghost_ends_the_game_if_the_display_is_empty():
    run = game("duel", ["9 1", "2"], [[], ["8"]], ghost="3", display="- - - - - -", deck="5")
    events = follow(run, (0, play("9")))
    assert events[2] == GhostRefilled((5,), ())
    assert run.outcome is not None
    assert run.outcome.termination is Termination.EXHAUSTED
    assert not of_kind(events, Snatched)  # the opponent is not checked any more


def test_R11_game_continues_if_the_refill_puts_a_13_onto_the_empty_display():
    run = game("duel", ["9 1", "2"], ghost="3", display="- - - - - -", deck="13")
    follow(run, (0, play("9")))
    assert run.view(0).display[0] == (13,)
    assert next_decision(run) == (1, DecisionKind.PLAY)


def test_R11_refill_of_the_ghost_can_end_the_game_with_end_on_deck():
    run = game("duel", ["9 1", "2"], ghost="3", deck="5", end_on=EndOn.DECK)
    follow(run, (0, play("9")))
    assert run.outcome is not None
    assert run.outcome.termination is Termination.DECK_EMPTY


# R12: expert games could go on for ever, so every game has a turn limit


@pytest.mark.parametrize(("ruleset", "beast"), [("expert", "13"), ("expert-jokers", "J")])
@pytest.mark.parametrize("max_turns", [60, None])
def test_R12_endless_expert_game_ends_at_the_turn_limit(ruleset, beast, max_turns):
    run = game(ruleset, ["1 5", f"{beast} 5"], [[], [beast]], max_turns=max_turns)
    limit = max_turns or DEFAULT_MAX_TURNS
    for turn in range(1, limit + 1, 2):
        assert run.view(0).turn == turn
        follow(run, (0, play("1")), (0, LEAVE), (1, RECLAIM))
        assert run.view(0).turn == turn + 1
        follow(run, (1, play(beast)), (1, LEAVE), (0, RECLAIM))
    assert run.outcome is not None
    assert run.outcome.termination is Termination.TURN_LIMIT
    assert run.outcome.scores == (-2, 1 - 2)  # scored as it stands


def test_R12_default_limit_is_500_turns():
    assert DEFAULT_MAX_TURNS == 500
    assert {ruleset.max_turns for ruleset in RULESETS.values()} == {500}


def test_R12_last_turn_is_played_to_its_end():
    run = game("basic", ["9 1", "2"], max_turns=1)
    follow(run, (0, play("9")))
    assert next_decision(run) == (0, DecisionKind.OPTIONAL_DRAW)
    events = follow(run, (0, DECK))
    assert events[-1] == GameOver(Termination.TURN_LIMIT, (-1, -1), (2, 1))


def test_R12_going_out_in_the_last_turn_counts_as_going_out():
    run = game("basic", ["9", "2"], max_turns=1)
    follow(run, (0, play("9")))
    assert run.outcome is not None
    assert run.outcome.termination is Termination.OUT


@pytest.mark.parametrize("ruleset", ["classic", "basic", "advanced", "duel", "duel-optional"])
@pytest.mark.parametrize("policy", [anything, circle])
def test_R12_other_rulesets_end_without_the_limit(ruleset, policy):
    rules = VARIANTS[ruleset].with_options(max_turns=100_000)
    for seed in range(10):
        chance = random.Random(seed)
        run = Game(rules, 2, shuffled(rules, seed))
        while run.decision is not None:
            run.apply(policy(run.decision, chance))
        assert run.outcome is not None
        assert run.outcome.termination is not Termination.TURN_LIMIT


# R13: everything is public except hands and cards drawn from the deck


@pytest.mark.parametrize(("ruleset", "players"), TABLES, ids=TABLE_NAMES)
def test_R13_views_differ_only_in_the_own_hand_and_events_only_in_deck_cards(ruleset, players):
    chance = random.Random(13)
    run = Game(ruleset, players, shuffled(ruleset, 13))
    private = 0
    while run.decision is not None:
        views = [run.view(seat) for seat in range(players)]
        assert [view.seat for view in views] == list(range(players))
        assert [sum(view.hand) for view in views] == list(views[0].hand_sizes)
        assert len({view[2:] for view in views}) == 1  # all but the seat and the hand
        for event in run.apply(anything(run.decision, chance)):
            for seat in range(players):
                hidden = isinstance(event, Drawn) and event.slot is None and event.seat != seat
                private += hidden
                expected = Drawn(event.seat, None, (HIDDEN,)) if hidden else event
                assert redact(event, seat) == expected
                assert is_private(event) or not hidden
    assert private


def test_R13_seat_and_source_of_a_draw_are_public():
    run = game("basic", ["9 1", "2", "2"], display="1 2 3 4 5 6", deck="7 8")
    event = follow(run, (0, play("9")), (0, DECK))[1]
    assert redact(event, 0) == Drawn(0, None, (7,))
    assert redact(event, 1) == redact(event, 2) == Drawn(0, None, (HIDDEN,))


def test_R13_views_do_not_mark_cards_that_everybody_saw_going_into_a_hand():
    run = game("classic", ["9 1", "2"], [[], ["8"]], display="1 2 3 4 5 6")
    assert follow(run, (0, play("9")), (0, TAKE), (1, DECK))[2] == Taken(0, layer("8"))
    view = run.view(1)
    assert view.hand_sizes == (2, 2)
    assert view.tables == ((layer("9"),), ())
    assert view.hand == count_cards([2, 7])
    assert 8 not in {card for slot in view.display for card in slot}
    assert not any(view.discards)
    assert view.snatched is None


def test_R13_choices_are_public():
    for choice in (Choice.TAKE, Choice.LEAVE):
        run = game("classic", ["9 1", "2", "3"], [[], ["8"], []])
        for event in follow(run, (0, play("9")), (0, choice)):
            assert not is_private(event)
