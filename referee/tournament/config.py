"""What a tournament is: its stages, bots, limits and policies, from a file or from the store.

The keys of the file, their types and ranges are in `file_model`; here is what they mean together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, TypeAdapter

from referee import toml_file
from referee.clocks import SECOND_US, Clocks, parse_bank
from referee.errors import UserError
from referee.rules.ruleset import RULESETS, Ruleset
from referee.schedule import ROUND_ROBIN, Stage, algorithm, matches_within, rounds_within
from referee.tournament.file_model import MAX_GAMES, ClocksTable, StageTable, TournamentFile

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
    """A tournament that makes sense: what is in it was checked by `load_tournament`."""

    file: Path
    """Where it was read from, for messages."""
    name: str
    stages: tuple[Stage, ...]
    bots: tuple[BotEntry, ...]
    """In the order of the file, which is that of the schedule."""
    lanes: int | None
    """None: as suits the workers there are when the tournament is created."""
    games_in_flight: int = 1
    """Games of a lane that are played together, where all of their bots can hold so many."""
    clocks: Clocks
    faults: FaultPolicy
    show_names: bool
    """Bots are told each other's names."""
    workers: int | None
    """None: as many as the cores allow."""
    cores_per_game: int
    max_processes: int
    """Bot processes that a worker keeps; beyond that it closes the least recently used idle one."""
    schedule: str = ROUND_ROBIN
    """The algorithm that makes the schedule (`referee.schedule.ALGORITHMS`)."""
    seed: bytes | None = None
    """The secret of the deals, 32 bytes; None where the file leaves it to chance."""

    @property
    def games(self) -> int:
        """How many games it has."""
        return _games(len(self.bots), self.stages)


def load_tournament(path: Path) -> TournamentConfig:
    """Read a tournament file.

    Paths in it count from its own folder. Raises UserError, one line: `FILE: KEY: reason`.
    """
    return _Reading(path, toml_file.load(path, TournamentFile)).config()


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


_SIZES = {"seats", "tables"}
"""Keys of a stage of which each replaces what the top of the file says by either."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What a stage, or one of its table sizes, says."""

    key: str
    """Says the matches."""
    matches: int | None
    ruleset: Ruleset
    seats: int


