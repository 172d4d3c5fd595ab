"""Another engine can replay a game from its JSON record, whose keys `referee/ratings/README.md` describes."""

import importlib.util
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from played import record

import referee.ratings
from referee.clocks import Clocks
from referee.records import Machine
from referee.reports.game_rows import action_json, game_head, record_json
from referee.rules.actions import Choice, DrawDisplay, Play, SnatchGhost
from referee.rules.events import GameOver, Termination
from referee.rules.ruleset import (
    JOKER,
    RULESETS,
    EndOn,
    GhostOverflow,
    GhostSnatch,
    GhostStart,
    Layer,
    Ruleset,
)

PAGE = (Path(referee.ratings.__file__).parent / "README.md").read_text(encoding="utf-8")
DESCRIPTION = PAGE.split("\n### A game's record\n")[1].split("\n### ")[0]
CHOICES = {choice.value: choice for choice in Choice}
OPTIONS = {
    "end_on": EndOn,
    "ghost_start": GhostStart,
    "ghost_snatch": GhostSnatch,
    "ghost_overflow": GhostOverflow,
}


def oracle_module():
    """The second engine, written independently to compare the first with it."""
    path = Path(__file__).parents[1] / "rules" / "oracle.py"
    spec = importlib.util.spec_from_file_location("oracle_of_reports", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def written(game):
    return json.loads(json.dumps(record_json(game)))


def action_of(value):
    match value:
        case {"kind": "play", "value": card, "naturals": naturals, "jokers": jokers}:
            return Play(Layer(card, naturals, jokers))
        case {"kind": "draw-display", "slot": slot, "cards": cards}:
            return DrawDisplay(slot, tuple(cards))
        case {"kind": "snatch-ghost", "value": card}:
            return SnatchGhost(card)
        case {"kind": kind}:
            return CHOICES[kind]


@pytest.mark.parametrize(("ruleset", "seats"), [(name, 3) for name in RULESETS if name != "duel"])
@pytest.mark.parametrize("seed", [1, 2])
def test_another_engine_replays_the_game(ruleset, seats, seed):
    assert_replayable(record(ruleset, seats, seed=seed))


@pytest.mark.parametrize("seed", range(4))
def test_another_engine_replays_a_duel(seed):
    assert_replayable(record("duel", 2, seed=seed, strike_at=5))


def test_another_engine_replays_a_duel_with_other_options():
    game = record(
        "duel",
        2,
        ghost_start=GhostStart.AS_DEALT,
        ghost_snatch=GhostSnatch.OPTIONAL,
        ghost_overflow=GhostOverflow.LOWEST,
    )
    assert Choice.PASS in {move.action for move in game.moves}
    assert_replayable(game)


def assert_replayable(game):
    value = written(game)
    options = {name: enum(value["ruleset"][name]) for name, enum in OPTIONS.items()}
    rules = Ruleset(**value["ruleset"] | options)
    engine = oracle_module().Oracle.deal(rules, len(value["seating"]), value["deck"])
    events = ()
    for move in value["moves"]:
        assert engine.decision.seat == move["seat"]
        events = engine.apply(action_of(move["action"]))
    assert engine.decision is None
    result = value["result"]
    assert events[-1] == GameOver(
        Termination(result["termination"]), tuple(result["scores"]), tuple(result["ranks"])
    )


@pytest.mark.parametrize(
    ("action", "value"),
    [
        (Play(Layer(7, 3, 1)), {"kind": "play", "value": 7, "naturals": 3, "jokers": 1}),
        (Play(Layer(JOKER, 0, 2)), {"kind": "play", "value": 14, "naturals": 0, "jokers": 2}),
        (DrawDisplay(2, (5, 13)), {"kind": "draw-display", "slot": 2, "cards": [5, 13]}),
        (SnatchGhost(4), {"kind": "snatch-ghost", "value": 4}),
        *((choice, {"kind": choice.value}) for choice in Choice),
    ],
)
def test_actions_become_json(action, value):
    assert action_json(action) == value
    assert action_of(value) == action
    assert f"`{value['kind']}`" in DESCRIPTION


def test_json_has_the_whole_record():
    clocks = Clocks(bank_us=30_000_000)
    game = record(strike_at=2, forfeit_at=9, stderr_tail="boo\x1b", clocks=clocks)
    value = written(game)
    assert value["format"] == "linko-game-1"
    assert value["game_id"] == game.game_id
    assert value["seating"][1] == {"seat": 1, "bot": "bot1", "version": "1.0"}
    assert value["deck"] == list(game.deck)
    assert len(value["moves"]) == len(game.moves)
    move = game.moves[0]
    assert value["moves"][0] == {
        "seat": 0,
        "action": action_json(move.action),
        "elapsed_us": move.elapsed_us,
        "lag_us": 1,
        "stand_in": False,
        "wall_us": 0,
        "batch_size": 1,
    }
    assert value["moves"][2]["stand_in"] is True
    assert value["faults"][1] == {
        "seat": game.moves[9].seat,
        "cause": "out_of_time",
        "forfeit": True,
        "move": 9,
        "detail": "no reply",
        "exit_code": None,
        "signal": None,
        "elapsed_us": 5_000_000,
        "wall_us": 0,
        "batch_size": 1,
        "stderr_tail": "boo\x1b",
    }
    assert value["result"]["forfeited"] == [game.moves[9].seat]
    assert value["result"]["winners"] == list(game.winners)
    assert value["usage"][1] == {"cpu_us": 10_000, "peak_memory_kib": 2048}
    assert value["clocks"]["bank_us"] == 30_000_000
    assert value["dropped"] == []
    assert (value["started_at_us"], value["duration_us"]) == (1_700_000_000_000_000, 123_456)


@pytest.mark.parametrize(("noise", "shown"), [(0.125, "12%"), (0.0, "0%"), (None, "unknown")])
def test_machine_of_a_game_is_shown(noise, shown):
    machine = Machine(host="alpha", cpu="Model 1", speed=98_000, noise=noise)
    game = replace(record("basic", 3, seed=1), machine=machine)
    assert game_head(game).machine == f"alpha, Model 1, speed 98,000, noise {shown}"
    assert written(game)["machine"] == {
        "host": "alpha",
        "cpu": "Model 1",
        "speed": 98_000,
        "noise": noise,
    }


def test_game_without_a_machine_has_none():
    game = record("basic", 3, seed=1)
    assert game_head(game).machine is None
    assert written(game)["machine"] is None


def keys_of(heading):
    section = DESCRIPTION.split(f"\n{heading}\n")[1] if heading else DESCRIPTION
    section = section.split("\n#### ")[0]
    lines = re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)
    return {key for line in lines for key in re.findall(r"`([\w.]+)`", line)}


def test_page_explains_every_key():
    value = written(record(strike_at=2))
    for heading, keys in {
        None: set(value),
        "#### `ruleset`": set(value["ruleset"]) - {"name", "min_players", "max_players"},
        "#### `faults`": set(value["faults"][0]),
        "#### `result`": set(value["result"]),
    }.items():
        assert keys_of(heading) == keys, "describe these keys in referee/ratings/README.md"
    for key in [*value["moves"][0], *value["clocks"], *value["seating"][0]]:
        assert key in DESCRIPTION
