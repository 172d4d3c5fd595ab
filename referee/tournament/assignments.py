"""Decide which games a worker plays next, and define the values that the driver sends to workers.

A lane plays its bundles in schedule order. Inside a bundle, a game that must be played alone may be played after games
that follow it in the schedule. The bundles are the same with any number of workers, and in a resumed tournament. If no
process fails and no game is void, the portions of the bundles are the same too, so the same bots are suspended in the
same games. Otherwise the portions can change: a void game is played alone, and a bot whose process has failed plays one
game at a time in all lanes. A worker gets one or more bundles of a lane together: a `Stretch`.

`conduct` takes a `Stretch` from `Lanes` and turns it into an `Assignment`. `workers` sends the assignment to a
worker. This module does no I/O.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from referee.bots import BotSpec
from referee.bots.logs import LogSettings
from referee.clocks import Clocks
from referee.errors import RefereeError
from referee.match.play import GameSetup
from referee.records import GameRecord, ScheduledGame
from referee.sandbox import Isolation
from referee.store import HostFigures

MAX_LOSSES = 3
"""A run stops with an error after this many losses in a row in one lane. A loss means that the worker was lost while it played games
of the lane. The count starts again when a worker returns from a stretch of the lane, even if games of the stretch are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameTask:
    """A game to play, with everything that a worker needs for it."""

    setup: GameSetup
    bots: tuple[BotSpec | None, ...]
    """The bot of each seat, seat 0 first; None for the seat of a person."""
    opaque_id: str
    """The id of the game as the bots see it."""
    seeds: tuple[int, ...]
    """The random seed of each seat."""
    names: tuple[str, ...]
    """The names of the bots, which every bot gets; empty if the tournament does not show names."""
    index: int = 0
    """The index of the game in the schedule; 0 for a game outside of tournaments."""


@dataclass(slots=True)
class Forfeits:
    """Counts how many games of a lane each bot has forfeited in a row, and says which bots are suspended.

    "In a row" means in schedule order. The games of a bundle can be played in another order, and a resumed tournament does
    not know that order. So games may be noted in any order, with the same result.
    """

    suspend_after: int = 0
    """A bot that forfeits this many games in a row is suspended in the lane; 0: never."""
    newest_played: dict[str, int] = field(default_factory=dict)
    """For each bot (`name@version`): the index in the schedule of its newest game that it did not forfeit."""
    newest_forfeits: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """For each bot: the indices of the newest games that it forfeited, at most `suspend_after`. Older ones cannot matter."""

    def note(self, index: int, bots: Iterable[str], forfeited: Iterable[int]) -> None:
        """Note which seats forfeited a game.

        Args:
            index: the index of the game in the schedule.
            bots: the bots of the game (`name@version`), seat 0 first.
            forfeited: the seats that forfeited the game.
        """
        if not self.suspend_after:
            return
        seats = set(forfeited)
        for seat, bot in enumerate(bots):
            if seat in seats:
                indices = sorted((*self.newest_forfeits.get(bot, ()), index))
                self.newest_forfeits[bot] = tuple(indices[-self.suspend_after :])
            else:
                self.newest_played[bot] = max(index, self.newest_played.get(bot, index))

    def suspended(self) -> frozenset[str]:
        """Return the suspended bots. A suspended bot is not started, and forfeits its games."""
        return frozenset(
            bot
            for bot, indices in self.newest_forfeits.items()
            if len(indices) == self.suspend_after and indices[0] > self.newest_played.get(bot, -1)
        )

    def copy(self) -> Forfeits:
        """Return an independent copy."""
        return Forfeits(self.suspend_after, dict(self.newest_played), dict(self.newest_forfeits))


