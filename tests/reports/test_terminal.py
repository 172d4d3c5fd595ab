"""Tables on terminals of several widths."""

import io
import re
from dataclasses import dataclass, replace
from typing import Annotated

import pytest
from hand_made import game_result
from played import record, standings
from rich.cells import cell_len
from rich.console import Console
from test_data import ROW_TYPES

from referee.errors import UserError
from referee.ratings.intervals import Estimate
from referee.ratings.trueskill import rate
from referee.reports.formats import Column, fields_of, find_fields
from referee.reports.game_rows import (
    ChargeRow,
    GameRow,
    SeatRow,
    charge_rows,
    game_head,
    game_rows,
    seat_rows,
)
from referee.reports.rating_rows import RatingRow, StandingRow
from referee.reports.statistics import PairRow
from referee.reports.terminal import RowsTable, card, stderr_tails
from referee.reports.tournament_rows import StatusRow, status_rows
from referee.store import RoundProgress

NAMES = ("small_beasts", "final_sprint", "greedy", "counter", "b" * 32)
GAMES = [
    game_result(
        NAMES,
        (1, 5, 3, 3, 2),
        (23, -11, 4, 4, 17),
        game_id=f"all-rulesets-{n}",
        tournament="all-rulesets",
        ruleset="expert-jokers",
    )
    for n in range(1000, 1003)
]
CHARGED = record(seats=5, strike_at=10, forfeit_at=40, detail="[red]no\x1b[2J reply " * 8)
TABLES = {
    "standings": RowsTable(StandingRow, standings(GAMES, rate(GAMES)), "all-rulesets"),
    "games": RowsTable(GameRow, game_rows(GAMES)),
    "seats": RowsTable(SeatRow, seat_rows(CHARGED)),
    "charges": RowsTable(ChargeRow, charge_rows(CHARGED)),
    "status": RowsTable(StatusRow, status_rows([RoundProgress(0, 3, 1, 123_456)])),
    "card": card(game_head(CHARGED)),
}


def shown(renderable, width=80):
    text = io.StringIO()
    Console(file=text, width=width).print(renderable)
    return text.getvalue()


@dataclass(frozen=True)
class Row:
    kind: Annotated[str, Column("kind", section=True)]
    name: Annotated[str, Column("name", wrap=True)]
    number: Annotated[int | None, Column("number", right=True, show=lambda n: f"{n}.", drop=1)]
    long: Annotated[str, Column("long", data_only=True)] = "not for people"


