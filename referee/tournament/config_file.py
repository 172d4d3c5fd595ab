"""Define the keys of a tournament file: their types, ranges and default values.

Each subclass of `FileModel` describes a table of the TOML file. This module checks each value alone.
`config_reader` checks whether the values of several keys fit each other, and makes a `TournamentConfig` of the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from referee.bots.manifest import LimitsTable, RulesetName
from referee.clocks import SECOND_US, parse_bank
from referee.ratings.stopping import (
    CONFIDENCE,
    MARGIN,
    MAX_CONFIDENCE,
    MAX_MARGIN,
    MIN_CONFIDENCE,
)
from referee.rules.ruleset import RULESETS, EndOn, GhostOverflow, GhostSnatch, GhostStart
from referee.sandbox import Rung
from referee.schedule import Deals
from referee.toml_file import FileModel, Name, text_schema

MAX_GAMES = 1_000_000
"""The largest number of games in a tournament. A schedule of this size still fits into memory."""
MAX_BOTS = 1_000
"""The largest number of entries in `bots` or `challengers`."""
MAX_ARGS = 100
"""The largest number of arguments in `args`."""
MAX_STAGES = 50
"""The largest number of tables `[[stage]]`."""
MAX_GAMES_IN_FLIGHT = 100
"""The largest `games_in_flight`."""
MIN_SECONDS = 0.001
"""The smallest value of a time limit."""
MAX_SECONDS = 86_400
"""The largest value of a time limit: one day."""
MAX_MINUTES = 525_600
"""The largest budget of minutes: one year."""
_SEED = re.compile(r"[0-9a-fA-F]{64}")


def _check_in_flight(value: object) -> object:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if value != "auto" and not (is_number and value in range(1, MAX_GAMES_IN_FLIGHT + 1)):
        raise ValueError(f'must be "auto" or a whole number from 1 to {MAX_GAMES_IN_FLIGHT}')
    return value


def _check_sizes(sizes: tuple[int, ...]) -> tuple[int, ...]:
    if not sizes:
        raise ValueError("must not be empty")
    if len(set(sizes)) < len(sizes):
        raise ValueError("the same table size occurs twice")
    return sizes


def _check_seed(text: str) -> str:
    if _SEED.fullmatch(text) is None:
        raise ValueError("must be 64 hexadecimal digits")
    return text


def _check_stages(value: object) -> object:
    if isinstance(value, Mapping):
        raise ValueError("must be a list of tables: write [[stage]] instead of [stage]")  # noqa: TRY004 - for pydantic
    return value


def _require_table(example: str) -> BeforeValidator:
    """Return a validator that refuses a value that is no table, and gives an example."""

    def check(value: object) -> object:
        if not isinstance(value, Mapping):
            raise ValueError(f"must be a table, such as {example}")  # noqa: TRY004 - for pydantic
        return value

    return BeforeValidator(check)


def _make_budget_table(value: object) -> object:
    """Return the table `{games = N}` for a budget that is a plain number N; return a table unchanged."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be a whole number of games, or a table, such as { minutes = 10 }")  # noqa: TRY004 - for pydantic
    if value < 1:
        raise ValueError("must be at least 1")
    if value > MAX_GAMES:
        raise ValueError(f"must be at most {MAX_GAMES}")
    return {"games": value}


def _make_bot_table(value: object) -> object:
    """Return the table `{path = TEXT}` for a bot that is a plain text; return a table unchanged."""
    if isinstance(value, Mapping):
        return value
    if not isinstance(value, str):
        raise ValueError("must be a string, or a table with path, name and args")  # noqa: TRY004 - for pydantic
    return {"path": value}


def _check_argument(text: str) -> str:
    if "\0" in text:
        raise ValueError("a NUL character cannot be passed to a program")
    return text


def check_bank(text: str) -> str:
    """Return `text` if it describes a bank. Raises ValueError if it does not, or if the bank or its increment is out of range."""
    bank_us, increment_us = parse_bank(text)
    if not 0 < bank_us <= MAX_SECONDS * SECOND_US or increment_us > MAX_SECONDS * SECOND_US:
        raise ValueError(f"must be more than 0 and at most {MAX_SECONDS} seconds")
    return text


Seconds = Annotated[float, Field(ge=MIN_SECONDS, le=MAX_SECONDS, allow_inf_nan=False)]
MAX_LANES = 1024
"""The most lanes, workers and cores that a tournament file may name."""
Small = Annotated[int, Field(ge=1, le=MAX_LANES)]
InFlight = Annotated[int, Field(ge=1, le=MAX_GAMES_IN_FLIGHT)]
Games = Annotated[int, Field(ge=1, le=MAX_GAMES)]
Argument = Annotated[str, Field(max_length=1000), AfterValidator(_check_argument)]
Size = Annotated[
    int,
    Field(
        strict=True,
        json_schema_extra={
            "minimum": min(ruleset.min_players for ruleset in RULESETS.values()),
            "maximum": max(ruleset.max_players for ruleset in RULESETS.values()),
        },
    ),
]
"""A number of seats. The minimum and maximum over all rulesets are only for the JSON Schema, which text editors use.
When a file is read, `stage_reader` checks the range of the stage's ruleset."""


class Format(Enum):
    """Which bots meet each other."""

    ROUND_ROBIN = "round-robin"
    """Every bot meets every other bot."""
    GAUNTLET = "gauntlet"
    """Every table has one challenger, and all other seats have bots of the field. Challengers never meet each other."""


