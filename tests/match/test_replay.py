"""A record that was tampered with does not pass: the first difference is named."""

from __future__ import annotations

from dataclasses import replace

import pytest
from players import FunctionPlayer, chance, fixture, play

from referee.errors import Cause, Evidence, Forfeit
from referee.match import Difference, check, steps
from referee.rules.actions import Choice


@pytest.fixture
async def record():
    return (await play(fixture(), [FunctionPlayer(chance(seat)) for seat in range(3)])).record


async def test_steps_show_decision_move_and_events(record):
    shown = list(steps(record))
    assert [step.move for step in shown] == list(record.moves)
    assert all(step.move.action in step.decision.legal for step in shown)
    assert shown[-1].game.outcome.scores == record.result.scores


def tamper(record, index, **changes):
    moves = list(record.moves)
    moves[index] = moves[index]._replace(**changes)
    return replace(record, moves=tuple(moves))


def swap_deck(record):
    deck = list(record.deck)
    first = next(index for index, card in enumerate(deck) if card != deck[0])
    deck[0], deck[first] = deck[first], deck[0]
    deck[50], deck[0] = deck[0], deck[50]
    return replace(record, deck=tuple(deck))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda r: replace(r, moves=r.moves[:-1]), "not over"),
        (lambda r: replace(r, moves=(*r.moves, r.moves[-1])), "the game is over after"),
        (lambda r: tamper(r, 4, seat=(r.moves[4].seat + 1) % 3), "move 5: seat"),
        (lambda r: tamper(r, 0, action=Choice.PASS), "move 1: Choice.PASS is not legal"),
        (lambda r: tamper(r, 0, stand_in=True), "move 1: the stand-in decides without a fault"),
        (lambda r: replace(r, deck=r.deck[1:]), "deck"),
        (
            lambda r: replace(r, result=replace(r.result, scores=(99, 0, 0))),
            "result: the record says",
        ),
        (
            lambda r: replace(r, result=replace(r.result, ranks=r.result.ranks[::-1])),
            "result: the record says",
        ),
        (lambda r: replace(r, seating=r.seating[:1]), "is for 2 to 5 players"),
    ],
)
async def test_each_change_is_found(record, change, says):
    check(record)
    with pytest.raises(Difference, match=says):
        check(change(record))


async def test_a_bot_cannot_decide_after_its_forfeit():
    cannot = Forfeit(Cause.NO_START, Evidence(detail="no such file"))
    table = [cannot, *(FunctionPlayer(chance(seat)) for seat in range(2))]
    record = (await play(fixture(), table)).record
    check(record)
    with pytest.raises(Difference, match="move 1: seat 0 decides after its forfeit"):
        check(tamper(record, 0, stand_in=False))


async def test_the_stand_in_is_held_to_its_policy():
    cannot = Forfeit(Cause.NO_START, Evidence(detail="no such file"))
    table = [cannot, *(FunctionPlayer(chance(seat)) for seat in range(2))]
    record = (await play(fixture(), table)).record
    other = next(iter(steps(record))).decision.legal[0]
    assert other != record.moves[0].action
    with pytest.raises(Difference, match=r"move 1: .* is not what the stand-in does"):
        check(tamper(record, 0, action=other))
