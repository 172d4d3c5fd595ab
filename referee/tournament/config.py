"""Hold what a tournament is: its configuration, its parts, and the looks at which it may stop early.

- A `TournamentConfig` comes from a tournament file (`config_reader`) and is stored as JSON in the league.
- A `Part` is a range of games with a seed of its own: the games of the creation, or those of one extension.
- A `Look` is a moment at which a tournament with `until` tests whether its table is settled.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, TypeAdapter

from referee.clocks import Clocks
from referee.errors import UserError
from referee.ratings.analysis import Analysis
from referee.ratings.stopping import StopCondition, all_settled, compare_neighbours, look_rounds
from referee.records import GameResult
from referee.result_columns import ResultColumns
from referee.sandbox import DEFAULT_LIMITS, Limits
from referee.sandbox.rungs import Rung
from referee.schedule import Stage
from referee.schedule.budget import Budget
from referee.schedule.extension import ROUND_ROBIN, shorten

FORMAT = 1
"""The format of stored configurations. A new key needs a default value, so that older ones stay readable."""


@dataclass(frozen=True, slots=True)
class FaultPolicy:
    """What faults cost."""

    max_strikes: int
    """The strike with this number forfeits the game."""
    suspend_after: int
    """Forfeits in a row, within a lane, after which a bot is not started there any more; 0: never."""


@dataclass(frozen=True, slots=True)
class BotEntry:
    """A bot as the tournament file names it."""

    text: str
    """The text in the file."""
    folder: Path | None
    """Absolute path of its folder; None if the text is the name of a bot in the league."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TournamentConfig:
    """The configuration of a tournament. `config_reader` has checked that its values fit each other."""

    file: Path
    """The tournament file, for messages."""
    name: str
    stages: tuple[Stage, ...]
    bots: tuple[BotEntry, ...]
    """The bots in schedule order: first the challengers of a gauntlet, then the entries of `bots`."""
    lanes: int | None
    """Number of lanes; None: chosen when the tournament is created, to suit the number of workers."""
    games_in_flight: int = 1
    """Games of a lane that are played at the same time, if all of their bots can hold this number."""
    clocks: Clocks
    faults: FaultPolicy
    limits: Limits = DEFAULT_LIMITS
    """The maximum that a bot may ask for."""
    show_names: bool
    """Whether bots are told each other's names."""
    workers: int | None
    """Number of worker processes; None: as many as the cores allow."""
    cores_per_game: int
    max_processes: int
    """Bot processes that a worker keeps; beyond that it closes the least recently used idle one."""
    isolation: Rung | None = None
    """The isolation of the bots; None: the strongest that the machine gives."""
    schedule: str = ROUND_ROBIN
    """The algorithm that makes the schedule, a key of `referee.schedule.ALGORITHMS`."""
    budget: Budget | None = None
    """The budget in the file, from which the matches of the stages were computed; None if it has none."""
    until: StopCondition | None = None
    """When the tournament stops early; None: never."""
    seed: bytes | None = None
    """The seed of all deals, 32 bytes; None: drawn at random when the tournament is created."""

    @property
    def games(self) -> int:
        """Number of games, without extensions."""
        return sum(stage.games(len(self.bots)) for stage in self.stages)

    @property
    def challengers(self) -> int:
        """Number of challengers, which are the first ones of `bots`; 0 unless this is a gauntlet."""
        return self.stages[0].challengers

    def entry_key(self, number: int) -> str:
        """Return the key of entry `number` of `bots` in the file: `bots[3]` or `challengers[0]`."""
        if number < self.challengers:
            return f"challengers[{number}]"
        return f"bots[{number - self.challengers}]"


def worker_count(cores: int, *, workers: int | None, cores_per_game: int, lanes: int | None) -> int:
    """Return how many workers a tournament gets on a machine with `cores` CPU cores.

    That is `workers`, or as many as fit on the cores, but never more than there are lanes.
    """
    count = workers or cores // min(cores_per_game, cores)
    return count if lanes is None else min(count, lanes)


