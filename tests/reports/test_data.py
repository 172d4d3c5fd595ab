"""Rows as JSON and CSV have every key and value, and no control characters."""

import csv
import importlib
import io
import json
import pkgutil
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import pytest
from hand_made import game_result
from played import standings

import referee.ratings
import referee.reports
from referee.errors import Cause
from referee.ratings.trueskill import rate
from referee.reports.bot_rows import (
    BatchRow,
    BotRow,
    FaultRow,
    LatencyRow,
    LogRow,
    SeatResultRow,
    UsageRow,
)
from referee.reports.checks import ProtectionRow, RefusalRow
from referee.reports.formats import Column, csv_text, fields_of, json_text, keys_of, title_key
from referee.reports.game_rows import ChargeRow, GameHead, GameRow, SeatRow
from referee.reports.rating_rows import HistoryRow, RatingRow, StandingRow
from referee.reports.statistics import (
    CollusionRow,
    CrosstableRow,
    LuckRow,
    MachineRow,
    NeighbourRow,
    PairRow,
    PointsRow,
    SeatWorthRow,
)
from referee.reports.tournament_rows import (
    HostStatusRow,
    MachineStatusRow,
    NextGameRow,
    PlanRow,
    StatusRow,
    TournamentRow,
)
from referee.reports.verdicts import ComparisonRow, TransitivityRow

ROW_TYPES = [
    RatingRow,
    PointsRow,
    PairRow,
    CrosstableRow,
    ComparisonRow,
    NeighbourRow,
    TransitivityRow,
    HistoryRow,
    SeatWorthRow,
    LuckRow,
    MachineRow,
    CollusionRow,
    FaultRow,
    TournamentRow,
    StatusRow,
    MachineStatusRow,
    HostStatusRow,
    GameRow,
    GameHead,
    SeatRow,
    ChargeRow,
    BotRow,
    LogRow,
    PlanRow,
    UsageRow,
    BatchRow,
    ProtectionRow,
    RefusalRow,
]
ONLY_TABLES = [LatencyRow, NextGameRow, SeatResultRow, StandingRow]
"""Rows of the live screen and of the web pages, which are never written as data."""
PAGE = (Path(referee.ratings.__file__).parent / "README.md").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Row:
    name: Annotated[str, Column("N")]
    values: Annotated[tuple[int, ...], Column("V")]
    share: Annotated[float, Column("S", show=lambda share: f"{share:.1f}")]
    gone: Annotated[int | None, Column("G", data_only=True)]
    true: Annotated[bool, Column("T")]


ROW = Row('a "b",\x1b\n\u202e', (3, -1), 1 / 3, None, true=True)


def test_json_has_every_value_unrounded():
    assert json.loads(json_text([ROW])) == [
        {"name": ROW.name, "values": [3, -1], "share": 1 / 3, "gone": None, "true": True}
    ]


def test_rows_inside_other_values_become_json():
    value = {"rows": (ROW,), "cause": Cause.CRASH, "n": 1}
    read = json.loads(json_text(value))
    assert read["rows"][0]["values"] == [3, -1]
    assert read["cause"] == "crash"


def test_csv_has_every_value_in_one_line_a_row():
    text = csv_text(Row, [ROW, ROW])
    assert len(text.splitlines()) == 3
    header, first, second = csv.reader(io.StringIO(text))
    assert header == ["name", "values", "share", "gone", "true"]
    assert first == second == ['a "b",\\x1b\\n\\u202e', "3 -1", repr(1 / 3), "", "true"]


@dataclass(frozen=True)
class AnyRow:
    value: Annotated[object, Column("V")]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("+1", "'+1"),
        ("-1.5", "'-1.5"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "\\t=1"),
        ("\r=1", "\\r=1"),
        (("=1", "-2"), "'=1 -2"),
        ("a=1", "a=1"),
        (-1.5, "-1.5"),
        (-3, "-3"),
        ((-1, 2), "-1 2"),
        ((), ""),
        (None, ""),
    ],
)
def test_text_that_a_spreadsheet_takes_for_a_formula_is_escaped(value, cell):
    _, [read] = csv.reader(io.StringIO(csv_text(AnyRow, [AnyRow(value)])))
    assert read == cell


def test_csv_of_no_rows_has_the_keys():
    assert csv_text(Row, []) == "name,values,share,gone,true\n"


def test_json_and_csv_are_safe_to_print():
    for text in (json_text([ROW]), csv_text(Row, [ROW])):
        assert text.isascii()
        assert text.replace("\n", "").isprintable()


def test_csv_and_json_have_the_same_values():
    games = [game_result(("a", "b", "c"), (3, 2, 1), (1, 2, 3), forfeited=(1,))]
    rows = standings(games, rate(games))
    from_json = json.loads(json_text(rows))
    from_csv = list(csv.DictReader(io.StringIO(csv_text(StandingRow, rows))))
    assert [{key: str(value) for key, value in row.items()} for row in from_json] == from_csv


@pytest.mark.parametrize("row_type", ROW_TYPES)
def test_every_field_has_a_column(row_type):
    assert [field.key for field in fields_of(row_type)] == [each.name for each in fields(row_type)]


@pytest.mark.parametrize("row_type", [*ROW_TYPES, *ONLY_TABLES])
def test_key_is_the_title_of_its_column(row_type):
    for key, column in fields_of(row_type):
        if column.title == "#":
            assert key == "rank"
        else:
            assert re.sub("(_at)?_us$|_kib$", "", key) == title_key(column)


@pytest.mark.parametrize("row_type", ROW_TYPES)
def test_page_explains_every_key(row_type):
    [_, section] = PAGE.split(f"\n#### `{row_type.__name__}`")
    section = re.split(r"^#+ ", section, maxsplit=1, flags=re.MULTILINE)[0]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| \S", section, re.MULTILINE)
    assert re.findall(r"\w+", " ".join(rows)) == keys_of(row_type)


def test_all_row_types_are_tested_here():
    modules = [
        importlib.import_module(f"referee.reports.{module.name}")
        for module in pkgutil.iter_modules(referee.reports.__path__)
    ]
    defined = {
        name for module in modules for name in vars(module) if re.fullmatch(r"\w+(Row|Head)", name)
    }
    assert {row_type.__name__ for row_type in (*ROW_TYPES, *ONLY_TABLES)} == defined, (
        "add the row type to ROW_TYPES here, and to referee/ratings/README.md"
    )
