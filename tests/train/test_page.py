"""The page of `referee/train` keeps its promises."""

from __future__ import annotations

import re

import pytest
from pages import ROOT, blocks, table

from referee.rules.ruleset import RULESETS
from referee.sdk.env import ACTIONS, Encoding, action_name

PAGE = "referee/train/README.md"
EXAMPLES = blocks("python", (ROOT / PAGE).read_text())


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_example_runs(example, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    exec(compile(example, PAGE, "exec"), {"__name__": "example"})  # noqa: S102 - the page is our own
    assert bool(capsys.readouterr().out) == ("print(" in example)


def test_listed_parts_are_those_of_an_observation():
    encoding = Encoding(RULESETS["duel"], 2)
    text = (ROOT / PAGE).read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text, re.MULTILINE)
    shapes = {
        name: tuple(2 if size == "seats" else int(size) for size in shape.strip().split(" × "))
        for name, shape in rows
    }
    assert list(shapes.items()) == list(encoding.shapes.items())


def test_listed_numbers_are_those_of_the_actions():
    rows = table(PAGE, "Actions and observations")
    spans = [tuple(map(int, row[0].split(" to "))) for row in rows]
    assert [number for first, last in spans for number in range(first, last + 1)] == list(
        range(ACTIONS)
    )
    names = [{action_name(number).split()[0] for number in range(a, b + 1)} for a, b in spans]
    assert names == [
        {"play"},
        {"take", "leave", "reclaim", "discard", "draw-deck", "pass"},
        {"draw"},
        {"snatch"},
    ]
