"""Rows about bots, from values made by hand: versions, faults, results by table size and seat, and times of decisions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hand_made import charged_fault, game_result
from played import record
from rich.console import Console

from referee.errors import Cause
from referee.ratings.analysis import Analysis
from referee.records import BotId, Move
from referee.reports.bot_rows import (
    batch_rows,
    bot_rows,
    latency_rows,
    log_rows,
    log_text,
    seat_result_rows,
)
from referee.result_columns import ResultColumns
from referee.store import FaultCount

GAMES = (
    game_result(("a", "b", "c"), (1, 2, 2), (9, 4, 4), match=1),
    game_result(("b", "c", "a"), (2, 1, 3), (5, 8, -1), match=1, forfeited=(2,)),
    game_result(("a", "b"), (1, 1), (6, 6), match=2),
)


@dataclass(frozen=True)
class Known:
    bot: BotId
    author: str = "Ada"
    language: str = "go"
    folder: str = "/bots/x"
    content_hash: str = "ab"
    added_at_us: int = 5
    checked_at_us: int | None = None
    retired_at_us: int | None = None


def fault(*, forfeit, stderr_tail=""):
    return charged_fault("cup-3", "a@1", forfeit=forfeit, move=12, stderr_tail=stderr_tail)


def test_each_version_has_its_own_games_and_faults():
    bots = [Known(BotId("a", "1")), Known(BotId("a", "2"), retired_at_us=9), Known(BotId("b", "1"))]
    faults = [
        FaultCount("a@1", Cause.TIMEOUT, strikes=2, forfeits=0, games=1),
        FaultCount("a@1", Cause.CRASH, strikes=0, forfeits=1, games=1),
    ]
    rows = bot_rows(bots, {"a@1": 2, "b@1": 3}, faults)
    assert [(row.bot, row.games, row.strikes, row.forfeits) for row in rows] == [
        ("a@1", 2, 2, 1),
        ("a@2", 0, 0, 0),
        ("b@1", 3, 0, 0),
    ]
    assert [row.retired_at_us for row in rows] == [None, 9, None]


def test_log_has_the_stderr_of_each_fault_or_says_that_there_is_none():
    rows = log_rows([fault(forfeit=True, stderr_tail="\x1b[1mOuch\n"), fault(forfeit=False)])
    console = Console(width=100)
    with console.capture() as capture:
        console.print(log_text(rows))
    assert capture.get().splitlines() == [
        "cup-3, after move 12: a@1, timeout (forfeit): no reply",
        "| \\x1b[1mOuch",
        "",
        "cup-3, after move 12: a@1, timeout (strike): no reply",
        "(nothing on standard error)",
        "",
    ]


def test_bot_cannot_print_what_looks_like_a_fault_of_another_bot():
    forged = "bye\n\ncup-9, after move 1: b@1, crash (forfeit): exited with 3\nno end"
    (row,) = log_rows([fault(forfeit=True, stderr_tail=forged)])
    console = Console(width=200)
    with console.capture() as capture:
        console.print(log_text([replace(row, detail=f"no reply\n{forged}")]))
    title, *output = capture.get().splitlines()
    assert title.startswith("cup-3, after move 12: a@1, timeout (forfeit): no reply\\nbye\\n")
    assert output == [
        "| bye",
        "| ",
        "| cup-9, after move 1: b@1, crash (forfeit): exited with 3",
        "| no end",
        "",
    ]


def rows(bot):
    columns = ResultColumns.from_results(GAMES).by_ruleset()
    found = seat_result_rows(bot, {name: Analysis(each) for name, each in columns.items()})
    return [(row.seats, row.seat, row.games, row.wins, row.score, row.forfeits) for row in found]


def test_results_are_counted_by_table_size_and_seat():
    assert rows("a") == [
        (2, None, 1, 1, 6.0, 0),
        (2, 0, 1, 1, 6.0, 0),
        (3, None, 2, 1, 4.0, 1),
        (3, 0, 1, 1, 9.0, 0),
        (3, 2, 1, 0, -1.0, 1),
    ]


def test_results_in_neighbouring_seats_are_counted_apart():
    assert rows("b") == [
        (2, None, 1, 1, 6.0, 0),
        (2, 1, 1, 1, 6.0, 0),
        (3, None, 2, 0, 4.5, 0),
        (3, 0, 1, 0, 5.0, 0),
        (3, 1, 1, 0, 4.0, 0),
    ]


def test_bot_that_has_not_played_has_no_rows():
    assert rows("d") == []


def timed(*elapsed_us):
    """Return a record in which seat 0 decided after these times. A slow decision of seat 1, and one of the stand-in for seat 0, follow."""
    played = record(seats=3)
    action = played.moves[0].action
    own = [Move(0, action, each, 0, stand_in=False) for each in elapsed_us]
    others = (
        Move(1, action, 900_000, 0, stand_in=False),
        Move(0, action, 900_000, 0, stand_in=True),
    )
    return replace(played, moves=(*own, *others))


def test_decisions_are_counted_in_ranges_without_gaps():
    found = latency_rows("bot0@1.0", [timed(150, 199, 200), timed(1_999)])
    assert [(row.at_least_us, row.below_us, row.decisions, row.share) for row in found] == [
        (100, 200, 2, 0.5),
        (200, 500, 1, 0.25),
        (500, 1_000, 0, 0.0),
        (1_000, 2_000, 1, 0.25),
    ]


def test_fastest_and_slowest_decisions_have_a_range():
    most_us = 2**64 - 1  # no time of a record is longer
    shortest, *_, longest = latency_rows("bot0@1.0", [timed(0, most_us)])
    assert (shortest.at_least_us, shortest.decisions) == (0, 1)
    assert longest.at_least_us <= most_us < longest.below_us


def test_move_of_a_seat_that_does_not_exist_is_left_out():
    game = timed(150)
    wrong = replace(game, moves=(replace(game.moves[0], seat=9), *game.moves))
    assert latency_rows("bot0@1.0", [wrong]) == latency_rows("bot0@1.0", [game])
    assert batch_rows([wrong], "bot0@1.0") == batch_rows([game], "bot0@1.0")


def test_bot_without_own_decisions_has_no_latencies():
    assert latency_rows("bot0@1.0", [timed()]) == ()
