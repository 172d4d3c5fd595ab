"""The generators `turn` and `resolve_snatch` driven by hand: which decisions follow on which."""

from __future__ import annotations

import pytest
from positions import DECK, DISCARD, LEAVE, PASS, RECLAIM, TAKE, cards, layer, play, position

from referee.rules.actions import Action, Decision, DecisionKind, DrawDisplay, SnatchGhost
from referee.rules.cards import count_cards
from referee.rules.events import Drawn, Left, Played, Reclaimed, Snatched, Termination
from referee.rules.ruleset import EndOn
from referee.rules.table import GameEnded, Table
from referee.rules.turn import Steps, resolve_snatch, turn

FIVE_OF_DISPLAY = DrawDisplay(4, (5,))


def drive(steps: Steps, answers: list[Action]) -> list[str]:
    """What is asked of whom on the way, and how it ends."""
    log = []
    try:
        decision: Decision = next(steps)
        for answer in answers:
            log.append(f"{decision.seat} {decision.kind.value}")
            assert answer in decision.legal
            decision = steps.send(answer)
    except StopIteration:
        return [*log, "turn over"]
    except GameEnded as end:
        return [*log, end.termination.value]
    return [*log, f"{decision.seat} {decision.kind.value}?"]


@pytest.mark.parametrize(
    ("ruleset", "tables", "answers", "log"),
    [
        ("basic", [[], [], []], [play("9")], ["0 play", "0 optional-draw?"]),
        ("basic", [[], [], []], [play("9"), PASS], ["0 play", "0 optional-draw", "turn over"]),
        ("basic", [[], [], []], [play("9"), DECK], ["0 play", "0 optional-draw", "turn over"]),
        ("classic", [[], [], []], [play("9")], ["0 play", "turn over"]),
        ("classic", [[], ["9"], ["8 8"]], [play("9")], ["0 play", "turn over"]),
        (
            "classic",
            [[], ["8"], []],
            [play("9"), TAKE, DECK],
            ["0 play", "0 take-or-leave", "1 draw", "turn over"],
        ),
        (
            "classic",
            [[], ["8"], ["7"]],
            [play("9"), LEAVE, RECLAIM, LEAVE, DISCARD, FIVE_OF_DISPLAY],
            [
                "0 play",
                "0 take-or-leave",
                "1 reclaim-or-discard",
                "0 take-or-leave",
                "2 reclaim-or-discard",
                "2 draw",
                "turn over",
            ],
        ),
        (
            "basic",
            [[], ["8 8"], ["7"]],
            [play("9 9"), TAKE, DECK, DECK],
            ["0 play", "0 take-or-leave", "1 draw", "1 draw", "turn over"],
        ),
        ("classic", [[], ["8 8 8"], []], [play("9 9 9")], ["0 play", "out"]),
    ],
)
def test_the_decisions_of_a_turn(ruleset, tables, answers, log):
    hands = ["9 9 9"] if answers == [play("9 9 9")] else ["9 9 1"]
    table = position(ruleset, [*hands, "2", "3"], tables).table()
    assert drive(turn(table), answers) == log


def test_the_decisions_of_a_duels_turn():
    table = position("duel", ["9 9 1", "2"], [[], ["8 8"]], ghost="3 3 4 4 5 5 5").table()
    answers = [play("9 9"), SnatchGhost(4), LEAVE, DISCARD, DECK, DECK]
    assert drive(turn(table), answers) == [
        "0 play",
        "0 ghost-set",
        "0 take-or-leave",
        "1 reclaim-or-discard",
        "1 draw",
        "1 draw",
        "turn over",
    ]


def robbed(**more) -> Table:
    """Seat 1 attacks seat 2, which has two 8s with a joker on top."""
    return position(
        "classic", ["1", "2", "3"], [[], ["9 9 9"], ["4", "8 8 J"]], active=1, **more
    ).table()


def test_rob_take():
    table = robbed(display="1 2 3 4 5 6", deck="7 7")
    steps = resolve_snatch(table, 2)
    assert next(steps) == Decision(1, DecisionKind.TAKE_OR_LEAVE, (TAKE, LEAVE))
    assert table.view(0).snatched == layer("8 8 J")
    assert table.view(0).victim == 2
    assert table.view(0).cards_to_draw == 0
    for owed in (3, 2):
        decision = steps.send(TAKE if owed == 3 else DECK)
        assert (decision.seat, decision.kind) == (2, DecisionKind.DRAW)
        view = table.view(0)
        assert (view.cards_to_draw, view.victim, view.snatched) == (owed, 2, None)
    steps.send(DECK)
    with pytest.raises(StopIteration):
        steps.send(DrawDisplay(0, (1,)))
    view = table.view(0)
    assert (view.cards_to_draw, view.victim, view.snatched) == (0, None, None)
    assert table.hands[1] == list(count_cards(cards("2 8 8 J")))
    assert table.hands[2] == list(count_cards(cards("1 3 7 7")))
    assert table.layers[2] == (layer("4"),)