@dataclass(frozen=True, slots=True)
class Assignment:
    """Bundles of a lane, as the driver sends them to a worker. The worker plays the bundles one after the other, each in portions.

    `GamePlayer.play_portion` decides how many games of a bundle are played at the same time. The worker may return before all
    games are played.
    """

    lane: int
    bundles: tuple[tuple[GameTask, ...], ...]
    forfeits: Forfeits = field(default_factory=Forfeits)
    """The forfeits in the lane before these games. The worker goes on counting, because new forfeits can suspend a bot in later portions."""
    singles: frozenset[str] = frozenset()
    """The bots (`name@version`) that play one game at a time, because their process has failed in the tournament."""
    least_s: float = 0.0
    """After each portion, the worker returns if at least this many seconds have passed since the start of the assignment. With 0 it
    returns after one portion."""


@dataclass(frozen=True, slots=True)
class AssignmentResult:
    """What a worker returns when it has played games of an assignment."""

    records: list[GameRecord]
    """The records of the played games. Games of the assignment may be missing."""
    small_portion: int | None = None
    """The number of games of the first small portion; None if there was none. A portion is small if it lacks games of the bundle for
    one of two reasons: a bot of the portion can hold no more games, or more games would need more bots than the worker can have. It
    is not small if it lacks games only because a void game or the game of a single is played alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """What a worker process needs to know at its start."""

    cores: frozenset[int]
    """The CPU cores for the worker and its bots; empty if the worker is not bound to cores."""
    clocks: Clocks
    max_processes: int
    """Maximum number of bot processes. Before the worker starts one more, it ends the process that is idle longest."""
    isolation: Isolation
    folder: Path
    """The folder for sockets and scratch folders. Its path must be short, because a socket's path has a maximum length."""
    parent_pid: int
    """The process id of the driver, or of the Dask worker. The worker dies when this process dies."""
    pondering: bool = False
    """Whether bots may ponder: compute as they like between the requests of a game."""
    is_timed: bool = True
    """False if bots may take any time. Even then, they are told the time limits of the game."""
    logs: LogSettings | None = None
    """Where to write what the bots print; None for nowhere."""
    scale_clocks: bool = False
    """Whether to scale the time to think by the speed of the machine; see `Clocks.scale`."""


class WorkerGroup(Protocol):
    """The workers of a run, on this machine or on others. A lost worker is replaced under the same number."""

    @property
    def stretch_s(self) -> float:
        """The wanted sum of the durations of all games of a stretch, in seconds. With 0, a stretch has one bundle."""

    def __len__(self) -> int:
        """Return the number of workers."""

    async def submit(self, number: int, assignment: Assignment) -> AssignmentResult:
        """Let worker `number` play an assignment. See `Workers.submit` for the errors."""

    def list_hosts(self) -> Sequence[HostFigures]:
        """Return the figures of each host; empty without a cluster."""

    def drain(self) -> None:
        """Let each call of `submit` raise WorkerLostError if it still waits for a worker that can play.

        A worker still plays the assignments that it already has.
        """

    def kill(self) -> None:
        """Kill all workers at once."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bundles of one lane that a worker gets together, and the forfeits in the lane before them."""

    lane: int
    bundles: tuple[tuple[ScheduledGame, ...], ...]
    forfeits: Forfeits

    @property
    def games(self) -> tuple[ScheduledGame, ...]:
        """The games of all bundles, in schedule order."""
        return tuple(game for bundle in self.bundles for game in bundle)


