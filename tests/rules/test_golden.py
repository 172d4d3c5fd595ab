"""The engine plays one stored game of each ruleset exactly as its text file says."""

from __future__ import annotations

import difflib
from itertools import islice

import pytest
from playthrough import FOLDER, GOLDEN, playthrough

from referee.rules.events import Termination
from referee.rules.ruleset import RULESETS

COMMAND = ".venv/bin/python tests/rules/golden/regenerate.py"


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.ruleset)
def test_golden_game_is_played_as_its_file_says(golden):
    kept = golden.path.read_text(encoding="utf-8").splitlines()
    now = playthrough(golden).splitlines()
    if now != kept:
        changes = difflib.unified_diff(kept, now, str(golden.path), "now", lineterm="", n=12)
        shown = "\n".join(islice(changes, 60))
        pytest.fail(f"If this is meant, run: {COMMAND}\n{shown}", pytrace=False)


def test_every_ruleset_has_one_golden_game_and_no_other_file_exists():
    assert sorted(golden.ruleset for golden in GOLDEN) == sorted(RULESETS)
    assert sorted(FOLDER.glob("*.txt")) == sorted(golden.path for golden in GOLDEN)


def test_golden_games_end_in_every_way():
    text = "".join(golden.path.read_text(encoding="utf-8") for golden in GOLDEN)
    assert all(f"GameOver {end.value}" in text for end in Termination)


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.ruleset)
def test_golden_game_is_smaller_than_150_kb(golden):
    assert golden.path.stat().st_size < 150_000
