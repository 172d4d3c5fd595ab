"""The generators `turn` and `resolve_snatch` yield their decisions in the order of the rules."""

from __future__ import annotations

import pytest
from positions import DECK, DISCARD, LEAVE, PASS, RECLAIM, TAKE, cards, layer, play, position

from referee.rules.actions import Action, Decision, DecisionKind, DrawDisplay, SnatchGhost
from referee.rules.events import Drawn, Left, Played, Reclaimed, Snatched, Termination
from referee.rules.game import Game, IllegalActionError, Steps, resolve_snatch, turn
from referee.rules.ruleset import EndOn, count_cards
from referee.rules.table import GameEnded, Table

FIVE_OF_DISPLAY = DrawDisplay(4, (5,))


def drive(steps: Steps, actions: list[Action]) -> list[str]:
    """Send the actions to a generator; return its decisions and how it ended, as text."""
    log = []
    try:
        decision: Decision = next(steps)
        for action in actions:
            log.append(f"{decision.seat} {decision.kind.value}")
            assert action in decision.legal
            decision = steps.send(action)
    except StopIteration:
        return [*log, "turn over"]
    except GameEnded as end:
        return [*log, end.termination.value]
    return [*log, f"{decision.seat} {decision.kind.value}?"]


@pytest.mark.parametrize(
    ("ruleset", "tables", "actions", "log"),
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
def test_turn_yields_its_decisions_in_order(ruleset, tables, actions, log):
    hands = ["9 9 9"] if actions == [play("9 9 9")] else ["9 9 1"]
    table = position(ruleset, [*hands, "2", "3"], tables).table()
    assert drive(turn(table), actions) == log


def test_turn_of_a_duel_yields_its_decisions_in_order():
    table = position("duel", ["9 9 1", "2"], [[], ["8 8"]], ghost="3 3 4 4 5 5 5").table()
    actions = [play("9 9"), SnatchGhost(4), LEAVE, DISCARD, DECK, DECK]
    assert drive(turn(table), actions) == [
        "0 play",
        "0 ghost-set",
        "0 take-or-leave",
        "1 reclaim-or-discard",
        "1 draw",
        "1 draw",
        "turn over",
    ]


@pytest.mark.parametrize("done", range(6))
def test_turn_can_begin_at_each_of_its_decisions(done):
    table = position("duel", ["9 9 1", "2"], [[], ["8 8"]], ghost="3 3 4 4 5 5 5").table()
    actions = [play("9 9"), SnatchGhost(4), LEAVE, DISCARD, DECK, DECK]
    game = Game.from_table(table)
    for action in actions[:done]:
        game.apply(action)
    rest = turn(table.copy(), game.decision.kind)
    assert next(rest) == game.decision
    for action in actions[done:]:
        game.apply(action)
        assert next_or_none(rest, action) == (game.decision if table.turn == 1 else None)


def test_no_action_is_legal_after_an_interrupted_turn(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    game = Game.from_table(position("classic", ["9 1", "2"], [[], []]).table())
    with monkeypatch.context() as patch:
        patch.setattr(Table, "play", interrupt)
        with pytest.raises(KeyboardInterrupt):
            game.apply(play("9"))
    with pytest.raises(IllegalActionError):
        game.apply(play("9"))


def next_or_none(steps: Steps, action: Action) -> Decision | None:
    """Return the next decision of the turn; None if the turn is over."""
    try:
        return steps.send(action)
    except StopIteration:
        return None


@pytest.mark.parametrize("kind", list(DecisionKind)[1:])
def test_game_refuses_a_decision_that_its_table_does_not_have(kind):
    table = position("classic", ["9", "2"], [["8"], []], display="- - - - - -", deck="").table()
    if kind is DecisionKind.DRAW:
        table.victim = 1
    with pytest.raises(ValueError, match=f"no decision {kind.value}"):
        Game.from_table(table, kind)


def test_game_refuses_a_decision_about_a_snatch_that_has_not_happened():
    table = table_before_snatch()
    assert table.victim is None
    with pytest.raises(ValueError, match="nobody has lost a layer, so there is no decision"):
        Game.from_table(table, DecisionKind.TAKE_OR_LEAVE)


def table_before_snatch(**more) -> Table:
    """Seat 1 attacks seat 2, whose top layer is two 8s and a joker."""
    return position(
        "classic", ["1", "2", "3"], [[], ["9 9 9"], ["4", "8 8 J"]], active=1, **more
    ).table()


def test_taken_layer_goes_to_the_attacker_and_the_victim_draws():
    table = table_before_snatch(display="1 2 3 4 5 6", deck="7 7")
    steps = resolve_snatch(table, 2)
    assert next(steps) == Decision(1, DecisionKind.TAKE_OR_LEAVE, (TAKE, LEAVE))
    assert table.view(0).snatched == layer("8 8 J")
    assert table.view(0).victim == 2
    assert table.view(0).cards_to_draw == 0
    for draws in (3, 2):
        decision = steps.send(TAKE if draws == 3 else DECK)
        assert (decision.seat, decision.kind) == (2, DecisionKind.DRAW)
        view = table.view(0)
        assert (view.cards_to_draw, view.victim, view.snatched) == (draws, 2, None)
    steps.send(DECK)
    with pytest.raises(StopIteration):
        steps.send(DrawDisplay(0, (1,)))
    view = table.view(0)
    assert (view.cards_to_draw, view.victim, view.snatched) == (0, None, None)
    assert table.hands[1] == list(count_cards(cards("2 8 8 J")))
    assert table.hands[2] == list(count_cards(cards("1 3 7 7")))
    assert table.layers[2] == (layer("4"),)


def test_reclaimed_layer_goes_back_to_the_hand_without_a_draw():
    table = table_before_snatch()
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


def test_discarded_layer_goes_to_the_discard_pile_and_the_owner_draws():
    table = table_before_snatch(deck="7 7 7 7")
    steps = resolve_snatch(table, 2)
    next(steps)
    steps.send(LEAVE)
    assert steps.send(DISCARD).kind is DecisionKind.DRAW
    assert table.discards == count_cards(cards("8 8 J"))
    assert table.view(0).cards_to_draw == 3
    assert table.hands[2] == list(count_cards(cards("3")))


def test_game_ends_when_the_victim_draws_the_last_card():
    table = table_before_snatch(display="- - 6 - - -", deck="")
    steps = resolve_snatch(table, 2)
    next(steps)
    with pytest.raises(GameEnded) as end:
        steps.send(TAKE)
    assert end.value.termination is Termination.EXHAUSTED
    assert table.events[-1] == Drawn(2, 2, (6,))


def test_last_card_of_the_deck_ends_the_game_with_end_on_deck():
    table = table_before_snatch(deck="7 7", end_on=EndOn.DECK)
    steps = resolve_snatch(table, 2)
    next(steps)
    steps.send(TAKE)
    steps.send(DECK)
    with pytest.raises(GameEnded) as end:
        steps.send(DECK)
    assert end.value.termination is Termination.DECK_EMPTY
    assert table.hands[2] == list(count_cards(cards("3 7 7")))


def test_layer_uncovered_in_a_turn_is_not_snatched_in_it():
    table = position("classic", ["9 1", "2", "3"], [[], ["5", "4", "3"], []]).table()
    log = drive(turn(table), [play("9"), LEAVE, RECLAIM])
    assert log == ["0 play", "0 take-or-leave", "1 reclaim-or-discard", "turn over"]
    assert table.layers[1] == (layer("5"), layer("4"))


def test_opponents_are_checked_clockwise_from_the_attacker():
    table = position("classic", ["2", "3", "9 1", "4"], [["5"], ["6"], [], ["7"]], active=2).table()
    drive(turn(table), [play("9"), LEAVE, RECLAIM, LEAVE, RECLAIM, LEAVE, RECLAIM])
    victims = [event.victim for event in table.events if isinstance(event, Snatched)]
    assert victims == [3, 0, 1]


def test_last_layer_of_a_hand_snatches_nothing():
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
def test_layer_snatches_as_its_ruleset_says(ruleset, attack, top, rulesets):
    rules = position(ruleset, ["1", "1"]).ruleset
    assert rules.snatches(layer(attack), layer(top)) is (ruleset in rulesets)
