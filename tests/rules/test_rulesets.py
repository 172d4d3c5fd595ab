"""The table of rulesets: what each has, who may play it, which deck it needs, its options."""

from __future__ import annotations

from dataclasses import fields

import pytest
from playouts import TABLE_NAMES, TABLES, shuffled
from positions import DECK, TAKE, asked, draw, follow, game, hand, layer, play

from referee.rules.actions import DecisionKind
from referee.rules.cards import DECK_SIZE, JOKER
from referee.rules.events import DisplayRefilled, SlotCard, Snatched, Termination
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS, EndOn, full_deck


def test_the_six_rulesets():
    assert list(RULESETS) == ["classic", "basic", "advanced", "expert", "expert-jokers", "duel"]
    assert all(ruleset.name == name for name, ruleset in RULESETS.items())


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("optional_draw", {"basic", "duel"}),
        ("ones_snatch_jokers", {"expert", "expert-jokers"}),
        ("ones_snatch_thirteens", {"expert"}),
        ("hand_size_breaks_ties", {"basic", "advanced", "expert", "expert-jokers", "duel"}),
        ("ghost", {"duel"}),
    ],
)
def test_which_rulesets_differ_in_what(what, names):
    assert {name for name, ruleset in RULESETS.items() if getattr(ruleset, what)} == names


def test_nothing_else_tells_rulesets_apart():
    """A new difference needs a line in the table above."""
    assert {field.name for field in fields(RULESETS["basic"])} == {
        "name",
        "min_players",
        "max_players",
        "optional_draw",
        "ones_snatch_jokers",
        "ones_snatch_thirteens",
        "hand_size_breaks_ties",
        "ghost",
        "end_on",
        "max_turns",
    }


@pytest.mark.parametrize("name", RULESETS)
def test_a_step_4_without_a_snatch(name):
    run = game(name, ["9 1", "2"])
    follow(run, (0, play("9")))
    assert (asked(run)[1] is DecisionKind.OPTIONAL_DRAW) is (name in {"basic", "duel"})


@pytest.mark.parametrize("name", RULESETS)
def test_a_tie(name):
    """Two cards played and three held are as good as none played and one held."""
    run = game(name, ["9 1 1 1", "2"], [["5"], []], max_turns=1)
    follow(run, (0, play("9")))
    if run.decision is not None:
        follow(run, (0, run.decision.legal[0]))
    assert run.outcome is not None
    assert run.outcome.scores == (-1, -1)
    assert run.outcome.ranks == ((1, 1) if name == "classic" else (2, 1))


# Table sizes


@pytest.mark.parametrize(("ruleset", "players"), TABLES, ids=TABLE_NAMES)
def test_table_sizes_that_are_allowed(ruleset, players):
    assert Game(ruleset, players, shuffled(ruleset, 1)).players == players


def test_two_to_five_play_but_two_the_duel():
    sizes = {name: (ruleset.min_players, ruleset.max_players) for name, ruleset in RULESETS.items()}
    assert sizes.pop("duel") == (2, 2)
    assert set(sizes.values()) == {(2, 5)}


@pytest.mark.parametrize(
    ("name", "players"),
    [(name, players) for name in RULESETS for players in (-1, 0, 1, 6, 109)]
    + [("duel", players) for players in (3, 4, 5)],
)
def test_table_sizes_that_are_refused(name, players):
    with pytest.raises(ValueError, match=f"{name} is for .* players, not {players}"):
        Game(RULESETS[name], players, shuffled(RULESETS[name], 1))


# Decks


def test_a_deck_has_109_cards_and_a_duels_105():
    assert sum(full_deck(RULESETS["basic"])) == DECK_SIZE == 109
    assert sum(full_deck(RULESETS["duel"])) == 105
    assert full_deck(RULESETS["basic"])[1:] == (8,) * 13 + (5,)
    assert full_deck(RULESETS["duel"])[1:] == (8,) * 13 + (1,)


WRONG_DECKS = {
    "empty": lambda deck: deck[:0],
    "a card short": lambda deck: deck[1:],
    "a card more": lambda deck: (*deck, deck[0]),
    "a card too often": lambda deck: (13 if deck[0] != 13 else 1, *deck[1:]),
    "a hidden card": lambda deck: (*deck[1:], 0),
    "a card too high": lambda deck: (*deck[1:], 15),
    "a card below zero": lambda deck: (*deck, -1),
    "a joker for a number": lambda deck: (*(card for card in deck if card != 7), *[JOKER] * 8),
}


@pytest.mark.parametrize("wrong", WRONG_DECKS)
@pytest.mark.parametrize("name", RULESETS)
def test_wrong_decks_are_refused(name, wrong):
    ruleset = RULESETS[name]
    with pytest.raises(ValueError, match=f"the deck does not have the cards of {name}"):
        Game(ruleset, 2, WRONG_DECKS[wrong](shuffled(ruleset, 1)))


def test_a_duels_deck_is_no_other_rulesets():
    with pytest.raises(ValueError, match="the deck does not have the cards of duel"):
        Game(RULESETS["duel"], 2, shuffled(RULESETS["basic"], 1))
    with pytest.raises(ValueError, match="the deck does not have the cards of basic"):
        Game(RULESETS["basic"], 2, shuffled(RULESETS["duel"], 1))


# Options


@pytest.mark.parametrize("max_turns", [0, -1])
def test_a_game_has_at_least_one_turn(max_turns):
    with pytest.raises(ValueError, match="max_turns"):
        RULESETS["basic"].with_options(max_turns=max_turns)


def test_options_leave_the_rest_of_the_rules_alone():
    rules = RULESETS["expert"].with_options(end_on=EndOn.DECK, max_turns=7)
    assert (rules.end_on, rules.max_turns) == (EndOn.DECK, 7)
    assert rules.with_options() == rules
    assert rules.with_options(end_on=EndOn.DECK_AND_DISPLAY, max_turns=500) == RULESETS["expert"]


def test_in_every_preset_deck_and_display_end_the_game():
    assert {ruleset.end_on for ruleset in RULESETS.values()} == {EndOn.DECK_AND_DISPLAY}


def test_with_end_on_deck_a_drawn_last_card_ends_the_game_in_the_middle_of_a_draw():
    run = game("classic", ["9 9 1", "2", "3"], [[], ["8 8"], ["7 7"]], deck="10", end_on=EndOn.DECK)
    follow(run, (0, play("9 9")))
    events = follow(run, (0, TAKE), (1, DECK))
    assert run.outcome is not None
    assert run.outcome.termination is Termination.DECK_EMPTY
    assert hand(run, 1) == [2, 10]  # one of two
    assert Snatched(0, 2, layer("7 7")) not in events


def test_with_end_on_deck_a_refill_that_empties_the_deck_ends_the_game():
    run = game("classic", ["9 1", "2"], [[], ["8"]], deck="10", end_on=EndOn.DECK)
    follow(run, (0, play("9")), (0, TAKE))
    events = follow(run, (1, draw(run, "3")))
    assert events[1] == DisplayRefilled((SlotCard(2, 10),))
    assert run.outcome is not None
    assert run.outcome.termination is Termination.DECK_EMPTY


def test_without_it_the_same_games_go_on():
    for answer in ("deck", "3"):
        run = game("classic", ["9 1", "2"], [[], ["8"]], deck="10")
        follow(run, (0, play("9")), (0, TAKE))
        follow(run, (1, DECK if answer == "deck" else draw(run, answer)))
        assert asked(run) == (1, DecisionKind.PLAY)
