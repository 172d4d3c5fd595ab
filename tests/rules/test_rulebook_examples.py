"""The engine follows the examples of the rulebooks, and the seven rules that players often forget."""

from __future__ import annotations

import pytest
from playouts import shuffled
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
    play,
    tops,
)

from referee.rules.actions import DecisionKind, DrawDisplay, Play
from referee.rules.events import Drawn, Played, Snatched, Termination
from referee.rules.game import Game, IllegalActionError
from referee.rules.ruleset import RULESETS, Layer

ALL = sorted(RULESETS)


def snatched_by(run: Game, action: Play) -> list[tuple[int, Layer]]:
    """Apply a play; return the victim and the layer of its first snatch, or an empty list."""
    return [
        (event.victim, event.layer) for event in run.apply(action) if isinstance(event, Snatched)
    ]


# Worked examples


def two_twelves(**more) -> Game:
    """Andi (0) plays. Ben (1) has a 3 on top, Claudia (2) two 9s, Daniel (3) two 7s on a 5."""
    return game(
        "classic",
        ["12 12 2", "13 6", "4 4", "8 8"],
        [[], ["3"], ["11 11 11", "9 9"], ["5", "7 7"]],
        **more,
    )


def test_two_12s_leave_the_single_3_and_snatch_9s_and_7s_in_table_order():
    run = two_twelves()
    events = follow(run, (0, play("12 12")), (0, TAKE))
    assert events[1] == Snatched(0, 2, layer("9 9"))  # not Ben's 3, which has another size
    assert next_decision(run) == (2, DecisionKind.DRAW)
    events = follow(run, (2, DECK), (2, DECK))
    assert Snatched(0, 3, layer("7 7")) in events  # only once Claudia has drawn
    assert hand(run, 0) == [2, 9, 9]
    follow(run, (0, LEAVE))
    assert next_decision(run) == (3, DecisionKind.RECLAIM_OR_DISCARD)
    follow(run, (3, DISCARD), (3, DECK), (3, DECK))
    assert run.view(0).discards[7] == 2
    assert tops(run) == [layer("12 12"), layer("3"), layer("11 11 11"), layer("5")]
    assert next_decision(run) == (1, DecisionKind.PLAY)


def test_single_13_snatches_the_uncovered_5_and_no_layer_of_another_size():
    run = two_twelves()
    follow(run, (0, play("12 12")), (0, LEAVE), (2, RECLAIM), (0, LEAVE), (3, RECLAIM))
    events = follow(run, (1, play("13")), (1, TAKE))
    assert events[1] == Snatched(1, 3, layer("5"))
    follow(run, (3, DECK))
    assert tops(run) == [layer("12 12"), layer("13"), layer("11 11 11"), None]
    assert next_decision(run) == (2, DecisionKind.PLAY)


def test_13_does_not_snatch_a_13():
    run = game("classic", ["13 1", "2"], [[], ["13"]])
    assert snatched_by(run, play("13")) == []
    assert next_decision(run) == (1, DecisionKind.PLAY)


def test_player_may_play_only_some_cards_of_a_value():
    """Andi plays one of his two 7s. He could have played both, or up to three 6s."""
    run = game("classic", ["7 7 6 6 6", "1"])
    assert run.decision is not None
    assert set(run.decision.legal) == {
        *(play(text) for text in ("7", "7 7")),
        *(play(text) for text in ("6", "6 6", "6 6 6")),
    }


def test_layers_of_any_size_and_value_can_follow_each_other():
    """Andi plays a 7, then three 6s with a joker, then two 12s."""
    run = game("classic", ["7 6 6 6 J 12 12 1", "1 1 1 1"])
    for text in ("7", "6 6 6 J", "12 12"):
        events = follow(run, (0, play(text)))
        assert Played(0, layer(text)) in events
        if next_decision(run) == (0, DecisionKind.TAKE_OR_LEAVE):
            follow(run, (0, LEAVE), (1, RECLAIM))
        follow(run, (1, play("1")))
        if next_decision(run) == (1, DecisionKind.TAKE_OR_LEAVE):
            follow(run, (1, LEAVE), (0, DISCARD))
    assert run.view(1).tables[0] == (layer("7"), layer("6 6 6 J"), layer("12 12"))


