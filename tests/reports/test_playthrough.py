"""Games are shown line by line, and their table as it lies."""

import io
from dataclasses import replace

import pytest
from played import record
from rich.console import Console

from referee.errors import Cause, Evidence
from referee.match.replay import Difference
from referee.records import Fault
from referee.reports.playthrough import Narrator, playthrough, table_view
from referee.rules.events import (
    Discarded,
    DisplayRefilled,
    Drawn,
    Event,
    GameOver,
    GhostDeclined,
    GhostRefilled,
    GhostSnatched,
    Left,
    Passed,
    Played,
    Reclaimed,
    SlotCard,
    Snatched,
    Taken,
    Termination,
)
from referee.rules.game import Game
from referee.rules.ruleset import JOKER, RULESETS, Layer
from referee.rules.table import Table

TOLD = [
    (Played(1, Layer(7, 3, 1)), "turn 1    bait (seat 1) plays 3×7+J"),
    (Snatched(1, 0, Layer(4, 2, 2)), "bait (seat 1) snatches 2×4+2×J from greedy (seat 0)"),
    (Taken(1, Layer(4, 2, 2)), "bait (seat 1) takes 2×4+2×J"),
    (Left(1), "bait (seat 1) leaves it"),
    (Reclaimed(0, Layer(4, 1, 0)), "greedy (seat 0) reclaims 4"),
    (Discarded(0, Layer(4, 1, 0)), "greedy (seat 0) discards 4"),
    (Drawn(0, None, (9,)), "greedy (seat 0) draws 9 from the deck"),
    (Drawn(0, 5, (3, 13, JOKER)), "greedy (seat 0) draws 3+13+J from slot 5"),
    (
        DisplayRefilled((SlotCard(0, 4), SlotCard(2, JOKER))),
        "display refilled: 4 into slot 0, J into slot 2",
    ),
    (GhostSnatched(0, Layer(2, 3, 0)), "greedy (seat 0) snatches 3×2 from the ghost"),
    (GhostRefilled((3, 4), ()), "ghost refilled: 3 4"),
    (
        GhostRefilled((), (SlotCard(1, 13),)),
        "ghost refilled: -; display: 13 into slot 1",
    ),
    (GhostDeclined(1), "bait (seat 1) snatches nothing from the ghost"),
    (Passed(0), "greedy (seat 0) passes"),
    (
        GameOver(Termination.OUT, (-3, 8), (2, 1)),
        "game over (out): 1. bait (seat 1) 8, 2. greedy (seat 0) -3",
    ),
]


def shown(renderables, width=80):
    text = io.StringIO()
    console = Console(file=text, width=width)
    for renderable in renderables:
        console.print(renderable)
    return text.getvalue()


@pytest.mark.parametrize(("event", "line"), TOLD, ids=[type(event).__name__ for event, _ in TOLD])
def test_each_event_is_a_line(event, line):
    assert Narrator(["greedy", "bait"]).line(event).text.plain.strip() == line


def test_every_kind_of_event_is_tested():
    assert {type(event) for event, _ in TOLD} == set(Event.__args__)


def test_a_long_line_goes_on_below_its_text():
    line = Narrator(["greedy", "bait"]).line(Played(1, Layer(7, 3, 1)))
    assert shown([line], 30) == "turn 1    bait (seat 1) plays\n          3×7+J\n"


def test_turns_are_counted():
    narrator = Narrator(["greedy", "bait"])
    lines = [narrator.line(Played(seat, Layer(1, 1, 0))).text.plain for seat in (0, 1, 0)]
    assert [line.split()[:2] for line in lines] == [["turn", "1"], ["turn", "2"], ["turn", "3"]]


