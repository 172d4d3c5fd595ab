"""A tournament in a league: created, found again, played to its end however often it is interrupted.

Here the schedule meets the store.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from referee import deals
from referee.bots.isolation import Isolation
from referee.bots.manifest import BotSpec
from referee.bots.run_folder import run_folder
from referee.errors import RefereeError, UserError
from referee.records import BotId, GameRecord
from referee.roster import Roster
from referee.schedule import ALGORITHMS, ScheduledGame, default_lanes
from referee.store import League, NewTournament
from referee.tournament.config import (
    BotEntry,
    TournamentConfig,
    canonical_json,
    from_canonical_json,
    worker_count,
)
from referee.tournament.lanes import Lanes
from referee.tournament.mapping import schedule_row, scheduled, stored_parts
from referee.tournament.orders import WorkerSettings
from referee.tournament.parts import Part
from referee.tournament.run import Plan, Run
from referee.tournament.settling import is_settled, looks_of
from referee.tournament.workers import Workers

Kept = Callable[[ScheduledGame, GameRecord], None]
"""Is told of every game once it is stored."""


@dataclass(frozen=True, slots=True)
class Tournament:
    """A tournament of a league."""

    config: TournamentConfig
    parts: tuple[Part, ...]
    """With their seeds."""
    schedule: tuple[ScheduledGame, ...]
    seats: dict[str, BotId]
    """The bots by what the schedule calls them, `name@version`, in its order."""
    settled_after: int | None = None
    """It stopped after so many rounds, when its table was settled; None: it did not."""

    @property
    def name(self) -> str:
        """Its name in the league."""
        return self.config.name

    @property
    def may_stop(self) -> bool:
        """Whether it may be finished before all of its schedule is played."""
        return self.config.until is not None and not self.parts[0].finished


def create(
    league: League, config: TournamentConfig, bots: Sequence[BotSpec], *, seed: bytes, now_us: int
) -> Tournament:
    """Settle a tournament and store it, with its whole schedule, before its first game.

    A name that the league already has gets a number: `demo`, `demo-2`… The league must know the bots.
    """
    name = _free_name(config.name, set(league.tournament_names()))
    seats = [stage.seats for stage in config.stages]
    lanes = config.lanes or default_lanes(seats, len(core_sets(config)))
    versions = {str(spec.bot): spec.bot for spec in bots}
    entries = tuple(BotEntry(text, None) for text in versions)
    settled = replace(config, name=name, lanes=lanes, bots=entries)
    schedule = ALGORITHMS[settled.schedule](name, list(versions), settled.stages, lanes=lanes)
    commitment = deals.commitment(seed)
    league.add_tournament(
        NewTournament(name, now_us, canonical_json(settled), seed, commitment),
        [schedule_row(game, versions) for game in schedule],
    )
    part = Part(0, len(schedule), None, commitment, seed, finished=False)
    return Tournament(settled, (part,), schedule, versions)


def find(league: League, name: str) -> Tournament:
    """A tournament of the league.

    Raises NotFoundError when there is none of that name, UserError when a newer version made it, and
    RefereeError when what is stored of it cannot be what `create` has stored.
    """
    row = league.tournament(name)
    try:
        config = from_canonical_json(row.config)
        rows = league.schedule(name)
        played = {str(bot): bot for game in rows for bot in game.bots}
        versions = {entry.text: played[entry.text] for entry in config.bots}
        schedule = tuple(scheduled(game, config.stages) for game in rows)
        parts = stored_parts(row, league.extensions(name), schedule)
    except (ValueError, LookupError) as error:
        raise RefereeError(
            f"{league.where}: tournament {name} is damaged: its configuration and its schedule do"
            " not fit"
        ) from error
    except UserError as error:
        raise UserError(f"{league.where}: tournament {name}: {error}") from error
    return Tournament(config, parts, schedule, versions, row.settled_after)


class Conductor:
    """Plays what is missing of a tournament.

    Args:
        league: where it is stored; the caller holds its lock.
        tournament: what to play.
        roster: knows how its bots are started.
        isolation: what they run under.
        on_game: is told of every game once it is stored.
        on_lost: is told which worker died, and of what; a new one takes its place.

    Raises UserError when the league's copy of a bot is gone.
    """

    def __init__(
        self,
        league: League,
        tournament: Tournament,
        roster: Roster,
        isolation: Isolation,
        *,
        on_game: Kept,
        on_lost: Callable[[str], None],
    ) -> None:
        self._league = league
        self._tournament = tournament
        self._isolation = isolation
        self._on_game = on_game
        self._on_lost = on_lost
        specs = {text: roster.spec(bot) for text, bot in tournament.seats.items()}
        self._bots = {
            text: replace(spec, limits=spec.limits.at_most(tournament.config.limits))
            for text, spec in specs.items()
        }
        self._draining = False
        self._run: Run | None = None
        self._workers: Workers | None = None

    async def play(self) -> bool:
        """Play until nothing is missing or `drain` is called; returns whether it is finished.

        A tournament with `until` stops at the looks, and is finished where one finds it settled.

        Raises `VoidGame` and RefereeError as `Run.play` does.
        """
        per_worker = core_sets(self._tournament.config)
        with run_folder() as folder:
            settings = [
                self._settings(cores, folder / str(number))
                for number, cores in enumerate(per_worker)
            ]
            async with aclosing(Workers(settings, on_lost=self._on_lost)) as self._workers:
                return await self._play_between_looks(self._workers)

    async def _play_between_looks(self, workers: Workers) -> bool:
        tournament = self._tournament
        began_with = len(self._league.stored(tournament.name))
        looks = looks_of(tournament.config)[:-1] if tournament.may_stop else ()
        for look in looks:
            if look.games < began_with:
                continue  # an earlier run has looked
            if not await self._play_first(look.games, workers):
                return False
            results = self._league.results(tournament=tournament.name)
            if await asyncio.to_thread(is_settled, tournament.config, results):
                self._league.settle(tournament.name, rounds=look.rounds, games=look.games)
                return True
        return await self._play_first(len(tournament.schedule), workers)

    async def _play_first(self, games: int, workers: Workers) -> bool:
        """Play what is missing of the first so many games; returns whether none of them is, then."""
        config, name = self._tournament.config, self._tournament.name
        stored = self._league.stored(name)
        if len(stored) < games and not self._draining:
            parts = {part.first for part in self._tournament.parts}
            lanes = Lanes(
                self._tournament.schedule[:games],
                stored,
                bounds=sorted(parts | {look.games for look in looks_of(config)}),
                games_in_flight=config.games_in_flight,
                workers=len(workers),
                suspend_after=config.faults.suspend_after,
            )
            self._run = Run(self._plan(), lanes, workers, keep=self._keep)
            await self._run.play()
            stored = self._league.stored(name)
        return len(stored) == games

    def drain(self) -> None:
        """Begin no further game."""
        self._draining = True
        if self._run is not None:
            self._run.drain()

    def kill(self) -> None:
        """Stop at once: end all workers and with them their bots. What was stored stays."""
        self.drain()
        if self._workers is not None:
            self._workers.kill()

    def _keep(self, games: Sequence[ScheduledGame], records: Sequence[GameRecord]) -> None:
        self._league.add_games(records)
        for game, record in zip(games, records, strict=True):
            self._on_game(game, record)

    def _plan(self) -> Plan:
        config = self._tournament.config
        return Plan(
            parts=self._tournament.parts,
            bots=self._bots,
            clocks=config.clocks,
            max_strikes=config.faults.max_strikes,
            show_names=config.show_names,
            isolation=self._isolation.words,
        )

    def _settings(self, cores: frozenset[int], folder: Path) -> WorkerSettings:
        folder.mkdir()
        return WorkerSettings(
            cores=cores,
            clocks=self._tournament.config.clocks,
            max_processes=self._tournament.config.max_processes,
            isolation=self._isolation,
            folder=folder,
            parent_pid=os.getpid(),
        )


def core_sets(config: TournamentConfig) -> list[frozenset[int]]:
    """The CPU cores of each worker: as many workers as fit, but no more than there are lanes."""
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


def _free_name(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    return next(each for number in count(2) if (each := f"{name}-{number}") not in taken)
