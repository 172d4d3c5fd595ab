"""Read a tournament file and check whether the values of its keys fit each other.

`load_tournament` returns a `TournamentConfig`; so does `make_config`, for a file that exists only in memory. `config_file`
defines the keys with their types and ranges. The message of every error is one line, `FILE: KEY: reason`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from referee import toml_file
from referee.bots.manifest import Variant
from referee.clocks import SECOND_US, Clocks, parse_bank
from referee.errors import UserError
from referee.ratings.stopping import StopCondition
from referee.rules.ruleset import GHOST_OPTIONS, RULESETS, Ruleset
from referee.sandbox import Limits
from referee.schedule import Deals, Stage
from referee.schedule.budget import Budget, Pace, Unit, spend
from referee.schedule.extension import select_algorithm
from referee.tournament.config import BotEntry, FaultPolicy, TournamentConfig, worker_count
from referee.tournament.config_file import (
    MAX_GAMES,
    BotTable,
    ClocksTable,
    Format,
    StageTable,
    TournamentFile,
)

_SEATS_KEYS = {"seats", "tables"}
"""If a stage has one of these keys, both keys at the top of the file are ignored for this stage."""


def load_tournament(path: Path, pace: Pace | None = None) -> TournamentConfig:
    """Read a tournament file.

    Args:
        path: the path of the tournament file.
        pace: the duration of earlier games; needed only if the file has a budget of minutes.

    Raises UserError if the file cannot be read, or if a key or a value in it is wrong.
    """
    return make_config(path, toml_file.load(path, TournamentFile), pace)


def make_config(path: Path, file: TournamentFile, pace: Pace | None = None) -> TournamentConfig:
    """Return the configuration from the content of a tournament file.

    Args:
        path: the path of the tournament file, for messages. The folders of bots are relative to its folder.
        file: the content.
        pace: as in `load_tournament`.

    Raises UserError if the values do not fit each other.
    """
    return _ConfigReader(path, file, pace).make_config()


@dataclass(frozen=True, slots=True)
class _StageDraft:
    """A stage before the budget is spent."""

    matches_key: str
    """The key in the file that gives the number of matches, such as `stage[0].matches`, for messages."""
    matches: int | None
    """The number of matches in the file; None if the file does not give it."""
    stage: Stage
    """The stage. If `matches` is None, it has 0 matches until the budget is spent."""


class _ConfigReader:
    """Makes a configuration from one tournament file."""

    def __init__(self, path: Path, file: TournamentFile, pace: Pace | None) -> None:
        self._path = path
        self._file = file
        self._pace = pace

    def make_config(self) -> TournamentConfig:
        file = self._file
        challengers = self._read_challengers()
        field = self._read_bots("bots", file.bots)
        self._check_no_challenger_in_field(challengers, field)
        bots = challengers + field
        budget = self._read_budget()
        stages = self._make_stages(len(bots), len(challengers), budget)
        self._check_numbers(max(stage.seats for stage in stages))
        return TournamentConfig(
            file=self._path.resolve(),
            name=file.name,
            stages=stages,
            bots=bots,
            lanes=file.lanes,
            games_in_flight=None if file.games_in_flight == "auto" else file.games_in_flight,
            clocks=make_clocks(file.clocks),
            scale_clocks=file.clocks.scale,
            faults=FaultPolicy(file.faults.max_strikes, file.faults.suspend_after),
            limits=file.limits.to_limits(Limits(cpus=float(file.cores_per_game))),
            show_names=file.show_names,
            workers=file.workers,
            cores_per_game=file.cores_per_game,
            pondering=file.pondering,
            max_processes=file.max_processes,
            isolation=file.isolation,
            schedule=select_algorithm(stages),
            budget=budget,
            until=self._read_until(stages),
            seed=None if file.seed is None else bytes.fromhex(file.seed),
        )

    def _error(self, key: str, reason: str) -> UserError:
        return UserError(f"{self._path}: {key}: {reason}")

    def _read_challengers(self) -> tuple[BotEntry, ...]:
        texts, is_gauntlet = self._file.challengers, self._file.format is Format.GAUNTLET
        if texts is None:
            if is_gauntlet:
                raise self._error("challengers", "missing; a gauntlet needs at least one")
            return ()
        if not is_gauntlet:
            raise self._error(
                "challengers", f'only allowed with format = "{Format.GAUNTLET.value}"'
            )
        return self._read_bots("challengers", texts)

    def _read_bots(self, key: str, tables: Sequence[BotTable]) -> tuple[BotEntry, ...]:
        entries: list[BotEntry] = []
        mistakes: list[str] = []
        for number, table in enumerate(tables):
            try:
                entries.append(self._read_bot(f"{key}[{number}]", table))
            except UserError as error:
                mistakes += error.args
        if mistakes:
            raise UserError(*mistakes)
        return tuple(entries)

    def _read_bot(self, key: str, table: BotTable) -> BotEntry:
        text, variant = table.path, None
        if table.name is not None:
            variant = Variant(table.name, table.args)
        elif table.args:
            raise self._error(f"{key}.name", "missing; a bot with args needs a name of its own")
        if "/" not in text and not text.startswith("."):
            if variant is not None:
                reason = f"{text!r} is a bot of the league; only a folder can have another name"
                raise self._error(f"{key}.path", f"{reason}, and it has a slash, such as ./{text}")
            return BotEntry(text, None)
        folder = self._path.parent / text
        if not toml_file.is_folder(folder):
            raise self._error(key, f"{text!r}: no such folder")
        return BotEntry(text, folder.resolve(), variant)

    def _check_no_challenger_in_field(
        self, challengers: Sequence[BotEntry], field: Sequence[BotEntry]
    ) -> None:
        numbers = {(bot.folder or bot.text, bot.variant): each for each, bot in enumerate(field)}
        for number, bot in enumerate(challengers):
            field_number = numbers.get((bot.folder or bot.text, bot.variant))
            if field_number is not None:
                raise self._error(
                    f"challengers[{number}]", f"is also in the field, as bots[{field_number}]"
                )

    def _make_stages(self, bots: int, challengers: int, budget: Budget | None) -> tuple[Stage, ...]:
        drafts = [
            draft
            for prefix, table in self._list_stage_tables()
            for draft in self._draft_stages(prefix, table, bots, challengers)
        ]
        if budget is None:
            stages = self._apply_matches(drafts)
        else:
            stages = self._apply_budget(budget, drafts, bots)
        games = sum(stage.games(bots) for stage in stages)
        if games > MAX_GAMES:
            key, cause = (
                ("matches", games) if budget is None else ("budget", f"more than {MAX_GAMES}")
            )
            raise self._error(key, f"allows {cause} games; the limit is {MAX_GAMES}")
        return stages

    def _list_stage_tables(self) -> list[tuple[str, StageTable]]:
        """Return the tables that describe stages, each after the prefix of its keys in messages, such as `stage[0].`."""
        if self._file.stage is None:
            return [("", self._file)]
        return [
            (f"stage[{number}].", self._add_defaults(stage))
            for number, stage in enumerate(self._file.stage)
        ]

    def _add_defaults(self, stage: StageTable) -> StageTable:
        own = stage.model_dump(exclude_none=True)
        top = {key: getattr(self._file, key) for key in StageTable.model_fields}
        if own.keys() & _SEATS_KEYS:
            top = {key: value for key, value in top.items() if key not in _SEATS_KEYS}
        return StageTable(**(top | own))

    def _draft_stages(
        self, prefix: str, table: StageTable, bots: int, challengers: int
    ) -> list[_StageDraft]:
        """Return the stages of one table of the file: one for each table size."""
        ruleset = self._make_ruleset(prefix, table)
        drafts = []
        for key, seats in self._list_table_sizes(prefix, table).items():
            low, high = ruleset.min_players, ruleset.max_players
            if not low <= seats <= high:
                allowed = f"{low} to {high}" if low < high else f"{low}"
                raise self._error(key, f"{ruleset.name} has {allowed} players, not {seats}")
            self._check_enough_bots(bots, challengers, seats)
            stage = Stage(
                ruleset,
                seats,
                table.matches or 0,
                challengers=challengers,
                deals=table.deals or Deals.SAME,
            )
            drafts.append(_StageDraft(f"{prefix}matches", table.matches, stage))
        return drafts

    def _make_ruleset(self, prefix: str, table: StageTable) -> Ruleset:
        if table.ruleset is None:
            raise self._error(f"{prefix}ruleset", "missing")
        ruleset = RULESETS[table.ruleset]
        for option in GHOST_OPTIONS:
            if not ruleset.ghost and getattr(table, option) is not None:
                reason = f"{ruleset.name} has no ghost; only a duel has this option"
                raise self._error(f"{prefix}{option}", reason)
        return ruleset.with_options(
            end_on=table.end_on,
            max_turns=table.max_turns,
            ghost_start=table.ghost_start,
            ghost_snatch=table.ghost_snatch,
            ghost_overflow=table.ghost_overflow,
        )

    def _check_enough_bots(self, bots: int, challengers: int, seats: int) -> None:
        field, field_seats = bots - challengers, seats - (challengers > 0)
        if field < field_seats:
            words = "other seats" if challengers else "seats"
            raise self._error("bots", f"{field} do not fill the {field_seats} {words} of a table")

    def _list_table_sizes(self, prefix: str, table: StageTable) -> dict[str, int]:
        """Return the numbers of seats in a table of the file, each by its key, such as `tables[1]`."""
        if table.tables is None:
            if table.seats is None:
                raise self._error(f"{prefix}seats", "missing")
            return {f"{prefix}seats": table.seats}
        if table.seats is not None:
            raise self._error(f"{prefix}tables", "give either seats or tables, not both")
        return {f"{prefix}tables[{number}]": seats for number, seats in enumerate(table.tables)}

    def _apply_matches(self, drafts: Sequence[_StageDraft]) -> tuple[Stage, ...]:
        for draft in drafts:
            if draft.matches is None:
                raise self._error(draft.matches_key, "missing; give matches or a budget")
        return tuple(draft.stage for draft in drafts)

    def _read_budget(self) -> Budget | None:
        table = self._file.budget
        if table is None:
            return None
        [(key, amount)] = table.model_dump(exclude_none=True).items()
        return Budget(Unit(key), amount)

    def _apply_budget(
        self, budget: Budget, drafts: Sequence[_StageDraft], bots: int
    ) -> tuple[Stage, ...]:
        for draft in drafts:
            if draft.matches is not None:
                raise self._error(draft.matches_key, "give either matches or a budget, not both")
        workers = worker_count(
            1 if self._pace is None else self._pace.cores,
            workers=self._file.workers,
            cores_per_game=self._file.cores_per_game,
            lanes=self._file.lanes,
        )
        try:
            return spend(
                budget,
                [draft.stage for draft in drafts],
                bots,
                workers=workers,
                pace=self._pace,
                most_games=MAX_GAMES,
            )
        except ValueError as error:
            raise self._error("budget", str(error)) from error

    def _read_until(self, stages: Sequence[Stage]) -> StopCondition | None:
        table = self._file.until
        if table is None:
            return None
        if any(stage.balanced for stage in stages):
            reason = "needs whole rounds, but the budget is less than one round of all tables"
            raise self._error("until", reason)
        return StopCondition(confidence=table.confidence, margin=table.margin)

    def _check_numbers(self, seats: int) -> None:
        """Check `lanes`, `workers` and `max_processes`; `seats` is the number of seats of the largest table of bots."""
        lanes, workers = self._file.lanes, self._file.workers
        if lanes is not None and lanes < seats:
            raise self._error("lanes", f"must be at least {seats}, the seats of a table")
        if lanes is not None and workers is not None and workers > lanes:
            raise self._error("workers", f"must be at most {lanes}, the number of lanes")
        if self._file.max_processes < seats:
            raise self._error("max_processes", f"must be at least {seats}, the seats of a table")


def make_clocks(table: ClocksTable) -> Clocks:
    """Return the clocks of a table `[clocks]`."""
    bank_us, increment_us = (None, 0) if table.bank is None else parse_bank(table.bank)
    return Clocks(
        start_up_us=round(table.start_up * SECOND_US),
        game_start_us=round(table.game_start * SECOND_US),
        decision_us=round(table.decision * SECOND_US),
        bank_us=bank_us,
        increment_us=increment_us,
    )