ROWS = [Row("x", "one", 1), Row("x", "two", None), Row("y", "three", 3)]


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("name", TABLES)
def test_no_line_is_longer_than_the_terminal(name, width):
    text = shown(TABLES[name], width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert "\x1b" not in text


def test_eighty_columns_keep_the_important_ones():
    text = shown(TABLES["standings"])
    for title in ("bot", "mu", "sigma", "rating", "games", "wins", "score"):
        assert title in text
    assert "hidden here: matches, won" in text
    assert "small_beasts" in text


def test_wide_terminals_hide_nothing():
    text = shown(TABLES["standings"], 140)
    assert "hidden" not in text
    assert all(title in text for title in ("matches", "won", "strikes", "forfeits"))


def test_numbers_stay_whole_and_long_names_fold():
    text = shown(RowsTable(Row, [Row("x", "q" * 100, 1234567890)]), 60)
    assert "1234567890." in text
    assert text.count("q") == 100


def test_sections_have_titles_and_none_is_a_dash():
    lines = [
        line.split() for line in shown(RowsTable(Row, ROWS, "cup")).splitlines() if line.strip()
    ]
    assert lines[0] == ["cup,", "x"]
    assert ["one", "1."] in lines
    assert ["two", "-"] in lines
    assert ["cup,", "y"] in lines
    assert not any({"people", "kind"} & set(line) for line in lines)


def test_title_is_one_line_above_a_narrow_table():
    number = find_fields(Row, "number")
    title = "the last 20 of 1000 games"
    assert shown(RowsTable(Row, ROWS, title, columns=number)).startswith(f"{title}, x\n")


def test_section_is_the_title_of_a_table_without_title():
    assert shown(RowsTable(Row, ROWS)).split()[0] == "x"


def test_table_without_rows_says_none():
    assert shown(RowsTable(Row, [], "faults")) == "faults: none\n"
    assert shown(RowsTable(Row, [])) == "none\n"


def test_narrow_terminal_hides_columns_and_lists_them():
    text = shown(RowsTable(Row, [Row("x", "n" * 20, 1)]), 22)
    assert "number" not in text.split("hidden here")[0]
    assert "hidden here: number" in text


def test_markup_and_escapes_of_bots_stay_text():
    rows = [Row("[bold]k\x1b[0m", "[link=x]\x1b]8;;evil\x07name[/]", 1)]
    text = shown(RowsTable(Row, rows, "[red]t[/]"))
    assert "[red]t[/], [bold]k\\x1b[0m" in text
    assert "\\x1b]8;;evil\\x07name[/]" in text
    assert "\x1b" not in text


def test_card_has_a_line_for_each_field():
    lines = [line.split(maxsplit=1) for line in shown(card(Row("x", "[b]one", None))).splitlines()]
    assert [[part.strip() for part in line] for line in lines] == [
        ["kind", "x"],
        ["name", "[b]one"],
        ["number", "-"],
    ]


def test_stderr_of_bots_is_shown_escaped_line_by_line():
    game = record(strike_at=3, stderr_tail="Traceback [bold]\n\tdied\x1b[2J\n")
    (charge,) = charge_rows(game)
    lines = shown(stderr_tails([charge])).splitlines()
    assert lines[0] == f"stderr of {charge.bot} (seat {charge.seat}), after move 3:"
    assert [line.rstrip() for line in lines[1:3]] == [
        "| Traceback [bold]",
        "|         died\\x1b[2J",
    ]


def test_faults_without_stderr_show_nothing():
    assert shown(stderr_tails(charge_rows(record(strike_at=3)))) == ""


def test_a_column_is_hidden_only_if_the_table_is_wider_than_the_terminal():
    needed = max(map(cell_len, shown(TABLES["seats"], 200).splitlines()))
    assert "hidden here" not in shown(TABLES["seats"], needed)
    assert "hidden here" in shown(TABLES["seats"], needed - 1)


RATINGS = [
    RatingRow(
        ruleset="basic",
        rank=number,
        bot=bot,
        mu=25.0,
        sigma=1.25,
        rating=21.25,
        fit=Estimate(25.0, 20.0, 30.0),
        ahead=0.75,
        games=1000,
        matches=250,
        wins=500,
        won=Estimate(0.5, 0.4, 0.6),
        points=-12345,
        score=Estimate(-0.01, -1.0, 1.0),
        strikes=0,
        forfeits=0,
    )
    for number, bot in enumerate(("small_beasts@1.0", "b" * 32), 1)
]


@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
def test_bot_mu_and_sigma_are_visible_at_every_width(width):
    text = shown(RowsTable(RatingRow, RATINGS), width)
    heads = text.split("─")[0].split()
    assert {"bot", "mu", "sigma", "rating", "fit"} <= set(heads)
    assert " 25.00   1.25 " in text
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("row_type", ROW_TYPES)
def test_column_bot_is_never_hidden(row_type):
    assert not any(column.drop for _, column in fields_of(row_type) if column.title == "bot")


def test_chosen_columns_are_shown_in_their_order_and_never_hidden():
    fields = find_fields(RatingRow, "wins, score,BOT,ahead,won,fit,strikes")
    table = RowsTable(RatingRow, RATINGS, columns=fields)
    assert table.least_width() > 80
    text = shown(table, table.least_width())
    assert re.split(r" {2,}", text.splitlines()[2].strip()) == [
        "wins",
        "score [95 %]",
        "bot",
        "ahead",
        "won [95 %]",
        "fit [95 %]",
        "strikes",
    ]
    assert "hidden" not in text
    assert "basic" in text


def test_table_at_its_least_width_has_whole_numbers_and_all_columns_that_are_never_hidden():
    table = RowsTable(RatingRow, RATINGS)
    width = table.least_width()
    assert width < 60
    text = shown(table, width)
    assert max(map(cell_len, text.splitlines())) <= width
    for figure in (" 1  small_be ", " 25.00   1.25 ", "  21.25 ", " 25.0 [20.0, 30.0]"):
        assert figure in text
    assert text.count("b" * 8) == 4


def test_kept_column_hides_others_instead():
    wanted = "b" * 16
    rows = [replace(RATINGS[0], bot=wanted)]
    assert "strikes" not in shown(RowsTable(RatingRow, rows), 80).split("hidden here")[0]
    text = shown(RowsTable(RatingRow, rows, keep=("strikes",), hint="; more"), 80)
    assert "strikes" in text.split("hidden here")[0]
    assert " ".join(text.split()).endswith("; more")


@pytest.mark.parametrize("name", ["points more", "Points_More", "points_more"])
def test_column_is_found_by_its_title_and_by_its_key(name):
    assert [field.key for field in find_fields(PairRow, f"bot, {name}")] == ["bot", "points_more"]


@pytest.mark.parametrize("name", ["fit", "fit_low", "fit_high", "fit [95 %]", "FIT"])
def test_column_of_an_interval_is_named_by_each_of_its_keys_and_by_its_title(name):
    assert [field.key for field in find_fields(RatingRow, f"bot, {name}")] == ["bot", "fit"]


def test_unknown_column_is_refused_with_the_most_similar_one():
    with pytest.raises(UserError, match=r"no column 'fitt' \(did you mean 'fit'\?\); there are "):
        find_fields(RatingRow, "bot,fitt")


def test_no_number_is_shown_as_minus_zero():
    text = shown(RowsTable(RatingRow, RATINGS), 200)
    assert "0.0 [-1.0, 1.0]" in text
    assert "-0.0" not in text
