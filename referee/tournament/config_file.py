"""A tournament file as it is written: its keys, their types and the values that make sense.

What several keys mean together is said by `config`, which makes a `TournamentConfig` of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from referee.bots.manifest import LimitsTable
from referee.clocks import SECOND_US, parse_bank
from referee.rules.ruleset import RULESETS, EndOn
from referee.sandbox.rungs import Rung
from referee.toml_file import FileModel, Name

MAX_GAMES = 1_000_000
"""Of a tournament: more would not fit into memory in comfort."""
MAX_SECONDS = 86_400
"""Of any one limit: a day."""
MAX_MINUTES = 525_600
"""Of a budget: a year."""
MAX_MARGIN = 25.0
"""Of rating: that is what bots have on average."""
_SEED = re.compile(r"[0-9a-fA-F]{64}")


def _check_ruleset(name: str) -> str:
    if name not in RULESETS:
        raise ValueError(f"unknown ruleset {name!r}; there are {', '.join(RULESETS)}")
    return name


def _check_sizes(sizes: tuple[int, ...]) -> tuple[int, ...]:
    if not sizes:
        raise ValueError("must not be empty")
    if len(set(sizes)) < len(sizes):
        raise ValueError("a size is there twice")
    return sizes


def _check_seed(text: str) -> str:
    if _SEED.fullmatch(text) is None:
        raise ValueError("must be 64 hexadecimal digits")
    return text


def _as_table(value: object) -> object:
    """A budget that is a number, as the table that says the same."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be a whole number (of games), or a table")  # noqa: TRY004 - pydantic's
    if value < 1:
        raise ValueError("must be at least 1")
    if value > MAX_GAMES:
        raise ValueError(f"must be at most {MAX_GAMES}")
    return {"games": value}


def _check_bank(text: str) -> str:
    bank_us, increment_us = parse_bank(text)
    if not 0 < bank_us <= MAX_SECONDS * SECOND_US or increment_us > MAX_SECONDS * SECOND_US:
        raise ValueError(f"must be more than 0 and at most {MAX_SECONDS} seconds")
    return text


Seconds = Annotated[float, Field(ge=0.001, le=MAX_SECONDS, allow_inf_nan=False)]
Small = Annotated[int, Field(ge=1, le=1024)]
Games = Annotated[int, Field(ge=1, le=MAX_GAMES)]
Sizes = tuple[Annotated[int, Field(strict=True)], ...]


class Format(Enum):
    """Who meets whom."""

    ROUND_ROBIN = "round-robin"
    """Everybody meets everybody."""
    GAUNTLET = "gauntlet"
    """Challengers meet the field, one at each table."""


class StageTable(FileModel):
    """`[[stage]]`; the same keys at the top of the file hold where a stage does not say."""

    ruleset: Annotated[str, AfterValidator(_check_ruleset)] | None = None
    seats: int | None = None
    """Of a table."""
    tables: Annotated[Sizes, Field(strict=False), AfterValidator(_check_sizes)] | None = None
    """Table sizes, in place of seats; each makes a stage."""
    matches: Annotated[int, Field(ge=1, le=MAX_GAMES)] | None = None
    """At each table."""
    end_on: Annotated[EndOn, Field(strict=False)] | None = None
    max_turns: Annotated[int, Field(ge=1, le=100_000)] | None = None


class ClocksTable(FileModel):
    """`[clocks]`, in seconds."""

    start_up: Seconds = 20
    game_start: Seconds = 10
    decision: Seconds = 5
    bank: Annotated[str, AfterValidator(_check_bank)] | None = None
    """SECONDS or SECONDS+INCREMENT."""


class FaultsTable(FileModel):
    """`[faults]`."""

    max_strikes: Annotated[int, Field(ge=1, le=1000)] = 3
    suspend_after: Annotated[int, Field(ge=0, le=MAX_GAMES)] = 5


class BudgetTable(FileModel):
    """`budget`, one of these."""

    games: Games | None = None
    """Of the whole tournament."""
    games_per_bot: Games | None = None
    """Of the bot that plays most."""
    minutes: Annotated[float, Field(gt=0, le=MAX_MINUTES, allow_inf_nan=False)] | None = None
    """Of playing, as is to be expected from the games of the league."""

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError(f"must say one of {', '.join(BudgetTable.model_fields)}")
        return self


class UntilTable(FileModel):
    """`until`."""

    confidence: Annotated[float, Field(gt=0.5, le=0.9999, allow_inf_nan=False)]
    margin: Annotated[float, Field(ge=0, le=MAX_MARGIN, allow_inf_nan=False)] = 1.0


class TournamentFile(StageTable):
    """The whole file."""

    name: Name
    bots: Annotated[tuple[str, ...], Field(strict=False)]
    """Paths from the file's folder, with a slash in them, or names; of a gauntlet, the field."""
    format: Annotated[Format, Field(strict=False)] = Format.ROUND_ROBIN
    challengers: Annotated[tuple[str, ...], Field(strict=False, min_length=1)] | None = None
    """Of a gauntlet; like bots."""
    stage: Annotated[tuple[StageTable, ...], Field(strict=False, min_length=1)] | None = None
    budget: Annotated[BudgetTable, BeforeValidator(_as_table)] | None = None
    """In place of matches; a number is one of games."""
    until: UntilTable | None = None
    """When it stops before all of it is played."""
    seed: Annotated[str, AfterValidator(_check_seed)] | None = None
    show_names: bool = False
    lanes: Small | None = None
    games_in_flight: Annotated[int, Field(ge=1, le=100)] = 1
    workers: Small | None = None
    cores_per_game: Small = 1
    max_processes: Annotated[int, Field(ge=1, le=100_000)] = 64
    isolation: Annotated[Rung, Field(strict=False)] | None = None
    clocks: ClocksTable = ClocksTable()
    faults: FaultsTable = FaultsTable()
    limits: LimitsTable = LimitsTable()
    """The most that a bot may ask for."""
