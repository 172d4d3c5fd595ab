"""What a tournament is: its stages, bots, limits and policies, and how a league keeps them.

`reading` makes one of a file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, TypeAdapter

from referee.bots.isolation import Rung
from referee.bots.limits import DEFAULT, Limits
from referee.clocks import Clocks
from referee.errors import UserError
from referee.ratings.until import Until
from referee.schedule import ROUND_ROBIN, Stage
from referee.tournament.budget import Budget

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
    limits: Limits = DEFAULT
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

    def key(self, number: int) -> str:
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
