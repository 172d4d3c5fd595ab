"""Decide which games a worker plays next, and define the values that the driver sends to workers.

A lane plays its games in schedule order, one bundle at a time. The bundles do not depend on the number of workers or
on interruptions. So neither of these changes which games the bot processes of a lane have seen, or when a bot is
suspended in a lane.

`conduct` takes a `Bundle` from `Lanes` and makes an `Assignment` of the bundle. `workers` sends the assignment to a
worker. This module does no I/O.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from referee.bots.manifest import BotSpec
from referee.clocks import Clocks
from referee.errors import RefereeError
from referee.match.play import GameSetup
from referee.records import ScheduledGame
from referee.sandbox.rungs import Isolation

MAX_LOSSES = 3
"""The run stops when one bundle has lost its worker this many times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameTask:
    """A game to play, with everything that a worker needs for it."""

    setup: GameSetup
    bots: tuple[BotSpec, ...]
    """The bot of each seat, seat 0 first."""
    opaque_id: str
    """The id of the game as the bots see it."""
    seeds: tuple[int, ...]
    """The random seed of each seat."""
    names: tuple[str, ...]
    """The names of the bots, shown to all of them; empty unless the tournament shows names."""
    suspended: frozenset[str]
    """Suspended bots (`name@version`). These bots are not started, and forfeit the game."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The games of a bundle, as the driver sends them to a worker.

    The worker plays several of the games at the same time if every bot in them can play several games at once.
    """

    lane: int
    tasks: tuple[GameTask, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """What a worker process needs to know at its start."""

    cores: frozenset[int]
    """The CPU cores for the worker and its bots; empty: the worker is not bound to cores."""
    clocks: Clocks
    max_processes: int
    """Number of bot processes that the worker keeps. To start one more, it ends the process that is idle longest."""
    isolation: Isolation
    """The isolation of the bots, chosen by the driver."""
    folder: Path
    """A folder for the sockets and scratch folders of this worker. Its path must be short, as socket paths are limited."""
    parent_pid: int
    """The process id of the driver. The worker dies when the driver dies."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Games of one lane to send to a worker together, and the bots that are suspended in this lane."""

    lane: int
    games: tuple[ScheduledGame, ...]
    suspended: frozenset[str]


class Lanes:
    """Knows for each lane the missing games, whether a worker has a bundle now, and how often each bot forfeited in a row.

    Args:
        schedule: the games to play, in schedule order.
        stored: for each game that is stored already, by its id, the seats that forfeited the game.
        bounds: sorted indices in the schedule. A bundle never has games from both sides of a bound. If the first game
            of an extension is a bound, the bundles do not depend on the time when the tournament was extended.
        games_in_flight: number of consecutive games of a lane in a bundle.
        workers: number of workers W; worker w plays lane n if n mod W = w.
        suspend_after: number of forfeits in a row, within a lane, after which a bot is suspended in this lane; 0: never.
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
    ) -> None:
        self._workers = workers
        self._suspend_after = suspend_after
        self._busy: set[int] = set()
        self._forfeits_in_a_row: dict[tuple[int, str], int] = {}
        """For each lane and bot: the number of forfeits since the last game in the lane that the bot did not forfeit."""
        self._losses: dict[int, int] = {}
        """How often the current bundle of a lane has lost its worker."""
        self._pending: dict[int, deque[tuple[ScheduledGame, ...]]] = {}
        """The bundles of each lane without the games that are stored."""
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

    def take(self, worker: int) -> Bundle | None:
        """Return the bundle that worker number `worker` plays next; None if it can start no bundle now.

        If several lanes of the worker are free, the bundle that is first in the schedule is taken.
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
        return Bundle(lane, self._pending[lane].popleft(), self._find_suspended(lane))

    def release(self, lane: int) -> None:
        """Note that the bundle of a lane is finished. The lane can start its next bundle."""
        self._busy.remove(lane)
        self._losses.pop(lane, None)

    def put_back(self, bundle: Bundle) -> None:
        """Note that the worker of a bundle was lost. Its lane will play the same bundle next.

        Raises RefereeError if the same bundle has lost its worker `MAX_LOSSES` times.
        """
        losses = self._losses[bundle.lane] = self._losses.get(bundle.lane, 0) + 1
        if losses >= MAX_LOSSES:
            raise RefereeError(
                f"the worker died {losses} times while it played {bundle.games[0].game_id}"
            )
        self._busy.remove(bundle.lane)
        self._pending[bundle.lane].appendleft(bundle.games)

    def note_result(self, game: ScheduledGame, forfeited: Iterable[int]) -> None:
        """Note which seats forfeited a game. Call this for all games of a lane in schedule order."""
        forfeits = set(forfeited)
        for seat, bot in enumerate(game.bots):
            key = game.lane, bot
            streak = self._forfeits_in_a_row.get(key, 0) + 1 if seat in forfeits else 0
            self._forfeits_in_a_row[key] = streak

    def _find_suspended(self, lane: int) -> frozenset[str]:
        if not self._suspend_after:
            return frozenset()
        return frozenset(
            bot
            for (bot_lane, bot), streak in self._forfeits_in_a_row.items()
            if bot_lane == lane and streak >= self._suspend_after
        )
