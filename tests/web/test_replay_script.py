"""The script of the replay shows the tables of the rules and the sentences of the command line."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from games_to_show import hostile
from played import record

import referee.web
from referee.match.replay import replay_moves
from referee.reports.formats import counts_name, duration
from referee.reports.playthrough import PARTS, Narrator, playthrough
from referee.rules.actions import DecisionKind
from referee.rules.events import redact
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS, GhostSnatch, GhostStart
from referee.tournament.person import Dealt, Moved
from referee.web.board import board_data, phrases_script
from referee.web.sitting import ShownGame

pytestmark = [pytest.mark.toolchain("node"), pytest.mark.unmeasured]

SCRIPT = Path(referee.web.__file__).with_name("static") / "board.js"
PROGRAM = Path(__file__).with_name("replay_model.cjs")
PHRASES = json.loads(phrases_script().removeprefix("linkoPhrases(").removesuffix(");\n"))
DURATIONS_US = (
    0,
    999,
    1_000,
    4_260,
    999_949,
    999_970,
    1_000_000,
    59_900_000,
    59_970_000,
    60_000_000,
    90_700_000,
    187_000_000,
    3_599_900_000,
    7_387_000_000,
)
GAMES = [
    *(
        record(rules.name, seats, seed=seats)
        for rules in RULESETS.values()
        for seats in range(rules.min_players, rules.max_players + 1)
    ),
    record("duel", 2, seed=7, strike_at=3, forfeit_at=30),
    hostile(record("basic", 4, seed=8, strike_at=6, forfeit_at=20)),
    record("expert", 3, seed=9, forfeit_at=0),
    record("duel", 2, seed=10, ghost_start=GhostStart.AS_DEALT, ghost_snatch=GhostSnatch.OPTIONAL),
]
every_game = pytest.mark.parametrize(
    "number",
    range(len(GAMES)),
    ids=[f"{game.ruleset.name}-{len(game.seating)}-{at}" for at, game in enumerate(GAMES)],
)


@cache
def shown():
    """Return what the script makes of all games."""
    result = subprocess.run(
        [shutil.which("node"), PROGRAM],
        input=json.dumps(
            {
                "script": str(SCRIPT),
                "phrases": PHRASES,
                "games": [board_data(game) for game in GAMES],
                "running": [seat_data(game, 1) for game in GAMES],
                "durations": DURATIONS_US,
            }
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return json.loads(result.stdout)


def seat_data(game, seat):
    """Return a whole game as the page of a running game gets it for a seat."""
    table = Game(game.ruleset, len(game.seating), game.deck)
    running = ShownGame(game.ruleset.name, [bot.name for bot in game.seating])
    running.take(Dealt(game.game_id, table.view(seat)))
    for step in replay_moves(game):
        events = tuple(redact(event, seat) for event in step.events)
        running.take(Moved(step.decision, step.move, events))
    news = running.news(-1)
    return news["game"] | {"moves": news["moves"], "stand_ins": news["stand_ins"]}


def tables_of(game):
    """Return the tables by the rules, as the script has them: before the first move and after each move."""
    yield table_of(Game(game.ruleset, len(game.seating), game.deck))
    for step in replay_moves(game):
        yield table_of(step.game)


def table_of(game):
    views = [game.view(seat) for seat in range(game.players)]
    view = views[0]
    table = {
        "hands": [list(each.hand) for each in views],
        "layers": [[list(layer) for layer in layers] for layers in view.tables],
        "display": [list(slot) for slot in view.display],
        "deck": view.deck_size,
        "discards": list(view.discards),
        "ghost": None if view.ghost is None else list(view.ghost),
        "turn": view.turn,
        "active": view.active_seat,
        "snatched": None,
    }
    if view.snatched is not None:
        route = {"attacker": view.active_seat, "victim": view.victim}
        table["snatched"] = {**route, "layer": list(view.snatched)}
    return table


def starting(line):
    """Return a line of the script as `Narrator` writes it."""
    indent = "" if line["kind"] == "GameOver" else line["start"].ljust(10)
    return indent + line["text"]


@every_game
def test_every_table_of_the_script_is_that_of_the_rules(number):
    assert shown()["games"][number]["tables"] == list(tables_of(GAMES[number]))


@every_game
def test_lines_of_the_script_are_those_of_the_playthrough(number):
    game = shown()["games"][number]
    lines = [starting(line) for move in game["lines"][0] for line in move]
    if game["lastLine"]:
        lines.append(game["lastLine"])
    expected = [getattr(line, "text", line) for line in playthrough(GAMES[number])]
    assert lines == [getattr(text, "plain", text) for text in expected]


@every_game
def test_lines_that_a_seat_sees_have_only_what_the_seat_knew(number):
    game = GAMES[number]
    steps = list(replay_moves(game))
    for seat in range(len(game.seating)):
        narrator = Narrator([bot.name for bot in game.seating])
        for at, step in enumerate(steps):
            own = [
                narrator.charge(each)
                for each in game.faults
                if (each.move, each.seat) == (at, seat)
            ]
            events = [narrator.line(redact(event, seat)) for event in step.events]
            expected = [line.text.plain for line in (*own, *events)]
            if step.move.stand_in and step.move.seat == seat:
                expected[len(own)] += PARTS["stand_in"]
            lines = shown()["games"][number]["lines"][1 + seat][at]
            assert [starting(line) for line in lines] == expected


@every_game
def test_running_game_has_the_tables_that_its_seat_may_see(number):
    running = shown()["running"][number]
    expected = list(tables_of(GAMES[number]))
    assert len(running["tables"]) == len(expected)
    for table, known in zip(running["tables"], expected, strict=True):
        hands, whole = table.pop("hands"), known.pop("hands")
        assert table == known
        assert hands[1] == whole[1]
        assert list(map(sum, hands)) == list(map(sum, whole))
        for hand, cards in zip(hands, whole, strict=True):
            known_of_hand = zip(hand[1:], cards[1:], strict=True)
            assert all(0 <= seen <= held for seen, held in known_of_hand)


@every_game
def test_lines_of_a_running_game_are_those_that_its_seat_sees(number):
    running, stored = shown()["running"][number], shown()["games"][number]
    events = [[line for line in move if line["kind"] != "charge"] for move in stored["lines"][2]]
    assert running["lines"] == events
    assert not running["lastLine"]


@every_game
def test_points_at_the_end_are_the_scores(number):
    assert shown()["games"][number]["points"][-1] == list(GAMES[number].scores)


@every_game
def test_hands_and_decisions_have_their_names(number):
    game = GAMES[number]
    start = Game(game.ruleset, len(game.seating), game.deck)
    hands = [counts_name(start.view(seat).hand) for seat in range(start.players)]
    kinds = list(DecisionKind)
    assert shown()["games"][number]["hands"] == hands
    assert shown()["games"][number]["decisions"] == [
        PHRASES["decisions"][kinds.index(step.decision.kind)] for step in replay_moves(game)
    ]


def test_durations_are_written_as_in_the_reports():
    assert shown()["durations"] == [duration(us) for us in DURATIONS_US]
