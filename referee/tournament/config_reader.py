"""Read a tournament file and check whether the values of its keys fit each other.

`load_tournament` reads a file and returns a `TournamentConfig`. `make_config` returns one for content without a file, for example from the
options of a command. `config_file` defines the keys with their types and ranges. An error message has one line for each wrong key or value,
`FILE: KEY: reason`. If the file cannot be read or is not TOML, the message is `FILE: reason`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from referee import toml_file
from referee.bots.manifest import Variant
from referee.clocks import SECOND_US, Clocks, parse_bank
from referee.ratings.stopping import StopCondition
from referee.sandbox import Limits
from referee.schedule import Stage
from referee.schedule.budget import Budget, Pace, Unit
from referee.schedule.extension import select_algorithm
from referee.toml_file import Mistakes
from referee.tournament.config import BotEntry, FaultPolicy, TournamentConfig
from referee.tournament.config_file import BotTable, ClocksTable, Format, TournamentFile
from referee.tournament.stage_reader import read_stages


def load_tournament(path: Path, pace: Pace | None = None) -> TournamentConfig:
    """Read a tournament file.

    Args:
        path: the path of the tournament file.
        pace: the duration of earlier games; needed only if the file has a budget of minutes.

    Raises UserError if the file cannot be read, or if a key or a value in it is wrong.
    """
    return make_config(path, toml_file.load(path, TournamentFile), pace)


def make_config(
    path: Path,
    file: TournamentFile,
    pace: Pace | None = None,
    bot_keys: tuple[str, ...] | None = None,
) -> TournamentConfig:
    """Return the configuration from the content of a tournament file.

    Args:
        path: the path of the tournament file, for messages. The folders of bots are relative to the folder of this file. If there
            is no file, the path is the name of a command, and the folders are relative to the current folder.
        file: the content.
        pace: as in `load_tournament`.
        bot_keys: what messages call each bot; see `TournamentConfig.bot_keys`.

    Raises UserError if the values do not fit each other, or if the folder of a bot does not exist. The error has a line for each mistake.
    """
    return _ConfigReader(path, file, pace, bot_keys).make_config()


class _ConfigReader:
    """Makes a configuration from one tournament file. After a mistake it goes on, so that one error reports several mistakes."""

    def __init__(
        self,
        path: Path,
        file: TournamentFile,
        pace: Pace | None,
        bot_keys: tuple[str, ...] | None,
    ) -> None:
        self._path = path
        self._file = file
        self._pace = pace
        self._bot_keys = bot_keys
        self._mistakes = Mistakes(path)

    def make_config(self) -> TournamentConfig:
        file = self._file
        bots = self._read_all_bots()
        budget = self._read_budget()
        stages = read_stages(file, self._mistakes, budget, self._pace)
        self._check_numbers(max((stage.seats for stage in stages), default=0))
        until = self._read_until(stages)
        self._mistakes.raise_all()
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
            until=until,
            seed=None if file.seed is None else bytes.fromhex(file.seed),
            bot_keys=self._bot_keys,
        )

    def _read_all_bots(self) -> tuple[BotEntry, ...]:
        earlier = len(self._mistakes)
        challengers = self._read_challengers()
        field = self._read_bots("bots", self._file.bots)
        # an entry with a mistake is left out, and then the numbers in the messages of this check would be wrong
        if len(self._mistakes) == earlier:
            self._check_no_challenger_in_field(challengers, field)
        return challengers + field

    def _read_challengers(self) -> tuple[BotEntry, ...]:
        texts, is_gauntlet = self._file.challengers, self._file.format is Format.GAUNTLET
        if texts is not None and is_gauntlet:
            return self._read_bots("challengers", texts)
        if texts is not None:
            reason = f'only allowed with format = "{Format.GAUNTLET.value}"'
            self._mistakes.add("challengers", reason)
        elif is_gauntlet:
            self._mistakes.add("challengers", "missing; a gauntlet needs at least one")
        return ()

    def _read_bots(self, key: str, tables: Sequence[BotTable]) -> tuple[BotEntry, ...]:
        keys = self._bot_keys or [f"{key}[{number}]" for number in range(len(tables))]
        entries = [self._read_bot(*each) for each in zip(keys, tables, strict=True)]
        return tuple(entry for entry in entries if entry is not None)

    def _read_bot(self, key: str, table: BotTable) -> BotEntry | None:
        """Return an entry; None if it has a mistake."""
        text, variant = table.path, None
        if table.name is not None:
            variant = Variant(table.name, table.args)
        elif table.args:
            reason = "missing; a bot with args needs a name of its own"
            self._mistakes.add(f"{key}.name", reason)
            return None
        if "/" not in text and not text.startswith("."):
            return BotEntry(text, None, variant)
        folder = self._path.parent / text
        if not toml_file.is_folder(folder):
            self._mistakes.add(key, f"{text!r}: {toml_file.explain_no_folder(folder)}")
            return None
        return BotEntry(text, folder.resolve(), variant)

    def _check_no_challenger_in_field(
        self, challengers: Sequence[BotEntry], field: Sequence[BotEntry]
    ) -> None:
        numbers = {(bot.folder or bot.text, bot.variant): each for each, bot in enumerate(field)}
        for number, bot in enumerate(challengers):
            field_number = numbers.get((bot.folder or bot.text, bot.variant))
            if field_number is not None:
                reason = f"is also in the field, as bots[{field_number}]"
                self._mistakes.add(f"challengers[{number}]", reason)

    def _read_budget(self) -> Budget | None:
        table = self._file.budget
        if table is None:
            return None
        [(key, amount)] = table.model_dump(exclude_none=True).items()
        return Budget(Unit(key), amount)

    def _read_until(self, stages: Sequence[Stage]) -> StopCondition | None:
        table = self._file.until
        if table is None:
            return None
        if any(stage.balanced for stage in stages):
            reason = "needs whole rounds, but the budget is less than one round of all tables"
            self._mistakes.add("until", reason)
        return StopCondition(confidence=table.confidence, margin=table.margin)

    def _check_numbers(self, seats: int) -> None:
        """Check `lanes`, `workers` and `max_processes`; `seats` is the number of seats of the largest table of bots."""
        lanes, workers, mistakes = self._file.lanes, self._file.workers, self._mistakes
        if lanes is not None and lanes < seats:
            mistakes.add("lanes", f"must be at least {seats}, the seats of a table")
        if lanes is not None and workers is not None and workers > lanes:
            mistakes.add("workers", f"must be at most {lanes}, the number of lanes")
        if self._file.max_processes < seats:
            mistakes.add("max_processes", f"must be at least {seats}, the seats of a table")


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
