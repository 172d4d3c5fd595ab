"""A tournament file read: what its keys mean together.

The keys, their types and ranges are in `file_model`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from referee import toml_file
from referee.clocks import SECOND_US, Clocks, parse_bank
from referee.errors import UserError
from referee.ratings.stopping import Until
from referee.rules.ruleset import RULESETS
from referee.sandbox.limits import Limits
from referee.schedule import Stage, algorithm
from referee.schedule.budget import Budget, Pace, Unit, settle
from referee.tournament.config import BotEntry, FaultPolicy, TournamentConfig, worker_count
from referee.tournament.config_file import (
    MAX_GAMES,
    ClocksTable,
    Format,
    StageTable,
    TournamentFile,
)


def load_tournament(path: Path, pace: Pace | None = None) -> TournamentConfig:
    """Read a tournament file.

    Paths in it count from its own folder. `pace` is asked where the file has a budget of minutes, which
    is wrong without any. Raises UserError, one line: `FILE: KEY: reason`.
    """
    return _Reading(path, toml_file.load(path, TournamentFile), pace).config()


_SIZES = {"seats", "tables"}
"""Keys of a stage of which each replaces what the top of the file says by either."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What a stage, or one of its table sizes, says."""

    key: str
    """Says the matches."""
    matches: int | None
    stage: Stage


class _Reading:
    """One tournament file on its way to a configuration."""

    def __init__(self, path: Path, file: TournamentFile, pace: Pace | None) -> None:
        self._path = path
        self._file = file
        self._pace = pace

    def config(self) -> TournamentConfig:
        file = self._file
        challengers = self._challengers()
        field = self._entries("bots", file.bots)
        self._check_apart(challengers, field)
        bots = challengers + field
        stages = self._stages(len(bots), len(challengers))
        return TournamentConfig(
            file=self._path.resolve(),
            name=file.name,
            stages=stages,
            bots=bots,
            lanes=self._lanes(stages),
            games_in_flight=file.games_in_flight,
            clocks=_clocks(file.clocks),
            faults=FaultPolicy(file.faults.max_strikes, file.faults.suspend_after),
            limits=file.limits.to_limits(Limits(cpus=float(file.cores_per_game))),
            show_names=file.show_names,
            workers=self._workers(),
            cores_per_game=file.cores_per_game,
            max_processes=self._max_processes(stages),
            isolation=self._file.isolation,
            schedule=algorithm(stages),
            budget=self._budget(),
            until=self._until(stages),
            seed=None if file.seed is None else bytes.fromhex(file.seed),
        )

    def _error(self, key: str, reason: str) -> UserError:
        return UserError(f"{self._path}: {key}: {reason}")

    def _challengers(self) -> tuple[BotEntry, ...]:
        texts, is_gauntlet = self._file.challengers, self._file.format is Format.GAUNTLET
        if texts is None:
            if is_gauntlet:
                raise self._error("challengers", "missing: they are who runs the gauntlet")
            return ()
        if not is_gauntlet:
            raise self._error("challengers", f'only format = "{Format.GAUNTLET.value}" has them')
        return self._entries("challengers", texts)

    def _entries(self, key: str, texts: Sequence[str]) -> tuple[BotEntry, ...]:
        return tuple(self._bot(f"{key}[{number}]", text) for number, text in enumerate(texts))

    def _bot(self, key: str, text: str) -> BotEntry:
        if "/" not in text and not text.startswith("."):
            return BotEntry(text, None)
        folder = self._path.parent / text
        if not toml_file.is_folder(folder):
            raise self._error(key, f"{text!r}: no such folder")
        return BotEntry(text, folder.resolve())

    def _check_apart(self, challengers: Sequence[BotEntry], field: Sequence[BotEntry]) -> None:
        places = {entry.folder or entry.text: number for number, entry in enumerate(field)}
        for number, entry in enumerate(challengers):
            if (place := entry.folder or entry.text) in places:
                raise self._error(
                    f"challengers[{number}]", f"it is in the field too, bots[{places[place]}]"
                )

    def _stages(self, bots: int, challengers: int) -> tuple[Stage, ...]:
        parts = [
            part
            for prefix, table in self._tables()
            for part in self._parts(prefix, table, bots, challengers)
        ]
        budget = self._budget()
        stages = self._by_matches(parts) if budget is None else self._by_budget(budget, parts, bots)
        games = _games(bots, stages)
        if games > MAX_GAMES:
            if budget is not None:
                raise self._error("budget", f"{budget} buy more than {MAX_GAMES} games, the limit")
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

    def _parts(self, prefix: str, table: StageTable, bots: int, challengers: int) -> list[_Part]:
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
            self._check_enough(bots, challengers, seats)
            stage = Stage(ruleset, seats, table.matches or 0, challengers=challengers)
            parts.append(_Part(f"{prefix}matches", table.matches, stage))
        return parts

    def _check_enough(self, bots: int, challengers: int, seats: int) -> None:
        if bots - challengers >= seats - (challengers > 0):
            return
        others = f"{seats - 1} other" if challengers else f"{seats}"
        raise self._error("bots", f"{bots - challengers} do not fill the {others} seats of a table")

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
            stages.append(part.stage)
        return tuple(stages)

    def _budget(self) -> Budget | None:
        table = self._file.budget
        if table is None:
            return None
        [(key, amount)] = table.model_dump(exclude_none=True).items()
        return Budget(Unit(key), amount)

    def _by_budget(self, budget: Budget, parts: Sequence[_Part], bots: int) -> tuple[Stage, ...]:
        for part in parts:
            if part.matches is not None:
                raise self._error(part.key, "there is a budget too; one of them must go")
        workers = worker_count(
            1 if self._pace is None else self._pace.cores,
            workers=self._file.workers,
            cores_per_game=self._file.cores_per_game,
            lanes=self._file.lanes,
        )
        try:
            return settle(
                budget,
                [part.stage for part in parts],
                bots,
                workers=workers,
                pace=self._pace,
                most_games=MAX_GAMES,
            )
        except ValueError as error:
            raise self._error("budget", str(error)) from error

    def _until(self, stages: Iterable[Stage]) -> Until | None:
        table = self._file.until
        if table is None:
            return None
        if any(stage.balanced for stage in stages):
            reason = (
                "it stops after whole rounds, and the budget is less than one round of all tables"
            )
            raise self._error("until", reason)
        return Until(confidence=table.confidence, margin=table.margin)

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