def test_three_4s_and_a_joker_are_a_layer_of_size_4_and_value_4():
    assert layer("4 4 4 J") == Layer(value=4, naturals=3, jokers=1)
    assert layer("4 4 4 J").size == 4
    victim = [[], ["3 3 3 3"], ["4 4 4 4"], ["3 3 3"]]
    run = game("classic", ["4 4 4 J 1", "1", "1", "1"], victim)
    assert snatched_by(run, play("4 4 4 J")) == [(1, layer("3 3 3 3"))]
    follow(run, (0, LEAVE), (1, RECLAIM))
    assert tops(run)[2:] == [layer("4 4 4 4"), layer("3 3 3")]


@pytest.mark.parametrize("ruleset", ALL)
def test_two_jokers_snatch_two_13s(ruleset):
    run = game(ruleset, ["J J 1", "1"], [[], ["13 13"]])
    assert snatched_by(run, play("J J")) == [(1, layer("13 13"))]


@pytest.mark.parametrize("ruleset", ["classic", "basic", "advanced"])
def test_jokers_played_alone_cannot_be_snatched(ruleset):
    for attack in ("1", "13", "J"):
        run = game(ruleset, [f"{attack} 2", "1"], [[], ["J"]])
        assert snatched_by(run, play(attack)) == []


def three_sevens() -> Game:
    """The example of 2022: Nikodem (0) plays, then Karolina, Michał and Ela."""
    return game(
        "basic",
        ["7 7 7 3 3 J", "13 4", "2 13", "8 8"],
        [[], ["6 6"], ["13", "3 3 J"], ["9 9", "5 5 5"]],
        display="1 2 J 4 5 6",
        deck="10 11 12 10 11 12",
    )


def test_example_with_three_7s_of_the_2022_rulebook():
    run = three_sevens()
    events = follow(run, (0, play("7 7 7")), (0, TAKE))
    assert events[1] == Snatched(0, 2, layer("3 3 J"))  # Karolina's two 6s: another size
    assert hand(run, 0) == [3, 3, 3, 3, 14, 14]
    # Michał draws two cards from the display and one from the deck, then it is refilled to six.
    follow(run, (2, draw(run, "1")), (2, draw(run, "2")))
    assert run.view(0).display[:2] == ((), ())
    events = follow(run, (2, DECK))
    assert hand(run, 2) == [1, 2, 2, 10, 13]
    assert run.view(0).display == ((11,), (12,), (14,), (4,), (5,), (6,))
    # "… and sees that he must steal again", from Ela, who takes her cards back.
    assert Snatched(0, 3, layer("5 5 5")) in events
    follow(run, (0, LEAVE), (3, RECLAIM))
    assert hand(run, 3) == [5, 5, 5, 8, 8]
    assert tops(run) == [layer("7 7 7"), layer("6 6"), layer("13"), layer("9 9")]
    assert next_decision(run) == (1, DecisionKind.PLAY)  # he snatched, so he may not draw


def test_player_who_snatches_nothing_may_draw_the_joker():
    run = three_sevens()
    follow(run, (0, play("7 7 7")), (0, LEAVE), (2, RECLAIM), (0, LEAVE), (3, RECLAIM))
    events = follow(run, (1, play("13")))
    assert events == [Played(1, layer("13"))]  # Michał has a 13, Ela 9 9, Nikodem 7 7 7
    assert next_decision(run) == (1, DecisionKind.OPTIONAL_DRAW)
    events = follow(run, (1, draw(run, "J")))
    assert events[0] == Drawn(1, 2, (14,))
    assert hand(run, 1) == [4, 14]
    assert next_decision(run) == (2, DecisionKind.PLAY)


