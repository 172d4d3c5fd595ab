"""What a tournament is: its stages, bots, limits and policies, and how a league keeps them.

`reading` makes one of a file.

What a tournament consists of: its games as it was created, and those of each extension.

Each part has a secret of its own. The seed of a tournament that is over is known to everybody; deals
that came from it would be, too.

When a tournament with `until` stops: after the first look that finds its table settled.

The looks come after whole rounds of all stages, less and less often, and the error that may be made is
shared out among all there can be. Stored games alone decide, and no game of a later round is played
before a look is over: so a tournament stops at the same place wherever it was interrupted and however
many workers it has, and whoever has its records can see that it had to.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, TypeAdapter

from referee.clocks import Clocks
from referee.errors import UserError
from referee.ratings.stopping import Until, looks
from referee.sandbox.limits import DEFAULT_LIMITS, Limits
from referee.sandbox.rungs import Rung
from referee.schedule import ROUND_ROBIN, Stage, shorter
from referee.schedule.budget import Budget

FORMAT = 1
"""Of a stored configuration. What has it can be read for ever: a key that comes later has a default."""


@dataclass(frozen=True, slots=True)
class FaultPolicy:
    """What faults cost."""

    max_strikes: int
    """The strike that forfeits a game."""
    suspend_after: int
    """Forfeits in a row, within a lane, after which a bot is not started there again; 0: never."""


@dataclass(frozen=True, slots=True)
class BotEntry:
    """One of the bots, as the file names it."""

    text: str
    """What the file says."""
    folder: Path | None
    """Absolute; None where the text is a name that the league has to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TournamentConfig:
    """A tournament that makes sense: what is in it was checked by `reading`."""

    file: Path
    """Where it was read from, for messages."""
    name: str
    stages: tuple[Stage, ...]
    bots: tuple[BotEntry, ...]
    """In the order of the schedule: challengers, if there are any, then those of `bots`."""
    lanes: int | None
    """None: as suits the workers there are when the tournament is created."""
    games_in_flight: int = 1
    """Games of a lane that are played together, where all of their bots can hold so many."""
    clocks: Clocks
    faults: FaultPolicy
    limits: Limits = DEFAULT_LIMITS
    """What any bot may ask for at most."""
    show_names: bool
    """Bots are told each other's names."""
    workers: int | None
    """None: as many as the cores allow."""
    cores_per_game: int
    max_processes: int
    """Bot processes that a worker keeps; beyond that it closes the least recently used idle one."""
    isolation: Rung | None = None
    """What bots run under; None: the strongest that the machine gives."""
    schedule: str = ROUND_ROBIN
    """The algorithm that makes the schedule (`referee.schedule.ALGORITHMS`)."""
    budget: Budget | None = None
    """What the file allowed; the stages are what that bought."""
    until: Until | None = None
    """What stops it before all of its games are played; None: nothing does."""
    seed: bytes | None = None
    """The secret of the deals, 32 bytes; None where the file leaves it to chance."""

    @property
    def games(self) -> int:
        """How many games it has."""
        return sum(stage.games(len(self.bots)) for stage in self.stages)

    @property
    def challengers(self) -> int:
        """How many of the bots, from the first one on, are the challengers of a gauntlet."""
        return self.stages[0].challengers

    def entry_key(self, number: int) -> str:
        """What the file calls one of the bots: `bots[3]`, `challengers[0]`."""
        if number < self.challengers:
            return f"challengers[{number}]"
        return f"bots[{number - self.challengers}]"


def worker_count(cores: int, *, workers: int | None, cores_per_game: int, lanes: int | None) -> int:
    """How many workers a tournament has on a machine: what it says, or as many as fit.

    Those that would have no lane are not there.
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
    """A configuration as text, but for its seed, which is secret until the tournament is over."""
    values = _ADAPTER.dump_python(config, mode="json", exclude={"seed"})
    return json.dumps({"format": FORMAT, **values}, sort_keys=True, separators=(",", ":"))


def from_canonical_json(text: str) -> TournamentConfig:
    """The configuration of `canonical_json`, without a seed.

    Raises ValueError for other text, and UserError for that of a newer version.
    """
    stored = _Stored.model_validate_json(text)
    if stored.format != FORMAT:
        raise UserError(
            f"its configuration has format {stored.format}; this version of the referee knows {FORMAT}"
        )
    return _ADAPTER.validate_json(text)


class _Stored(BaseModel):
    """What every stored configuration has, whatever its format."""

    format: int


_ADAPTER = TypeAdapter(TournamentConfig)


@dataclass(frozen=True, slots=True)
class Part:
    """Games that follow each other in a schedule, and the secret that their deals come from."""

    first: int
    """Index of its first game in the schedule."""
    games: int
    matches: int | None
    """Of an extension: how many more it adds, at each table or to each choice of tables; None for the
    first part."""
    commitment: str
    """SHA-256 of the seed, in hexadecimal."""
    seed: bytes | None
    """None where it is not known."""
    finished: bool
    """All its games were played once; from then on its seed is no secret."""

    @property
    def published_seed(self) -> bytes | None:
        """The seed, if it is no secret."""
        return self.seed if self.finished else None


def extension_matches(parts: Sequence[Part]) -> list[int]:
    """How many matches each of the extensions adds, at each table or to each choice of tables."""
    return [part.matches for part in parts if part.matches is not None]


def find_part(parts: Sequence[Part], index: int) -> Part:
    """The part that has the game of this index."""
    return parts[bisect_right(parts, index, key=lambda part: part.first) - 1]


def part_title(number: int) -> str:
    """What people call a part, by its number: empty for the first one."""
    return f"extension {number}" if number else ""


if TYPE_CHECKING:
    from referee.records import GameResult


@dataclass(frozen=True, slots=True)
class Look:
    """A moment at which a tournament may stop."""

    rounds: int
    """That are played then, of all stages."""
    games: int
    """That are played then: the first so many of the schedule."""


def list_looks(config: TournamentConfig) -> tuple[Look, ...]:
    """All looks, the last one when all is played; none of a tournament that does not stop by itself."""
    if config.until is None:
        return ()
    bots = len(config.bots)
    return tuple(
        Look(rounds, sum(stage.games(bots) for stage in shorter(config.stages, rounds)))
        for rounds in looks(count_rounds(config))
    )


def count_rounds(config: TournamentConfig) -> int:
    """How many rounds a tournament has if it does not stop."""
    return max(stage.matches for stage in config.stages)


def stages_played(config: TournamentConfig, stopped_after: int | None) -> tuple[Stage, ...]:
    """The stages, shortened where the tournament was settled after so many rounds."""
    return config.stages if stopped_after is None else shorter(config.stages, stopped_after)


def is_table_settled(config: TournamentConfig, games: Iterable[GameResult]) -> bool:
    """Whether a tournament with looks has a settled table, after the games of one of them."""
    from referee.ratings.analysis import Analysis  # noqa: PLC0415 - as `ratings` says
    from referee.ratings.stopping import all_settled, neighbours  # noqa: PLC0415 - the same
    from referee.result_columns import ResultColumns  # noqa: PLC0415 - the same

    assert config.until is not None  # noqa: S101 - it has looks
    by_ruleset = ResultColumns.from_results(games).by_ruleset()
    analyses = [Analysis(results) for results in by_ruleset.values()]
    return all_settled(neighbours(analyses, config.until, looks=len(list_looks(config))))
