"""Conduct a tournament: send its missing games to the workers, and store the records that they return.

`Conductor` plays the missing games of one tournament. A `Feeder` sends the games before the next look to the workers.
At each look the `Conductor` stores what the `Course` says: that the tournament stops early, or who plays next.
`create` creates tournaments, `workers` starts the worker processes.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace

from referee import deals
from referee.bots import BotSpec
from referee.errors import PROCESS_CAUSES, RefereeError
from referee.match.play import GameSetup
from referee.records import GameRecord, ScheduledGame
from referee.roster.roster import Roster
from referee.sandbox import Isolation
from referee.store import HostFigures, StoredHost
from referee.store.league import League
from referee.tournament.assignments import Assignment, GameTask, Lanes, WorkerGroup
from referee.tournament.config import MAX_IN_FLIGHT, find_part
from referee.tournament.course import Course, Look
from referee.tournament.create import Tournament, find_tournament
from referee.tournament.ladder import make_course
from referee.tournament.workers import WorkerLostError

STRETCHES_PER_WORKER = 2
"""The largest number of stretches that a worker has at the same time, each from a different lane. It plays one while the
other waits. So it can begin the next stretch at once, while the driver stores the games of the last one."""
MAX_STRETCH_GAMES = 1000
"""A stretch with this many games gets no further bundle. The games of a stretch are lost together if the worker dies."""
_NOTE_S = 2.0
"""The figures of the hosts of a cluster are stored once in this many seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What all games of a tournament have in common."""

    tournament: Tournament
    bots: Mapping[str, BotSpec]
    """The bots by `name@version`."""
    isolation: str
    """The isolation of the bots, as `Isolation.summary` describes it."""

    def make_task(self, game: ScheduledGame) -> GameTask:
        """Return the task of a game."""
        config = self.tournament.config
        seed = find_part(self.tournament.parts, game.index).seed
        assert seed is not None  # noqa: S101 - a league has all seeds
        ruleset = config.stages[game.stage].ruleset
        specs = tuple(self.bots[name] for name in game.bots)
        return GameTask(
            setup=GameSetup(
                game_id=game.game_id,
                ruleset=ruleset,
                seating=tuple(spec.bot for spec in specs),
                deck=deals.deck(seed, game.deal_id, ruleset),
                clocks=config.clocks,
                max_strikes=config.faults.max_strikes,
                isolation=self.isolation,
            ),
            bots=specs,
            opaque_id=deals.opaque_id(seed, game.game_id),
            seeds=tuple(deals.bot_seed(seed, game.game_id, seat) for seat in range(len(specs))),
            names=tuple(spec.bot.name for spec in specs) if config.show_names else (),
            index=game.index,
        )


class Feeder:
    """Gives stretches of games to the workers until no game is missing or `drain` is called.

    Args:
        plan: makes a task of each scheduled game.
        lanes: the games to play.
        workers: the workers that play them.
        store_games: stores the games that a worker returned, all of them or none.
        on_small_portion: called with `AssignmentResult.small_portion` after each stretch for which it is not None.
    """

    def __init__(
        self,
        plan: Plan,
        lanes: Lanes,
        workers: WorkerGroup,
        *,
        store_games: Callable[[Sequence[ScheduledGame], Sequence[GameRecord]], None],
        on_small_portion: Callable[[int], None],
    ) -> None:
        self._plan = plan
        self._lanes = lanes
        self._workers = workers
        self._store_games = store_games
        self._on_small_portion = on_small_portion
        self._draining = False
        self._played, self._played_us = 0, 0

    def drain(self) -> None:
        """Send no further stretch. A worker still plays at least one portion of each stretch that it has, and these games are stored."""
        self._draining = True
        self._workers.drain()

    async def feed_worker(self, number: int) -> None:
        """Send one stretch after the other to worker `number`. After each stretch, store its played games.

        If the worker is lost before `drain`, a new worker gets the bundles of the stretch again. After `drain` no worker gets a stretch.
        Raises RefereeError as `Lanes.put_back` does. Raises all errors of `store_games`, and all errors of `WorkerGroup.submit` except
        WorkerLostError.
        """
        while (
            not self._draining and (stretch := self._lanes.take(number, self._games())) is not None
        ):
            try:
                tasks = (tuple(map(self._plan.make_task, bundle)) for bundle in stretch.bundles)
                assignment = Assignment(
                    stretch.lane,
                    tuple(tasks),
                    stretch.forfeits,
                    frozenset(self._lanes.singles),
                    self._workers.stretch_s,
                )
                result = await self._workers.submit(number, assignment)
            except WorkerLostError as error:
                if not self._draining:
                    self._lanes.put_back(stretch, None if error.was_waiting else error)
                continue
            records = result.records
            scheduled = {game.game_id: game for game in stretch.games}
            played = [scheduled[record.game_id] for record in records]
            self._store_games(played, records)
            for game, record in zip(played, records, strict=True):
                self._lanes.note_result(game, record.forfeited)
                self._lanes.singles |= record.failed_processes
                self._played += 1
                self._played_us += record.duration_us
            self._lanes.release(stretch, {game.game_id for game in played})
            if result.small_portion is not None:
                self._on_small_portion(result.small_portion)

    def _games(self) -> int:
        """Return the number of games with which a stretch is full, so that it gets no further bundle.

        Before the first result this is 1, so a stretch has one bundle.
        """
        if not self._played_us:
            return 1
        mean_s = self._played_us / self._played / 1e6
        return min(MAX_STRETCH_GAMES, math.ceil(self._workers.stretch_s / mean_s))


# The states of a tournament:
#
#     created ──► playing ──────── all games are stored ────────► finished
#                 │  │ ▲                                             ▲
#                 │  ▼ │ games are left to play                       │
#                 │ looking ─── none is left, or the time is over ───┘
#                 │
#                 ▼ drain, kill or an error
#                draining ──► interrupted ──► playing, when it is resumed
#
# - looking: all games before a look are stored, and no later game has started. Exception: a resumed run takes all looks again,
#   even if games after a look are stored. Only a ladder and a tournament with `until` have looks. With `until`, games are left after
#   a look only if a stage has an open pair and rounds left. A ladder ends at the first look after its time is over.
# - draining: after `drain`, each stretch that a worker has is still played for at least one portion; see `Feeder.drain`. After `kill` or
#   an error, the games in play are lost, and a resumed run plays them again.
#
# The league stores the games, and whether the tournament is finished. It does not store whether the tournament is
# playing, looking, draining or interrupted.


class Conductor:
    """Plays the missing games of a tournament.

    Args:
        league: where the tournament is stored; the caller holds the lock of the league.
        tournament: the tournament to play.
        roster: gives the `BotSpec` of each bot.
        isolation: the isolation of the bots.
        workers: a context that provides the workers, for example `local_workers`. It is entered once.
        on_game_stored: called for each stored game. The games that a worker returns together are all stored before the first of these calls.
        say: called with a sentence if fewer games are played at the same time than the tournament file says.
        now_s: returns the time in seconds, to measure the minutes of a ladder.

    Raises UserError if the league's copy of a bot is gone.
    """

    def __init__(
        self,
        league: League,
        tournament: Tournament,
        roster: Roster,
        isolation: Isolation,
        workers: AbstractAsyncContextManager[WorkerGroup],
        *,
        on_game_stored: Callable[[ScheduledGame, GameRecord], None],
        say: Callable[[str], None],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._league = league
        self._tournament = tournament
        self._isolation = isolation
        self._on_game_stored = on_game_stored
        self._say = say
        self._has_said_portion = False
        self._now_s = now_s
        self._open_workers = workers
        specs = {text: roster.spec(bot) for text, bot in tournament.bots.items()}
        self._bots = {
            text: replace(spec, limits=spec.limits.at_most(tournament.config.limits))
            for text, spec in specs.items()
        }
        self._bounds = {part.first for part in tournament.parts}
        """Indices in the schedule: of the first game of each part, and of the first game after each look so far."""
        self._draining = False
        self._end_s = math.inf
        """A ladder stops at its first look at or after this time, in the seconds of `now_s`."""
        self._feeder: Feeder | None = None
        self._workers: WorkerGroup | None = None

    async def play_missing_games(self) -> bool:
        """Play until no game is missing or `drain` is called; return True if the tournament is finished.

        Raises VoidGame if a game is void again and again, and StoreError if a game cannot be stored. Raises RefereeError if workers
        are lost `MAX_LOSSES` times in a row in a lane, or if the stored games do not follow from the results. Also raises the other
        errors of `Feeder.feed_worker`. Games that were stored before the error stay stored.
        """
        async with self._open_workers as workers, self._noting_hosts():
            self._workers = workers
            course = make_course(self._tournament.config) if self._tournament.may_stop else None
            if (ladder := self._tournament.config.ladder) is not None:
                self._end_s = self._now_s() + ladder.minutes * 60
            while True:
                look = None if course is None else course.next_look
                games = len(self._tournament.schedule) if look is None else look.games
                if self._count_stored() < games:
                    self._feeder = self._make_feeder(games, workers)
                    with _raise_first_error():
                        async with asyncio.TaskGroup() as group:
                            for number in list(range(len(workers))) * STRETCHES_PER_WORKER:
                                group.create_task(self._feeder.feed_worker(number))
                if self._count_stored() < games:  # drained
                    return False
                if course is None or look is None:
                    return True
                if self._draining:
                    return False
                self._bounds.add(look.games)
                await self._take_look(course, look)

    def list_hosts(self) -> Sequence[HostFigures]:
        """Return the figures of each host of a cluster; empty without a cluster."""
        return () if self._workers is None else self._workers.list_hosts()

    def drain(self) -> None:
        """Send no further stretch, and take no further look. See `Feeder.drain`."""
        self._draining = True
        if self._feeder is not None:
            self._feeder.drain()

    def kill(self) -> None:
        """Stop at once: kill all workers and their bots. Games that are not stored yet are lost."""
        self.drain()
        if self._workers is not None:
            self._workers.kill()

    def _make_feeder(self, games: int, workers: WorkerGroup) -> Feeder:
        """Return a feeder for the missing games among the first `games` games of the schedule."""
        config = self._tournament.config
        lanes = Lanes(
            self._tournament.schedule[:games],
            self._league.forfeits(self._tournament.name),
            bounds=sorted(self._bounds),
            games_in_flight=config.games_in_flight or MAX_IN_FLIGHT,
            workers=len(workers),
            suspend_after=config.faults.suspend_after,
            singles=self._find_singles(),
        )
        plan = Plan(tournament=self._tournament, bots=self._bots, isolation=self._isolation.summary)
        feeder = Feeder(
            plan,
            lanes,
            workers,
            store_games=self._store_games,
            on_small_portion=self._say_portion,
        )
        if self._draining:
            feeder.drain()
        return feeder

    def _say_portion(self, games: int) -> None:
        wanted = self._tournament.config.games_in_flight
        if wanted is not None and not self._has_said_portion:
            self._has_said_portion = True
            self._say(
                f"games_in_flight = {wanted}: only {games} at the same time are possible, because a bot"
                " holds no more, or because the games together have too many bots for a worker."
            )

    def _find_singles(self) -> Iterable[str]:
        """Return the bots whose process has failed in the tournament."""
        counts = self._league.fault_counts(tournament=self._tournament.name)
        return {each.bot for each in counts if each.cause in PROCESS_CAUSES}

    def _store_games(self, games: Sequence[ScheduledGame], records: Sequence[GameRecord]) -> None:
        self._league.add_games(records)
        for game, record in zip(games, records, strict=True):
            self._on_game_stored(game, record)

    @asynccontextmanager
    async def _noting_hosts(self) -> AsyncIterator[None]:
        """Store the figures of the hosts of a cluster regularly and at the end, for `tournament status`."""
        began_at_us, began_s = time.time_ns() // 1000, time.monotonic()

        def note() -> None:
            # the wall clock may jump, and then the games per second would be wrong
            now_us = began_at_us + round((time.monotonic() - began_s) * 1e6)
            hosts = [StoredHost(host, began_at_us, now_us) for host in self.list_hosts()]
            # the run goes on if the hosts cannot be stored; if the games cannot be stored either, `_store_games` raises the error
            with suppress(RefereeError):
                if hosts:
                    self._league.note_hosts(self._tournament.name, hosts)

        async def note_regularly() -> None:
            while True:
                await asyncio.sleep(_NOTE_S)
                note()

        noting = asyncio.create_task(note_regularly())
        try:
            yield
        finally:
            noting.cancel()
            note()

    async def _take_look(self, course: Course, look: Look) -> None:
        """Take the next look of the course, and store its outcome: that the tournament stops, or who plays next.

        A resumed run takes all looks again, because a look also depends on the earlier looks. If games after the look have results, an
        earlier run has stored the outcome. Then this method only checks the stored schedule.
        """
        name = self._tournament.name
        results = self._league.columns(tournament=name)
        await asyncio.to_thread(course.take_look, results)
        if len(results) > look.games:
            self._check_course(course)
            return
        if look.games and self._now_s() >= self._end_s:
            course.stop()
        planned, chosen = self._tournament.schedule[look.games :], course.games[look.games :]
        if course.stopped_after is not None:
            self._league.stop_early(name, rounds=look.rounds, games=look.games)
        elif chosen != planned:
            self._league.replace_games(name, planned, chosen)
        self._tournament = find_tournament(self._league, name)

    def _check_course(self, course: Course) -> None:
        """Raise RefereeError if the stored schedule differs from the course in a game before the next look.

        If no look follows, all games are compared.
        """
        following = course.next_look
        games = len(course.games) if following is None else following.games
        if course.games[:games] != self._tournament.schedule[:games]:
            name = self._tournament.name
            raise RefereeError(
                f"{self._league.where}: tournament {name}: its games do not follow from its results;"
                f" to find the first such game: referee verify {name}"
            )

    def _count_stored(self) -> int:
        return self._league.tournament(self._tournament.name).stored


@contextmanager
def _raise_first_error() -> Iterator[None]:
    """Raise the first error of an exception group if all errors of the group are RefereeError or OSError.

    Any other error is a bug in the referee. If the group has one, the whole group is raised, for the traceback.
    """
    try:
        yield
    except ExceptionGroup as errors:
        known, bugs = errors.split((RefereeError, OSError))
        if known is None or bugs is not None:
            raise
        raise known.exceptions[0] from errors