def test_optional_draw_does_not_depend_on_the_size_of_the_play():
    run = game("basic", ["8 8 8 8 1", "1"])
    follow(run, (0, play("8 8 8 8")))
    assert next_decision(run) == (0, DecisionKind.OPTIONAL_DRAW)
    follow(run, (0, DECK))
    assert hand(run, 0) == [1, 7]


def test_draw_options_are_the_deck_and_every_card_of_the_display():
    run = game("classic", ["9 1", "2"], [[], ["8"]], display="1 2 3 4 5 6")
    follow(run, (0, play("9")), (0, TAKE))
    assert run.decision is not None
    assert set(run.decision.legal) == {
        DECK,
        *(DrawDisplay(slot, (slot + 1,)) for slot in range(6)),
    }


def test_last_play_ends_the_game_without_a_snatch():
    run = game("classic", ["9 9", "1"], [[], ["8 8"]])
    events = follow(run, (0, play("9 9")))
    assert not [event for event in events if isinstance(event, Snatched)]
    assert run.outcome is not None
    assert run.outcome.termination is Termination.OUT
    assert run.outcome.scores == (2, 1)


def test_game_ends_between_two_draws_when_no_card_is_left():
    run = game("classic", ["9 9 9 1", "1"], [[], ["8 8 8"]], display="4 - - - - -", deck="5")
    follow(run, (0, play("9 9 9")), (0, TAKE))
    follow(run, (1, draw(run, "4")))  # then the deck is the only source and is drawn from at once
    assert run.outcome is not None
    assert run.outcome.termination is Termination.EXHAUSTED
    assert hand(run, 1) == [1, 4, 5]  # two of three


def test_game_continues_with_the_display_when_the_deck_is_empty():
    run = game("classic", ["9 1", "1"], [[], ["8"]], display="4 5 - - - -", deck="")
    follow(run, (0, play("9")), (0, TAKE))
    follow(run, (1, draw(run, "4")))
    assert run.view(0).display == ((), (5,), (), (), (), ())
    assert next_decision(run) == (1, DecisionKind.PLAY)


def test_score_is_cards_on_the_table_minus_cards_in_hand():
    run = game("classic", ["1", "13 13 13"], [["12 12"], ["2", "J J"]])
    follow(run, (0, play("1")))
    assert run.outcome is not None
    assert run.outcome.scores == (3, 3 - 3)


def test_expert_1_snatches_jokers_and_by_the_polish_rulebook_13s():
    for ruleset, victims in (
        ("advanced", []),
        ("expert-jokers", [(1, layer("J"))]),
        ("expert", [(1, layer("J")), (2, layer("13"))]),
    ):
        run = game(ruleset, ["1 5", "2", "2", "2"], [[], ["J"], ["13"], ["12"]])
        found = snatched_by(run, play("1"))
        while next_decision(run) == (0, DecisionKind.TAKE_OR_LEAVE):
            events = follow(run, (0, LEAVE))
            events += follow(run, (next_decision(run)[0], RECLAIM))
            found += [(e.victim, e.layer) for e in events if isinstance(e, Snatched)]
        assert found == victims


@pytest.mark.parametrize("ruleset", ["expert", "expert-jokers"])
def test_expert_1_is_snatched_by_every_higher_value(ruleset):
    for attack in ("2", "13", "J"):
        run = game(ruleset, [f"{attack} 4", "2"], [[], ["1"]])
        assert snatched_by(run, play(attack)) == [(1, layer("1"))]


@pytest.mark.parametrize("ruleset", ["expert", "expert-jokers"])
def test_expert_1s_snatch_only_layers_of_their_size(ruleset):
    run = game(ruleset, ["1 1 4", "2", "2"], [[], ["J"], ["13"]])
    assert snatched_by(run, play("1 1")) == []
    run = game(ruleset, ["1 J 4", "2", "2"], [[], ["J J"], ["J"]])
    assert snatched_by(run, play("1 J")) == [(1, layer("J J"))]