def test_rob_reclaim():
    table = robbed()
    steps = resolve_snatch(table, 2)
    next(steps)
    assert steps.send(LEAVE) == Decision(2, DecisionKind.RECLAIM_OR_DISCARD, (RECLAIM, DISCARD))
    assert (table.view(0).snatched, table.view(0).victim) == (layer("8 8 J"), 2)
    with pytest.raises(StopIteration):
        steps.send(RECLAIM)
    assert table.hands[2] == list(count_cards(cards("3 8 8 J")))
    view = table.view(0)
    assert (view.cards_to_draw, view.victim, view.snatched) == (0, None, None)
    assert table.events == [
        Snatched(1, 2, layer("8 8 J")),
        Left(1),
        Reclaimed(2, layer("8 8 J")),
    ]


def test_rob_discard():
    table = robbed(deck="7 7 7 7")
    steps = resolve_snatch(table, 2)
    next(steps)
    steps.send(LEAVE)
    assert steps.send(DISCARD).kind is DecisionKind.DRAW
    assert table.discards == count_cards(cards("8 8 J"))
    assert table.view(0).cards_to_draw == 3
    assert table.hands[2] == list(count_cards(cards("3")))


def test_rob_ends_the_game_where_the_supply_ends():
    table = robbed(display="- - 6 - - -", deck="")
    steps = resolve_snatch(table, 2)
    next(steps)
    with pytest.raises(GameEnded) as end:
        steps.send(TAKE)
    assert end.value.termination is Termination.EXHAUSTED
    assert table.events[-1] == Drawn(2, 2, (6,))


def test_with_end_on_deck_the_last_card_of_the_deck_ends_the_game():
    table = robbed(deck="7 7", end_on=EndOn.DECK)
    steps = resolve_snatch(table, 2)
    next(steps)
    steps.send(TAKE)
    steps.send(DECK)
    with pytest.raises(GameEnded) as end:
        steps.send(DECK)
    assert end.value.termination is Termination.DECK_EMPTY
    assert table.hands[2] == list(count_cards(cards("3 7 7")))


def test_a_layer_laid_bare_in_this_turn_is_not_checked_again_in_it():
    table = position("classic", ["9 1", "2", "3"], [[], ["5", "4", "3"], []]).table()
    log = drive(turn(table), [play("9"), LEAVE, RECLAIM])
    assert log == ["0 play", "0 take-or-leave", "1 reclaim-or-discard", "turn over"]
    assert table.layers[1] == (layer("5"), layer("4"))


def test_opponents_are_checked_clockwise_from_the_attackers_left():
    table = position("classic", ["2", "3", "9 1", "4"], [["5"], ["6"], [], ["7"]], active=2).table()
    drive(turn(table), [play("9"), LEAVE, RECLAIM, LEAVE, RECLAIM, LEAVE, RECLAIM])
    victims = [event.victim for event in table.events if isinstance(event, Snatched)]
    assert victims == [3, 0, 1]


def test_the_layer_that_goes_out_snatches_nothing():
    table = position("classic", ["9", "2"], [[], ["5"]]).table()
    assert drive(turn(table), [play("9")]) == ["0 play", "out"]
    assert table.events == [Played(0, layer("9"))]
    assert table.layers[1] == (layer("5"),)


@pytest.mark.parametrize(
    ("attack", "top", "rulesets"),
    [
        ("9", "8", {"classic", "expert", "expert-jokers", "duel"}),
        ("9", "9", set()),
        ("8", "9", set()),
        ("9 9", "8", set()),
        ("9", "8 8", set()),
        ("9 J", "8 8", {"classic", "expert", "expert-jokers", "duel"}),
        ("9 9", "8 J", {"classic", "expert", "expert-jokers", "duel"}),
        ("J", "13", {"classic", "expert", "expert-jokers", "duel"}),
        ("J", "J", set()),
        ("13", "J", set()),
        ("1", "J", {"expert", "expert-jokers"}),
        ("1 J", "J J", {"expert", "expert-jokers"}),
        ("1 J", "J", set()),
        ("1", "13", {"expert"}),
        ("1 1", "13 J", {"expert"}),
        ("1 1", "13", set()),
        ("1", "12", set()),
        ("2", "13", set()),
        ("2", "1", {"classic", "expert", "expert-jokers", "duel"}),
    ],
)
@pytest.mark.parametrize("ruleset", ["classic", "expert", "expert-jokers", "duel"])
def test_what_snatches_what(ruleset, attack, top, rulesets):
    rules = position(ruleset, ["1", "1"]).ruleset
    assert rules.snatches(layer(attack), layer(top)) is (ruleset in rulesets)