class _Reading:
    """One tournament file on its way to a configuration."""

    def __init__(self, path: Path, file: TournamentFile) -> None:
        self._path = path
        self._file = file

    def config(self) -> TournamentConfig:
        file = self._file
        bots = tuple(self._bot(number, text) for number, text in enumerate(file.bots))
        stages = self._stages(len(bots))
        return TournamentConfig(
            file=self._path.resolve(),
            name=file.name,
            stages=stages,
            bots=bots,
            lanes=self._lanes(stages),
            games_in_flight=file.games_in_flight,
            clocks=_clocks(file.clocks),
            faults=FaultPolicy(file.faults.max_strikes, file.faults.suspend_after),
            show_names=file.show_names,
            workers=self._workers(),
            cores_per_game=file.cores_per_game,
            max_processes=self._max_processes(stages),
            schedule=algorithm(stages),
            seed=None if file.seed is None else bytes.fromhex(file.seed),
        )

    def _error(self, key: str, reason: str) -> UserError:
        return UserError(f"{self._path}: {key}: {reason}")

    def _bot(self, number: int, text: str) -> BotEntry:
        if "/" not in text and not text.startswith("."):
            return BotEntry(text, None)
        folder = self._path.parent / text
        if not toml_file.is_folder(folder):
            raise self._error(f"bots[{number}]", f"{text!r}: no such folder")
        return BotEntry(text, folder.resolve())

    def _stages(self, bots: int) -> tuple[Stage, ...]:
        parts = [
            part for prefix, table in self._tables() for part in self._parts(prefix, table, bots)
        ]
        budget = self._file.budget
        stages = self._by_matches(parts) if budget is None else self._by_budget(budget, parts, bots)
        games = _games(bots, stages)
        if games > MAX_GAMES:
            raise self._error("matches", f"make {games} games in all; {MAX_GAMES} are the limit")
        return stages

    def _tables(self) -> list[tuple[str, StageTable]]:
        """Each stage, completed from the top of the file, and what its keys begin with."""
        if self._file.stage is None:
            return [("", self._file)]
        return [
            (f"stage[{number}].", self._completed(own))
            for number, own in enumerate(self._file.stage)
        ]

    def _completed(self, stage: StageTable) -> StageTable:
        own = stage.model_dump(exclude_none=True)
        top = {key: getattr(self._file, key) for key in StageTable.model_fields}
        if own.keys() & _SIZES:
            top = {key: value for key, value in top.items() if key not in _SIZES}
        return StageTable(**(top | own))

    def _parts(self, prefix: str, table: StageTable, bots: int) -> list[_Part]:
        """A table of the file, for each of its table sizes."""
        if table.ruleset is None:
            raise self._error(f"{prefix}ruleset", "missing")
        ruleset = RULESETS[table.ruleset].with_options(
            end_on=table.end_on, max_turns=table.max_turns
        )
        parts = []
        for key, seats in self._sizes(prefix, table).items():
            low, high = ruleset.min_players, ruleset.max_players
            if not low <= seats <= high:
                allowed = f"{low} to {high}" if low < high else f"{low}"
                raise self._error(key, f"{ruleset.name} is played by {allowed}, not {seats}")
            if bots < seats:
                raise self._error("bots", f"{bots} do not fill the {seats} seats of a table")
            parts.append(_Part(f"{prefix}matches", table.matches, ruleset, seats))
        return parts

    def _sizes(self, prefix: str, table: StageTable) -> dict[str, int]:
        """The table sizes, each by the key that says it."""
        if table.tables is None:
            if table.seats is None:
                raise self._error(f"{prefix}seats", "missing")
            return {f"{prefix}seats": table.seats}
        if table.seats is not None:
            raise self._error(f"{prefix}tables", "there are seats too; one of them must go")
        return {f"{prefix}tables[{number}]": seats for number, seats in enumerate(table.tables)}

    def _by_matches(self, parts: Iterable[_Part]) -> tuple[Stage, ...]:
        stages = []
        for part in parts:
            if part.matches is None:
                reason = "missing, and there is no budget (games in all) instead"
                raise self._error(part.key, reason)
            stages.append(Stage(part.ruleset, part.seats, part.matches))
        return tuple(stages)

    def _by_budget(self, budget: int, parts: Sequence[_Part], bots: int) -> tuple[Stage, ...]:
        """Whole rounds of all tables; where not even one fits, a balanced choice of them."""
        for part in parts:
            if part.matches is not None:
                raise self._error(part.key, "there is a budget too; one of them must go")
        seats = [part.seats for part in parts]
        if rounds := rounds_within(budget, bots, seats):
            return tuple(Stage(part.ruleset, part.seats, rounds) for part in parts)
        try:
            matches = matches_within(budget, bots, seats)
        except ValueError as error:
            raise self._error("budget", str(error)) from error
        return tuple(
            Stage(part.ruleset, part.seats, number, balanced=True)
            for part, number in zip(parts, matches, strict=True)
        )

    def _lanes(self, stages: Iterable[Stage]) -> int | None:
        lanes, seats = self._file.lanes, max(stage.seats for stage in stages)
        if lanes is not None and lanes < seats:
            raise self._error("lanes", f"must be at least {seats}, the seats of a table")
        return lanes

    def _workers(self) -> int | None:
        workers, lanes = self._file.workers, self._file.lanes
        if workers is not None and lanes is not None and workers > lanes:
            raise self._error("workers", f"{workers} cannot share {lanes} lanes")
        return workers

    def _max_processes(self, stages: Iterable[Stage]) -> int:
        seats = max(stage.seats for stage in stages)
        if self._file.max_processes < seats:
            raise self._error("max_processes", f"must be at least {seats}, the seats of a table")
        return self._file.max_processes


def _games(bots: int, stages: Iterable[Stage]) -> int:
    return sum(stage.games(bots) for stage in stages)


def _clocks(table: ClocksTable) -> Clocks:
    bank_us, increment_us = (None, 0) if table.bank is None else parse_bank(table.bank)
    return Clocks(
        start_up_us=round(table.start_up * SECOND_US),
        game_start_us=round(table.game_start * SECOND_US),
        decision_us=round(table.decision * SECOND_US),
        bank_us=bank_us,
        increment_us=increment_us,
    )