# Seven rules that players often forget


@pytest.mark.parametrize("ruleset", ALL)
def test_snatching_is_compulsory(ruleset):
    run = game(ruleset, ["9 1", "2"], [[], ["8"]])
    events = follow(run, (0, play("9")))
    assert events[-1] == Snatched(0, 1, layer("8"))  # without a decision
    assert run.view(0).tables[1] == ()
    assert run.decision is not None
    assert set(run.decision.legal) == {TAKE, LEAVE}
    with pytest.raises(IllegalActionError):
        run.apply(PASS)


@pytest.mark.parametrize("ruleset", ALL)
def test_single_cards_snatch_too(ruleset):
    run = game(ruleset, ["2 5", "2"], [[], ["1"]])
    assert snatched_by(run, play("2")) == [(1, layer("1"))]


@pytest.mark.parametrize("ruleset", [name for name in ALL if name != "duel"])
def test_second_player_of_the_first_round_can_snatch(ruleset):
    rules = RULESETS[ruleset]
    run = Game(rules, 2, sorted(shuffled(rules, 1)))  # seat 0: 1s and 2s, seat 1: 2s, 3s and 4s
    follow(run, (0, play("1")))
    if next_decision(run) == (0, DecisionKind.OPTIONAL_DRAW):
        follow(run, (0, PASS))
    assert snatched_by(run, play("2")) == [(0, layer("1"))]


@pytest.mark.parametrize("ruleset", ALL)
def test_turn_has_one_play(ruleset):
    run = game(ruleset, ["9 9 9", "9 9 9"])
    for seat in (0, 1, 0, 1):
        assert next_decision(run) == (seat, DecisionKind.PLAY)
        follow(run, (seat, play("9")))
        if next_decision(run) == (seat, DecisionKind.OPTIONAL_DRAW):
            follow(run, (seat, PASS))


@pytest.mark.parametrize("ruleset", ALL)
def test_only_the_layer_just_played_snatches(ruleset):
    run = game(ruleset, ["10 1", "2 5"], [["9", "12 12"], ["3 3"]])
    assert snatched_by(run, play("10")) == []  # the 12s lying there are higher than the 3s
    follow(run, *([(0, PASS)] if next_decision(run) == (0, DecisionKind.OPTIONAL_DRAW) else []))
    assert snatched_by(run, play("2")) == []  # the 10 now on top does not snatch the new 2
    assert tops(run) == [layer("10"), layer("2")]


@pytest.mark.parametrize("ruleset", ALL)
def test_only_top_layers_are_snatched(ruleset):
    run = game(ruleset, ["9 1", "2"], [[], ["8", "3 3"]])
    assert snatched_by(run, play("9")) == []
    assert run.view(0).tables[1] == (layer("8"), layer("3 3"))


@pytest.mark.parametrize("ruleset", ALL)
@pytest.mark.parametrize(
    ("fate", "hand_0", "hand_1", "discards"),
    [
        ([(0, TAKE), (1, DECK)], [1, 8], [2, 7], 0),
        ([(0, LEAVE), (1, RECLAIM)], [1], [2, 8], 0),
        ([(0, LEAVE), (1, DISCARD), (1, DECK)], [1], [2, 7], 1),
    ],
    ids=["take", "reclaim", "discard"],
)
def test_snatched_cards_leave_the_table_of_their_owner(ruleset, fate, hand_0, hand_1, discards):
    run = game(ruleset, ["9 1", "2"], [[], ["8"]])
    follow(run, (0, play("9")), *fate)
    assert run.view(0).tables[1] == ()
    assert (hand(run, 0), hand(run, 1)) == (hand_0, hand_1)
    assert run.view(0).discards[8] == discards
