"""The data of a replay are complete, small, and harmless whatever names and details contain."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from games_to_show import HOSTILE, hostile
from played import record

from referee.match.replay import Difference, replay_moves
from referee.reports.playthrough import PARTS, PHRASES
from referee.rules.actions import Choice, DecisionKind
from referee.rules.events import Event
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS, GhostSnatch
from referee.web.board import board_data, board_script, decision_data, phrases_script

MOST_BYTES = 6_000
EVENTS = 3
"""Index of the first event in the data of a move."""


def value_of(script, function):
    """Return the argument of the only call in a script."""
    assert script.startswith(f"{function}(")
    assert script.endswith(");\n")
    return json.loads(script[len(function) + 1 : -3])


PHRASES_DATA = value_of(phrases_script(), "linkoPhrases")


def kinds(data):
    """Return the kinds of all events in the data of a game."""
    codes = {event[0] for move in data["moves"] for event in move[EVENTS:]}
    return {PHRASES_DATA["events"][code]["kind"] for code in codes}


@pytest.mark.parametrize("ruleset", RULESETS)
def test_data_of_a_game_are_small(ruleset):
    for seed in range(3):
        game = record(ruleset, 2 if ruleset == "duel" else 4, seed=seed)
        script = board_script(game.game_id, board_data(game))
        assert len(script) < MOST_BYTES * max(1, len(game.moves) / 150)


def test_every_kind_of_event_and_decision_has_its_texts():
    assert [each["kind"] for each in PHRASES_DATA["events"]] == [
        kind.__name__ for kind in Event.__args__
    ]
    assert [each["text"] for each in PHRASES_DATA["events"]] == list(PHRASES.values())
    assert PHRASES_DATA["parts"] == PARTS
    assert len(PHRASES_DATA["decisions"]) == len(DecisionKind)
    assert PHRASES_DATA["cards"][0] == "?"
    assert PHRASES_DATA["cards"][14] == "J"


def test_every_kind_of_event_reaches_the_data():
    games = [record(name, 2, seed=seed) for name in RULESETS for seed in range(2)]
    games.append(record("duel", 2, ghost_snatch=GhostSnatch.OPTIONAL))
    reached = set().union(*(kinds(board_data(game)) for game in games))
    assert reached == {kind.__name__ for kind in Event.__args__}


def test_fields_of_an_event_are_those_of_its_class():
    for kind, each in zip(Event.__args__, PHRASES_DATA["events"], strict=True):
        assert each["fields"] == list(kind._fields)


def test_moves_have_the_decisions_times_and_events_of_the_record():
    game = record("duel", 2, strike_at=4)
    moves = board_data(game)["moves"]
    steps = list(replay_moves(game))
    assert [move[0] for move in moves] == [move.seat for move in game.moves]
    assert [move[2] for move in moves] == [move.elapsed_us for move in game.moves]
    assert [len(move[EVENTS:]) for move in moves] == [len(step.events) for step in steps]
    assert {step.decision.kind for step in steps} == set(DecisionKind)
    assert {move[1] for move in moves} == set(range(len(DecisionKind)))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (DecisionKind.OPTIONAL_DRAW, "draw nothing"),
        (DecisionKind.GHOST_SET, "snatch nothing from the ghost"),
    ],
)
def test_button_of_a_pass_says_what_is_declined(kind, text):
    game = record("duel", 2, ghost_snatch=GhostSnatch.OPTIONAL)
    table, offers = Game(game.ruleset, 2, game.deck), 0
    for move in game.moves:
        if table.decision.kind is kind:
            data = decision_data(1, table.decision, table.view(move.seat))
            assert data["choices"][table.decision.legal.index(Choice.PASS)] == {"text": text}
            offers += 1
        table.apply(move.action)
    assert offers


def test_start_is_the_table_after_the_deal():
    for name, seats in (("basic", 5), ("duel", 2)):
        game = record(name, seats)
        dealt = Game(game.ruleset, seats, game.deck)
        view = dealt.view(0)
        assert board_data(game)["start"] == {
            "hands": [list(dealt.view(seat).hand) for seat in range(seats)],
            "display": [list(slot) for slot in view.display],
            "deck": view.deck_size,
            "ghost": None if view.ghost is None else list(view.ghost),
        }


def test_faults_stand_ins_and_result_are_those_of_the_record():
    game = record("basic", 4, strike_at=6, forfeit_at=20)
    data = board_data(game)
    strike, forfeit = game.faults
    assert data["faults"] == [
        [6, strike.seat, "timeout", 0, "no reply"],
        [20, forfeit.seat, "out_of_time", 1, "no reply"],
    ]
    assert data["stand_ins"] == [at for at, move in enumerate(game.moves) if move.stand_in]
    assert data["result"] == {
        "termination": game.termination.value,
        "scores": list(game.scores),
        "ranks": list(game.ranks),
        "forfeited": [forfeit.seat],
    }


def test_names_and_details_cannot_end_the_script_or_hide():
    game = hostile(record("basic", 3, strike_at=3))
    script = board_script(f"cup</script>{HOSTILE}", board_data(game))
    assert "<" not in script
    assert script.isascii()
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", script)
    data = value_of(script, "linkoGame")
    for text in (data["game"], *data["bots"], data["faults"][0][4]):
        assert "</script>" in text
        assert r"\u202e\x1b[31m\u2028\u2029 é 🃏" in text


def test_separators_of_lines_are_escaped():
    script = board_script("cup-1", {"text": "<\u2028\u2029"})
    assert r'{"game":"cup-1","text":"\u003c\u2028\u2029"}' in script


def test_wrong_record_has_no_data():
    game = record()
    with pytest.raises(Difference, match="not over"):
        board_data(replace(game, moves=game.moves[:-1]))
    with pytest.raises(Difference, match="deck"):
        board_data(replace(game, deck=game.deck[1:]))
