"""Decide which games a worker plays next, and define the values that the driver sends to workers.

A lane plays its games in schedule order, one bundle at a time. The bundles are the same with any
number of workers, and in a resumed run. Therefore bots are also suspended in the same games.

`conduct` takes a `Bundle` from `Lanes` and turns the bundle into an `Assignment`. `workers` sends the assignment to a
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
from referee.sandbox import Isolation

MAX_LOSSES = 3
"""The run stops with an error when the worker of the same bundle was lost this many times."""


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
    suspended: frozenset[str]
    """The suspended bots (`name@version`). A suspended bot is not started, and forfeits the game."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The games of a bundle, as the driver sends them to a worker.

    `GamePlayer.play_assignment` decides how many of the games are played at the same time.
    """

    lane: int
    tasks: tuple[GameTask, ...]


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
    """The process id of the driver. The worker dies when the driver dies."""
    pondering: bool = False
    """Whether bots may ponder: compute as they like between the requests of a game."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Games of one lane that a worker gets together, and the bots that are suspended in this lane."""

    lane: int
    games: tuple[ScheduledGame, ...]
    suspended: frozenset[str]


class Lanes:
    """The state of each lane: missing games, whether a worker has a bundle of the lane, and forfeits in a row of each bot.

    Args:
        schedule: the games to play, in schedule order.
        stored: a mapping from the id of each stored game to the seats that forfeited the game.
        bounds: sorted indices in the schedule. A bundle never has games from both sides of a bound. `conduct`
            passes the first game of each part, and the first game after each look.
        games_in_flight: number of games in a full bundle.
        workers: number of workers W; worker w plays lane n if n mod W = w.
        suspend_after: a bot that forfeits this many games of a lane in a row is suspended in the lane; 0: never.
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
        """How often the worker of the current bundle of a lane was lost."""
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

    def take(self, worker: int) -> Bundle | None:
        """Return the bundle that worker number `worker` plays next; None if its lanes are all busy or finished.

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
        """Note that the worker of a bundle was lost. The lane plays the same bundle next.

        Raises RefereeError if the worker of the same bundle was lost `MAX_LOSSES` times.
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
