"""Every ruleset has its options, table sizes and deck."""

from __future__ import annotations

from dataclasses import fields

import pytest
from playouts import TABLE_NAMES, TABLES, shuffled
from positions import DECK, TAKE, draw, follow, game, hand, layer, next_decision, play

from referee.rules.actions import DecisionKind
from referee.rules.events import DisplayRefilled, SlotCard, Snatched, Termination
from referee.rules.game import Game
from referee.rules.ruleset import GHOST_OPTIONS, JOKER, RULESETS, EndOn, full_deck


def test_there_are_six_rulesets():
    assert list(RULESETS) == ["classic", "basic", "advanced", "expert", "expert-jokers", "duel"]
    assert all(ruleset.name == name for name, ruleset in RULESETS.items())


@pytest.mark.parametrize(
    ("option", "names"),
    [
        ("optional_draw", {"basic", "duel"}),
        ("ones_snatch_jokers", {"expert", "expert-jokers"}),
        ("ones_snatch_thirteens", {"expert"}),
        ("hand_size_breaks_ties", {"basic", "advanced", "expert", "expert-jokers", "duel"}),
        ("ghost", {"duel"}),
    ],
)
def test_option_is_on_in_these_rulesets_only(option, names):
    assert {name for name, ruleset in RULESETS.items() if getattr(ruleset, option)} == names


def test_rulesets_have_no_other_fields():
    names = {
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
        *GHOST_OPTIONS,
    }
    assert {field.name for field in fields(RULESETS["basic"])} == names, (
        "add each new option here; one that is on or off also needs a line in the test above"
    )


@pytest.mark.parametrize("name", RULESETS)
def test_only_basic_and_duel_offer_an_optional_draw(name):
    run = game(name, ["9 1", "2"])
    follow(run, (0, play("9")))
    assert (next_decision(run)[1] is DecisionKind.OPTIONAL_DRAW) is (name in {"basic", "duel"})


@pytest.mark.parametrize("name", RULESETS)
def test_equal_scores_rank_by_hand_size_except_in_classic(name):
    """Two cards played and three held score as much as none played and one held."""
    run = game(name, ["9 1 1 1", "2"], [["5"], []], max_turns=1)
    follow(run, (0, play("9")))
    if run.decision is not None:
        follow(run, (0, run.decision.legal[0]))
    assert run.outcome is not None
    assert run.outcome.scores == (-1, -1)
    assert run.outcome.ranks == ((1, 1) if name == "classic" else (2, 1))


# Table sizes


@pytest.mark.parametrize(("ruleset", "players"), TABLES, ids=TABLE_NAMES)
def test_allowed_table_size_is_accepted(ruleset, players):
    assert Game(ruleset, players, shuffled(ruleset, 1)).players == players


def test_duel_has_two_seats_and_other_rulesets_two_to_five():
    sizes = {name: (ruleset.min_players, ruleset.max_players) for name, ruleset in RULESETS.items()}
    assert sizes.pop("duel") == (2, 2)
    assert set(sizes.values()) == {(2, 5)}


@pytest.mark.parametrize(
    ("name", "players"),
    [(name, players) for name in RULESETS for players in (-1, 0, 1, 6, 109)]
    + [("duel", players) for players in (3, 4, 5)],
)
def test_other_table_size_is_refused(name, players):
    allowed = "2" if name == "duel" else "2 to 5"
    with pytest.raises(ValueError, match=f"^{name} is for {allowed} players, not {players}$"):
        Game(RULESETS[name], players, shuffled(RULESETS[name], 1))


# Decks


def test_deck_has_109_cards_and_the_duels_105():
    assert sum(full_deck(RULESETS["basic"])) == 109
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
def test_wrong_deck_is_refused(name, wrong):
    ruleset = RULESETS[name]
    with pytest.raises(ValueError, match=f"the deck does not have the cards of {name}"):
        Game(ruleset, 2, WRONG_DECKS[wrong](shuffled(ruleset, 1)))


def test_deck_of_the_duel_and_other_decks_are_not_interchangeable():
    with pytest.raises(ValueError, match="the deck does not have the cards of duel"):
        Game(RULESETS["duel"], 2, shuffled(RULESETS["basic"], 1))
    with pytest.raises(ValueError, match="the deck does not have the cards of basic"):
        Game(RULESETS["basic"], 2, shuffled(RULESETS["duel"], 1))


# Options


@pytest.mark.parametrize("max_turns", [0, -1])
def test_limit_below_one_turn_is_refused(max_turns):
    with pytest.raises(ValueError, match="max_turns"):
        RULESETS["basic"].with_options(max_turns=max_turns)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("end_on", "deck"),
        ("ghost_start", "as-dealt"),
        ("ghost_snatch", "optional"),
        ("ghost_overflow", EndOn.DECK),
    ],
)
def test_option_of_another_type_is_refused(option, value):
    with pytest.raises(TypeError, match=f"{option} is {value!r}, but its type must be "):
        RULESETS["duel"].with_options(**{option: value})


@pytest.mark.parametrize("max_turns", [1.5, "60"])
def test_limit_that_is_no_whole_number_is_refused(max_turns):
    with pytest.raises(
        TypeError, match=f"max_turns is {max_turns!r}, but it must be a whole number"
    ):
        RULESETS["basic"].with_options(max_turns=max_turns)


def test_options_do_not_change_other_rules():
    rules = RULESETS["expert"].with_options(end_on=EndOn.DECK, max_turns=7)
    assert (rules.end_on, rules.max_turns) == (EndOn.DECK, 7)
    assert rules.with_options() == rules
    assert rules.with_options(end_on=EndOn.DECK_AND_DISPLAY, max_turns=500) == RULESETS["expert"]


def test_every_preset_ends_on_deck_and_display():
    assert {ruleset.end_on for ruleset in RULESETS.values()} == {EndOn.DECK_AND_DISPLAY}


def test_drawing_the_last_card_of_the_deck_ends_the_game_with_end_on_deck():
    run = game("classic", ["9 9 1", "2", "3"], [[], ["8 8"], ["7 7"]], deck="10", end_on=EndOn.DECK)
    follow(run, (0, play("9 9")))
    events = follow(run, (0, TAKE), (1, DECK))
    assert run.outcome is not None
    assert run.outcome.termination is Termination.DECK_EMPTY
    assert hand(run, 1) == [2, 10]  # one of two
    assert Snatched(0, 2, layer("7 7")) not in events


def test_refill_that_empties_the_deck_ends_the_game_with_end_on_deck():
    run = game("classic", ["9 1", "2"], [[], ["8"]], deck="10", end_on=EndOn.DECK)
    follow(run, (0, play("9")), (0, TAKE))
    events = follow(run, (1, draw(run, "3")))
    assert events[1] == DisplayRefilled((SlotCard(2, 10),))
    assert run.outcome is not None
    assert run.outcome.termination is Termination.DECK_EMPTY


def test_empty_deck_does_not_end_the_game_by_default():
    for answer in ("deck", "3"):
        run = game("classic", ["9 1", "2"], [[], ["8"]], deck="10")
        follow(run, (0, play("9")), (0, TAKE))
        follow(run, (1, DECK if answer == "deck" else draw(run, answer)))
        assert next_decision(run) == (1, DecisionKind.PLAY)