class Lanes:
    """The state of each lane: missing games, whether a worker has a stretch of the lane, and forfeits in a row of each bot.

    Args:
        schedule: the games to play, in schedule order.
        stored: a mapping from the id of each stored game to the seats that forfeited the game.
        bounds: sorted indices in the schedule. A bundle never has games from both sides of a bound. `conduct`
            passes the first game of each part, and the first game after each look.
        games_in_flight: number of games in a full bundle.
        workers: number of workers W; worker w plays lane n if n mod W = w.
        suspend_after: a bot that forfeits this many games of a lane in a row is suspended in the lane; 0: never.
        singles: the bots whose process has failed before.
    """

    def __init__(
        self,
        schedule: Iterable[ScheduledGame],
        stored: Mapping[str, Iterable[int]],
        *,
        bounds: Sequence[int] = (),
        games_in_flight: int,
        workers: int,
        suspend_after: int,
        singles: Iterable[str] = (),
    ) -> None:
        self.singles = set(singles)
        """The bots (`name@version`) that play one game at a time, because their process has failed in the tournament."""
        self._workers = workers
        self._busy: set[int] = set()
        self._forfeits = defaultdict[int, Forfeits](lambda: Forfeits(suspend_after))
        """The forfeits in each lane."""
        self._losses: dict[int, int] = {}
        """For each lane, the number of losses in a row; see `MAX_LOSSES`."""
        self._pending: dict[int, deque[tuple[ScheduledGame, ...]]] = {}
        """For each lane, the bundles to play next. They have only missing games."""
        lanes: dict[int, list[list[ScheduledGame]]] = {}
        for game in schedule:
            bundles = lanes.setdefault(game.lane, [])
            if (
                not bundles
                or len(bundles[-1]) == games_in_flight
                or bisect_right(bounds, bundles[-1][0].index) != bisect_right(bounds, game.index)
            ):
                bundles.append([])
            bundles[-1].append(game)
            if game.game_id in stored:
                self.note_result(game, stored[game.game_id])
        for lane, bundles in lanes.items():
            missing = (
                tuple(game for game in bundle if game.game_id not in stored) for bundle in bundles
            )
            self._pending[lane] = deque(filter(None, missing))

    def take(self, worker: int, games: int = 1) -> Stretch | None:
        """Return the stretch that worker number `worker` plays next; None if its lanes are all busy or finished.

        If several lanes of the worker are free, the one whose next game is first in the schedule is taken.

        Args:
            worker: the number of the worker.
            games: bundles are added until the stretch has this many games, or until the lane has no more bundles.
        """
        free = [
            lane
            for lane, pending in self._pending.items()
            if pending and lane not in self._busy and lane % self._workers == worker
        ]
        if not free:
            return None
        lane = min(free, key=lambda candidate: self._pending[candidate][0][0].index)
        self._busy.add(lane)
        pending = self._pending[lane]
        bundles = [pending.popleft()]
        while pending and sum(map(len, bundles)) < games:
            bundles.append(pending.popleft())
        return Stretch(lane, tuple(bundles), self._forfeits[lane].copy())

    def release(self, stretch: Stretch, played: Container[str]) -> None:
        """Note that the worker has returned from a stretch. The lane next plays those games of the stretch that are still missing.

        `played` has the ids of the games that the worker has played.
        """
        self._busy.remove(stretch.lane)
        self._losses.pop(stretch.lane, None)
        rest = (
            tuple(game for game in bundle if game.game_id not in played)
            for bundle in stretch.bundles
        )
        self._pending[stretch.lane].extendleft(reversed(list(filter(None, rest))))

    def put_back(self, stretch: Stretch, error: Exception | None) -> None:
        """Note that the worker of a stretch was lost. The lane plays the same bundles next.

        Args:
            stretch: the stretch.
            error: says why the worker was lost; None if the stretch only waited, while the worker played another one.

        Raises RefereeError if this is loss number `MAX_LOSSES` in a row in the lane.
        """
        if error is not None:
            losses = self._losses[stretch.lane] = self._losses.get(stretch.lane, 0) + 1
            if losses >= MAX_LOSSES:
                first, last = stretch.games[0].game_id, stretch.games[-1].game_id
                games = first if first == last else f"games of a lane from {first} to {last}"
                raise RefereeError(
                    f"the worker was lost {losses} times in a row while it played {games};"
                    f" the last time: {error}"
                ) from error
        self._busy.remove(stretch.lane)
        self._pending[stretch.lane].extendleft(reversed(stretch.bundles))

    def note_result(self, game: ScheduledGame, forfeited: Iterable[int]) -> None:
        """Note which seats forfeited a game."""
        self._forfeits[game.lane].note(game.index, game.bots, forfeited)