def assign_cores(config: TournamentConfig) -> list[frozenset[int]]:
    """Return the CPU cores of each worker that this machine gives the tournament.

    Each core is given to one worker as long as there are enough; workers beyond that share cores.
    """
    cores = sorted(os.sched_getaffinity(0))
    per_game = min(config.cores_per_game, len(cores))
    workers = worker_count(
        len(cores),
        workers=config.workers,
        cores_per_game=config.cores_per_game,
        lanes=config.lanes,
    )
    return [
        frozenset(cores[(worker * per_game + number) % len(cores)] for number in range(per_game))
        for worker in range(workers)
    ]


def canonical_json(config: TournamentConfig) -> str:
    """Return a configuration as JSON, without its seed, which stays secret until the games are played."""
    values = _ADAPTER.dump_python(config, mode="json", exclude={"seed"})
    return json.dumps({"format": FORMAT, **values}, sort_keys=True, separators=(",", ":"))


def from_canonical_json(text: str) -> TournamentConfig:
    """Return the configuration that `canonical_json` wrote, without a seed.

    Raises ValueError for any other text, and UserError if the text has another format.
    """
    stored = _AnyFormat.model_validate_json(text)
    if stored.format != FORMAT:
        raise UserError(
            f"its configuration has format {stored.format}; this version of the referee knows {FORMAT}"
        )
    return _ADAPTER.validate_json(text)


class _AnyFormat(BaseModel):
    """The key that stored configurations of all formats have."""

    format: int


_ADAPTER = TypeAdapter(TournamentConfig)


@dataclass(frozen=True, slots=True)
class Part:
    """A range of games in the schedule, with the seed of their deals.

    The first part has the games that a tournament was created with. Each extension adds a part with a new
    seed, because the older seeds may be public already.
    """

    first: int
    """Index of its first game in the schedule."""
    games: int
    """Number of its games."""
    matches: int | None
    """Matches that the extension added at each table, or in each balanced choice; None in the first part."""
    commitment: str
    """SHA-256 of the seed, hexadecimal."""
    seed: bytes | None
    """The seed; None if it is unknown."""
    finished: bool
    """Whether all of its games have been played. Its seed is public from then on."""

    @property
    def published_seed(self) -> bytes | None:
        """The seed if it is public, else None."""
        return self.seed if self.finished else None


def extension_matches(parts: Sequence[Part]) -> list[int]:
    """Return the matches that each extension added at each table, or in each balanced choice."""
    return [part.matches for part in parts if part.matches is not None]


def find_part(parts: Sequence[Part], index: int) -> Part:
    """Return the part with the game of this index in the schedule."""
    return parts[bisect_right(parts, index, key=lambda part: part.first) - 1]


def part_title(number: int) -> str:
    """Return the title of part `number` for people: `extension 1`, and an empty text for part 0."""
    return f"extension {number}" if number else ""


# A look depends on stored games alone, and no later game starts before it is over. So a tournament stops at the
# same place whatever the number of workers and wherever it was interrupted, and `verify` can check the stop.


@dataclass(frozen=True, slots=True)
class Look:
    """A moment, after whole rounds of all stages, at which a tournament may stop early."""

    rounds: int
    """Number of rounds that have been played."""
    games: int
    """Number of games that have been played; they are the first ones of the schedule."""


def list_looks(config: TournamentConfig) -> tuple[Look, ...]:
    """Return all looks of a tournament, the last one after its last round; none without `until`."""
    if config.until is None:
        return ()
    bots = len(config.bots)
    return tuple(
        Look(rounds, sum(stage.games(bots) for stage in shorten(config.stages, rounds)))
        for rounds in look_rounds(count_rounds(config))
    )


def count_rounds(config: TournamentConfig) -> int:
    """Return how many rounds a tournament has if it does not stop early."""
    return max(stage.matches for stage in config.stages)


def played_stages(config: TournamentConfig, stopped_after: int | None) -> tuple[Stage, ...]:
    """Return the stages, shortened to `stopped_after` rounds if the tournament stopped early."""
    return config.stages if stopped_after is None else shorten(config.stages, stopped_after)


def is_table_settled(config: TournamentConfig, games: Iterable[GameResult]) -> bool:
    """Return True if the table after these games is settled; the tournament must have `until`."""
    assert config.until is not None  # noqa: S101 - callers check it
    by_ruleset = ResultColumns.from_results(games).by_ruleset()
    analyses = [Analysis(results) for results in by_ruleset.values()]
    return all_settled(compare_neighbours(analyses, config.until, looks=len(list_looks(config))))
