"""Parameters of tests that take long at every table: plain `pytest` runs them at a few tables only."""

import pytest
from extended import extend_cases_but
from playouts import TABLE_NAMES, TABLES

PLAIN = ("basic-4", "expert-jokers-5", "duel-2", "duel-as-dealt-optional-lowest-2")

few_tables = pytest.mark.parametrize(
    ("ruleset", "players"),
    extend_cases_but(PLAIN, dict(zip(TABLE_NAMES, TABLES, strict=True)), "plays more random games"),
)
