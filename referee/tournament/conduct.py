"""Plays the games of a schedule that are still missing: feeds the workers, keeps what comes back.

A tournament in a league: created, found again, played to its end however often it is interrupted.

Here the schedule meets the store.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from referee import deals
from referee.bots.manifest import BotSpec
from referee.clocks import Clocks
from referee.errors import RefereeError, UserError
from referee.match import GameSetup
from referee.records import BotId, GameRecord
from referee.roster import Roster
from referee.sandbox.folders import run_folder
from referee.sandbox.rungs import Isolation
from referee.schedule import ALGORITHMS, ScheduledGame, default_lanes
from referee.store import League, NewTournament
from referee.tournament.assignments import Assignment, Bundle, GameTask, Lanes, WorkerSettings
from referee.tournament.config import (
    BotEntry,
    Part,
    TournamentConfig,
    canonical_json,
    from_canonical_json,
    is_settled,
    looks_of,
    part_of,
    worker_count,
)
from referee.tournament.mapping import schedule_row, scheduled, stored_parts
from referee.tournament.workers import WorkerLostError, Workers

FEEDERS = 2
"""Assignments that a worker has at hand at once, so that it never waits for the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that settles a tournament's games."""

    parts: Sequence[Part]
    """With their seeds."""
    bots: Mapping[str, BotSpec]
    """By `name@version`."""
    clocks: Clocks
    max_strikes: int
    show_names: bool
    isolation: str

    def order(self, game: ScheduledGame, suspended: frozenset[str]) -> GameTask:
        """What a worker needs to play a game."""
        seed = part_of(self.parts, game.index).seed
        assert seed is not None  # noqa: S101 - a league has all seeds
        specs = tuple(self.bots[name] for name in game.bots)
        return GameTask(
            setup=GameSetup(
                game_id=game.game_id,
                ruleset=game.ruleset,
                seating=tuple(spec.bot for spec in specs),
                deck=deals.deck(seed, game.deal_id, game.ruleset),
                clocks=self.clocks,
                max_strikes=self.max_strikes,
                isolation=self.isolation,
            ),
            bots=specs,
            opaque_id=deals.opaque_id(seed, game.game_id),
            seeds=tuple(deals.bot_seed(seed, game.game_id, seat) for seat in range(len(specs))),
            names=tuple(spec.bot.name for spec in specs) if self.show_names else (),
            suspended=suspended,
        )


class Run:
    """One run of a tournament: from the games that are missing to none, or to the next Ctrl-C.

    Args:
        plan: what settles the games.
        lanes: the games to be played.
        workers: who plays them.
        keep: is given the games of every bundle as they are finished, and stores them, all or none.
    """

    def __init__(
        self,
        plan: Plan,
        lanes: Lanes,
        workers: Workers,
        *,
        keep: Callable[[Sequence[ScheduledGame], Sequence[GameRecord]], None],
    ) -> None:
        self._plan = plan
        self._lanes = lanes
        self._workers = workers
        self._keep = keep
        self._draining = False

    def drain(self) -> None:
        """Begin no further game; those in play are finished and kept."""
        self._draining = True

    async def play(self) -> None:
        """Play until nothing is missing, or until drained.

        Raises `VoidGame` when a game cannot be finished, RefereeError when a worker dies over and
        over, and what `keep` raises; what was finished before is kept.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(len(self._workers)):
                    for _ in range(FEEDERS):
                        group.create_task(self._feed(number))
        except ExceptionGroup as errors:
            known, bugs = errors.split(RefereeError)
            if known is None or bugs is not None:
                raise
            raise known.exceptions[0] from errors

    async def _feed(self, number: int) -> None:
        while not self._draining and (bundle := self._lanes.take(number)) is not None:
            try:
                records = await self._workers.play(number, self._assignment(bundle))
            except WorkerLostError:
                if not self._draining:
                    self._lanes.lost(bundle)
                continue
            self._keep(bundle.games, records)
            for game, record in zip(bundle.games, records, strict=True):
                self._lanes.played(game, record.result.forfeited)
            self._lanes.finished(bundle.lane)

    def _assignment(self, bundle: Bundle) -> Assignment:
        orders = tuple(self._plan.order(game, bundle.suspended) for game in bundle.games)
        return Assignment(bundle.lane, orders)


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
    stopped_after: int | None = None
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
    return Tournament(config, parts, schedule, versions, row.stopped_after)


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