def test_names_and_details_from_outside_are_harmless():
    narrator = Narrator(["[red]\x1b[31mx", "y"])
    assert narrator.line(Passed(0)).text.plain.strip() == r"[red]\x1b[31mx (seat 0) passes"
    fault = Fault(1, Cause.ILLEGAL, False, 0, Evidence(detail="[b]\x07"))  # noqa: FBT003
    assert narrator.charge(fault).text.plain.strip() == r"y (seat 1): strike, illegal: [b]\x07"


def test_record_is_shown_line_by_line():
    game = record("basic", 4, strike_at=6, forfeit_at=20)
    text = shown(playthrough(game), 200)
    lines = text.splitlines()
    turns = [line for line in lines if line.startswith("turn ")]
    assert turns[0].startswith("turn 1    bot0 (seat 0) plays")
    assert [int(line.split()[1]) for line in turns] == list(range(1, len(turns) + 1))
    assert text.count("(stand-in)") == sum(move.stand_in for move in game.moves)
    strike, forfeit = (f"bot{fault.seat} (seat {fault.seat})" for fault in game.faults)
    assert f"{strike}: strike, timeout: no reply" in text
    assert f"{forfeit}: forfeits the game, out_of_time: no reply" in text
    ranks = " ".join(map(str, game.ranks))
    assert lines[-1] == f"forfeited: {forfeit}; final ranks {ranks}"
    assert "game over" in lines[-2]


def test_game_without_forfeits_ends_with_its_result():
    assert shown(playthrough(record())).splitlines()[-1].strip() != ""
    assert "forfeited" not in shown(playthrough(record()))


def test_strike_is_shown_before_its_consequence():
    lines = shown(playthrough(record(strike_at=0)), 200).splitlines()
    assert "strike" in lines[0]
    assert lines[1].endswith("(stand-in)")


def test_table_is_shown_at_the_start_of_each_turn():
    game = record("duel", 2)
    text = shown(playthrough(game, tables=True), 120)
    assert text.count("layers, top last") == text.count("\nturn ")
    assert text.index("layers, top last") < text.index("turn 1 ")


def test_wrong_record_is_shown_up_to_the_difference():
    game = record()
    told = playthrough(replace(game, moves=game.moves[:5]))
    first = next(told)
    assert first.text.plain.startswith("turn 1")
    with pytest.raises(Difference):
        list(told)


@pytest.mark.parametrize("tables", [False, True])
def test_record_with_a_wrong_deck_cannot_be_shown(tables):
    game = record()
    with pytest.raises(Difference, match="deck"):
        list(playthrough(replace(game, deck=game.deck[1:]), tables=tables))


def table():
    lying = Table(RULESETS["duel"], 2, deck=[1, 2, 3])
    lying.hands[0][7], lying.hands[0][JOKER], lying.hand_sizes[0] = 2, 1, 3
    lying.hands[1][1], lying.hand_sizes[1] = 1, 1
    lying.layers[1] = (Layer(13, 2, 0), Layer(5, 1, 1))
    lying.display = ((4,), (), (3, 13), (), (), (JOKER,))
    lying.discards = (0, 1, *[0] * 12, 1)
    lying.ghost = (0, 0, 3, *[0] * 12)
    return Game.from_table(lying)


def test_table_shows_hands_layers_and_cards_in_the_middle():
    rows = [
        line.split() for line in shown([table_view(table(), ["greedy", "b[i]t\x1b"])]).splitlines()
    ]
    assert [">", "0", "greedy", "-3", "3", "2×7", "J", "-"] in rows
    assert ["1", "b[i]t\\x1b", "3", "1", "1", "2×13", "|", "5+J"] in rows
    assert ["deck", "3"] in rows
    assert ["discards", "1", "J"] in rows
    assert ["ghost", "3×2"] in rows
    assert [
        "display",
        *["0:", "4", "1:", "-", "2:", "3+13", "3:", "-", "4:", "-", "5:", "J"],
    ] in rows


def test_only_the_duel_has_a_ghost():
    game = Game(RULESETS["basic"], 3, record("basic", 3).deck)
    assert "ghost" not in shown([table_view(game, "abc")])
