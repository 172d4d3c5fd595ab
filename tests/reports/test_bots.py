"""Rows about bots, from values made by hand."""

from dataclasses import dataclass

from hand_made import charged_fault
from rich.console import Console

from referee.records import BotId
from referee.reports.bot_rows import bot_rows, log_rows, log_text


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
    faults = [fault(forfeit=False), fault(forfeit=True), fault(forfeit=False)]
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
        "cup-3, move 12: a@1, timeout (forfeit): no reply",
        "\\x1b[1mOuch",
        "",
        "cup-3, move 12: a@1, timeout (strike): no reply",
        "(nothing on standard error)",
        "",
    ]