class StageTable(FileModel):
    """A table `[[stage]]`. The same keys at the top of the file are the defaults of all stages."""

    ruleset: RulesetName | None = None
    seats: Size | None = None
    """Number of seats at each table."""
    tables: (
        Annotated[
            tuple[Size, ...],
            Field(
                strict=False,
                max_length=16,
                json_schema_extra={"minItems": 1, "uniqueItems": True},
            ),
            AfterValidator(_check_sizes),
        ]
        | None
    ) = None
    """Several numbers of seats, instead of `seats`. Each number makes a stage."""
    matches: Annotated[int, Field(ge=1, le=MAX_GAMES)] | None = None
    """Number of matches at each table."""
    end_on: Annotated[EndOn, Field(strict=False)] | None = None
    max_turns: Annotated[int, Field(ge=1, le=100_000)] | None = None
    ghost_start: Annotated[GhostStart, Field(strict=False)] | None = None
    ghost_snatch: Annotated[GhostSnatch, Field(strict=False)] | None = None
    ghost_overflow: Annotated[GhostOverflow, Field(strict=False)] | None = None
    deals: Annotated[Deals, Field(strict=False)] | None = None
    """Whether all games of a match have the same deal."""


class ClocksTable(FileModel):
    """The table `[clocks]`, in seconds."""

    start_up: Seconds = 20
    game_start: Seconds = 10
    decision: Seconds = 5
    bank: Annotated[str, AfterValidator(check_bank)] | None = None
    """The bank as `SECONDS` or `SECONDS+INCREMENT`; None: no limit for the whole game."""
    scale: bool = False
    """Whether the decision limit and the bank depend on the speed of the worker's machine; see `Clocks.scale`."""


class FaultsTable(FileModel):
    """The table `[faults]`."""

    max_strikes: Annotated[int, Field(ge=1, le=1000)] = 3
    suspend_after: Annotated[int, Field(ge=0, le=MAX_GAMES)] = 5


class BudgetTable(FileModel):
    """The table `budget`, which has exactly one key."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    games: Games | None = None
    """Number of games of the whole tournament."""
    games_per_bot: Games | None = None
    """Number of games of the bot that plays most."""
    minutes: Annotated[float, Field(gt=0, le=MAX_MINUTES, allow_inf_nan=False)] | None = None
    """Planned duration of the tournament. The number of games is computed from the duration of earlier games in the league."""

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError(
                f"must have exactly one of the keys {', '.join(type(self).model_fields)}"
            )
        return self


class UntilTable(FileModel):
    """The table `until`."""

    confidence: Annotated[
        float, Field(ge=MIN_CONFIDENCE, le=MAX_CONFIDENCE, allow_inf_nan=False)
    ] = CONFIDENCE
    margin: Annotated[float, Field(ge=0, le=MAX_MARGIN, allow_inf_nan=False)] = MARGIN


class BotTable(FileModel):
    """An entry of `bots` or `challengers`. If the entry is a plain string, the string is the path."""

    path: str
    """A folder, or the name of a bot in the league."""
    name: Name | None = None
    """The name of the bot in this tournament, instead of the name in its manifest."""
    args: Annotated[tuple[Argument, ...], Field(strict=False, max_length=MAX_ARGS)] = ()
    """Arguments for the bot's program, after those in its manifest."""


Bots = Annotated[
    tuple[
        Annotated[
            BotTable, BeforeValidator(_make_bot_table, json_schema_input_type=str | BotTable)
        ],
        ...,
    ],
    Field(strict=False, max_length=MAX_BOTS),
]


class TournamentFile(StageTable):
    """A whole tournament file."""

    name: Name
    bots: Bots
    """The bots. An entry with a slash in it or a dot at its start is a folder, relative to the folder of the tournament file. Any other
    entry names a bot in the league. An entry that is a TOML table can also give the bot another name and more arguments. In a gauntlet
    the bots of this key are the field."""
    format: Annotated[Format, Field(strict=False)] = Format.ROUND_ROBIN
    challengers: Annotated[Bots, Field(min_length=1)] | None = None
    """The challengers of a gauntlet, written like `bots`."""
    stage: (
        Annotated[
            tuple[StageTable, ...],
            Field(strict=False, min_length=1, max_length=MAX_STAGES),
            BeforeValidator(_check_stages),
        ]
        | None
    ) = None
    budget: (
        Annotated[
            BudgetTable,
            BeforeValidator(_make_budget_table, json_schema_input_type=Games | BudgetTable),
        ]
        | None
    ) = None
    """The size of the tournament, instead of `matches`; a plain number is a number of games."""
    until: Annotated[UntilTable, _require_table(f"{{ margin = {MARGIN} }}")] | None = None
    """The condition under which the tournament stops early; None: it never does."""
    seed: Annotated[str, AfterValidator(_check_seed), text_schema(_SEED)] | None = None
    show_names: bool = False
    lanes: Small | None = None
    games_in_flight: Annotated[
        Literal["auto"] | int,
        BeforeValidator(_check_in_flight, json_schema_input_type=Literal["auto"] | InFlight),
    ] = "auto"
    workers: Small | None = None
    cores_per_game: Small = 1
    pondering: bool = False
    """Whether bots may compute while others decide."""
    max_processes: Annotated[int, Field(ge=1, le=100_000)] = 64
    isolation: Annotated[Rung, Field(strict=False)] | None = None
    clocks: Annotated[ClocksTable, _require_table("{ decision = 2 }")] = ClocksTable()
    faults: Annotated[FaultsTable, _require_table("{ max_strikes = 5 }")] = FaultsTable()
    limits: Annotated[LimitsTable, _require_table("{ memory_mib = 512 }")] = LimitsTable()
    """The highest limits that the manifest of a bot may set."""
