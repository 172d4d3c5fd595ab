"""The rules of the duel: the ghost, its sets, and the groups in the display."""

from __future__ import annotations

from positions import DECK, TAKE, draw, follow, game, hand, next_decision, of_kind, play

from referee.rules.actions import DecisionKind
from referee.rules.events import GhostSnatched


def test_ghost_is_snatched_from_first_and_its_cards_go_to_the_hand():
    run = game("duel", ["8 8 1", "2"], [[], ["7 7"]], ghost="3 3 4 5 6", deck="9 9 9")
    events = follow(run, (0, play("8 8")))
    assert [type(event).__name__ for event in events] == [
        "Played",
        "GhostSnatched",
        "GhostRefilled",
        "Snatched",
    ]
    assert hand(run, 0) == [1, 3, 3]
    assert next_decision(run) == (0, DecisionKind.TAKE_OR_LEAVE)


def test_attacker_chooses_one_of_several_sets_of_the_ghost():
    run = game("duel", ["8 8 1", "2"], ghost="3 3 5 5 9 9 4", deck="")
    follow(run, (0, play("8 8")))
    assert next_decision(run) == (0, DecisionKind.GHOST_SET)
    assert run.decision is not None
    assert [action.value for action in run.decision.legal] == [3, 5]  # 9s are higher, 4 is single
    follow(run, (0, run.decision.legal[1]))
    assert hand(run, 0) == [1, 5, 5]
    assert run.view(0).ghost[3] == 2
    assert next_decision(run) == (1, DecisionKind.PLAY)


def test_set_of_the_ghost_with_another_size_is_not_snatched():
    run = game("duel", ["8 8 1", "2"], ghost="3 3 3 4")
    follow(run, (0, play("8 8")))
    assert run.view(0).ghost[3] == 3
    assert next_decision(run) == (0, DecisionKind.OPTIONAL_DRAW)


def test_only_lower_sets_of_the_ghost_are_snatched():
    for attack, ghost, snatched in (
        ("8", "8", []),
        ("9", "8", [8]),
        ("J", "12", [12]),
        ("1", "8", []),
    ):
        run = game("duel", [f"{attack} 13", "2"], ghost=ghost)
        events = of_kind(follow(run, (0, play(attack))), GhostSnatched)
        assert [event.layer.value for event in events] == snatched


def test_ghost_is_refilled_to_13_and_13s_and_jokers_go_onto_the_display():
    run = game(
        "duel",
        ["8 1", "2"],
        ghost="3 4 4 5 5 6 6 9 9 10 10 11 11",
        display="7 5 9 9 9 9",
        deck="13 J 12 2",
    )
    follow(run, (0, play("8")))
    assert run.view(0).ghost[12] == 1
    assert sum(run.view(0).ghost) == 13
    assert run.view(0).display[:2] == ((7, 14), (5, 13))  # the 5 is lowest, then the single 7


def test_group_counts_as_one_drawn_card():
    run = game("duel", ["8 8 1", "2"], [[], ["7 7"]], display="4+13+J 5 6 6 6 6")
    follow(run, (0, play("8 8")), (0, TAKE))
    assert run.view(0).cards_to_draw == 2
    follow(run, (1, draw(run, "4 13 J")))
    assert run.view(0).cards_to_draw == 1
    assert hand(run, 1) == [2, 4, 13, 14]
    follow(run, (1, DECK))
    assert next_decision(run) == (1, DecisionKind.PLAY)
