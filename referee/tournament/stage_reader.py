"""Read the stages of a tournament file: their rulesets, table sizes and numbers of matches.

If a `[[stage]]` does not set a key, the value at the top of the file applies. A message about such a value names the key at
the top, because the user wrote it there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from referee.errors import count_text
from referee.rules.ruleset import GHOST_OPTIONS, RULESETS, Ruleset
from referee.schedule import Deals, Stage, count_games
from referee.schedule.budget import Budget, Pace, spend
from referee.toml_file import Mistakes
from referee.tournament.config import worker_count
from referee.tournament.config_file import MAX_GAMES, Format, StageTable, TournamentFile

_SEATS_KEYS = {"seats", "tables"}
"""If a stage has one of these keys, both keys at the top of the file are ignored for this stage."""


def read_stages(
    file: TournamentFile, mistakes: Mistakes, budget: Budget | None, pace: Pace | None
) -> tuple[Stage, ...]:
    """Return the stages of a tournament file. If the file has mistakes, stages can be missing, or lack matches or options.

    Args:
        file: the content of the file.
        mistakes: gets the mistakes that are found.
        budget: the size of the tournament; None if the file gives matches.
        pace: the duration of earlier games; needed only for a budget of minutes.
    """
    return _StageReader(file, mistakes, budget).read(pace)


class _Source(NamedTuple):
    """The keys that describe stages: one `[[stage]]` of the file, or the top of the file."""

    table: StageTable
    """The keys with their values. If a `[[stage]]` does not set a key, the value comes from the top of the file; `_SEATS_KEYS` are
    an exception."""
    title: str
    """The name of the `[[stage]]`, such as `stage[0]`; empty if the keys are at the top of the file."""
    inherited: frozenset[str]
    """The keys whose values a `[[stage]]` takes from the top of the file, because it does not set them."""

    def key(self, name: str) -> str:
        """Return the key that the user wrote or should write: `stage[0].seats`, or `seats` if it is at the top of the file."""
        return name if name in self.inherited or not self.title else f"{self.title}.{name}"

    def name_ruleset(self, ruleset: Ruleset, key: str) -> str:
        """Return the name of the ruleset for a message about a key. If a `[[stage]]` inherits the key, add the name of the stage."""
        return f"{ruleset.name} ({self.title})" if key in self.inherited else ruleset.name


class _StageReader:
    """Reads the stages of one tournament file, and notes all mistakes."""

    def __init__(self, file: TournamentFile, mistakes: Mistakes, budget: Budget | None) -> None:
        self._file = file
        self._mistakes = mistakes
        self._budget = budget
        self._field = len(file.bots)
        """Number of bots without the challengers."""
        is_gauntlet = file.format is Format.GAUNTLET
        self._challengers = len(file.challengers or ()) if is_gauntlet else 0

    def read(self, pace: Pace | None) -> tuple[Stage, ...]:
        earlier = len(self._mistakes)
        by_source = [(source, tuple(self._read(source))) for source in self._list_sources()]
        stages = tuple(stage for _, each in by_source for stage in each)
        if len(self._mistakes) > earlier:
            return stages
        if self._budget is not None:
            stages = self._spend(self._budget, stages, pace)
            self._check_games(stages, "budget", f"more than {MAX_GAMES}")
        else:
            largest, _ = max(by_source, key=lambda each: self._count_games(each[1]))
            self._check_games(stages, largest.key("matches"), str(self._count_games(stages)))
        return stages

    def _list_sources(self) -> list[_Source]:
        if self._file.stage is None:
            return [_Source(self._file, "", frozenset())]
        return [
            self._add_defaults(f"stage[{number}]", stage)
            for number, stage in enumerate(self._file.stage)
        ]

    def _add_defaults(self, title: str, stage: StageTable) -> _Source:
        own = stage.model_dump(exclude_none=True)
        ignored_at_top = own.keys() | (_SEATS_KEYS if own.keys() & _SEATS_KEYS else set())
        top = {
            key: value
            for key in StageTable.model_fields
            if key not in ignored_at_top and (value := getattr(self._file, key)) is not None
        }
        return _Source(StageTable(**(top | own)), title, frozenset(top))

    def _read(self, source: _Source) -> Iterator[Stage]:
        """Yield one stage for each valid table size of a source, and note the mistakes in the source."""
        table = source.table
        ruleset = self._read_ruleset(source)
        sizes = self._read_table_sizes(source)
        self._check_matches(source)
        if ruleset is None:
            return
        for key, seats in sizes.items():
            if self._check_seats(key, ruleset, seats, source):
                yield Stage(
                    ruleset,
                    seats,
                    table.matches or 0,
                    challengers=self._challengers,
                    deals=table.deals or Deals.SAME,
                )

    def _read_ruleset(self, source: _Source) -> Ruleset | None:
        """Return the ruleset of a stage with its options; None if the stage has no ruleset.

        If the ruleset has no ghost, but an option of the ghost is given, return the ruleset without any of the given options.
        """
        table = source.table
        if table.ruleset is None:
            self._mistakes.add(source.key("ruleset"), "missing")
            return None
        ruleset = RULESETS[table.ruleset]
        given = [option for option in GHOST_OPTIONS if getattr(table, option) is not None]
        if given and not ruleset.ghost:
            for option in given:
                name = source.name_ruleset(ruleset, option)
                reason = f"{name} has no ghost; only a duel has this option"
                self._mistakes.add(source.key(option), reason)
            return ruleset
        return ruleset.with_options(
            end_on=table.end_on,
            max_turns=table.max_turns,
            ghost_start=table.ghost_start,
            ghost_snatch=table.ghost_snatch,
            ghost_overflow=table.ghost_overflow,
        )

    def _read_table_sizes(self, source: _Source) -> dict[str, int]:
        """Return the table sizes of a source. The key of each is where the user wrote it, such as `seats` or `tables[1]`."""
        table, key = source.table, source.key("tables")
        if table.tables is None and table.seats is None:
            self._mistakes.add(source.key("seats"), "missing")
        elif table.tables is None and table.seats is not None:
            return {source.key("seats"): table.seats}
        elif table.tables is not None and table.seats is None:
            return {f"{key}[{number}]": seats for number, seats in enumerate(table.tables)}
        else:
            self._mistakes.add(key, "give either seats or tables, not both")
        return {}

    def _check_matches(self, source: _Source) -> None:
        """Check that either the stage has matches or the tournament has a budget, but not both."""
        if self._budget is None and source.table.matches is None:
            self._mistakes.add(source.key("matches"), "missing; give matches or a budget")
        if self._budget is not None and source.table.matches is not None:
            reason = "give either matches or a budget, not both"
            self._mistakes.add(source.key("matches"), reason)

    def _check_seats(self, key: str, ruleset: Ruleset, seats: int, source: _Source) -> bool:
        """Return whether the ruleset allows this number of seats, and there are enough bots for them."""
        low, high = ruleset.min_players, ruleset.max_players
        if not low <= seats <= high:
            allowed = f"{low} to {high}" if low < high else f"{low}"
            name = source.name_ruleset(ruleset, key.partition("[")[0])
            self._mistakes.add(key, f"{name} has {allowed} players, not {seats}")
            return False
        # in a gauntlet, one seat of each table belongs to a challenger
        field_seats = seats - (self._challengers > 0)
        if self._field < field_seats:
            free = count_text(field_seats, "other seat" if self._challengers else "seat")
            reason = f"{self._field} cannot fill the {free} of a table"
            self._mistakes.add("bots", reason)
            return False
        return True

    def _spend(
        self, budget: Budget, stages: Sequence[Stage], pace: Pace | None
    ) -> tuple[Stage, ...]:
        """Return the stages with as many matches as the budget allows."""
        workers = worker_count(
            1 if pace is None else pace.cores,
            workers=self._file.workers,
            cores_per_game=self._file.cores_per_game,
            lanes=self._file.lanes,
        )
        try:
            return spend(
                budget,
                stages,
                self._challengers + self._field,
                workers=workers,
                pace=pace,
                most_games=MAX_GAMES,
            )
        except ValueError as error:
            self._mistakes.add("budget", str(error))
            return ()

    def _count_games(self, stages: Sequence[Stage]) -> int:
        return count_games(stages, self._challengers + self._field)

    def _check_games(self, stages: Sequence[Stage], key: str, number: str) -> None:
        """Note a mistake of `key` if the stages have too many games; `number` says how many."""
        if self._count_games(stages) > MAX_GAMES:
            self._mistakes.add(key, f"allows {number} games; the limit is {MAX_GAMES}")
