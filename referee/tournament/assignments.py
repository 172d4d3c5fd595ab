"""What goes between the driver of a tournament and its workers: plain values that can be pickled.

Which games are played next, by which worker: the driver's bookkeeping, pure.

A lane plays its games in schedule order, a bundle at a time. Which games make a bundle follows from
the schedule alone, so what a lane's processes have met, and when a bot is suspended in it, depends
neither on how many workers there are nor on where a run was interrupted.
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
from referee.match import GameSetup
from referee.sandbox.rungs import Isolation
from referee.schedule import ScheduledGame


@dataclass(frozen=True, slots=True, kw_only=True)
class GameTask:
    """A game to be played."""

    setup: GameSetup
    bots: tuple[BotSpec, ...]
    """Seat 0 first."""
    opaque_id: str
    """The game's id as the bots see it."""
    seeds: tuple[int, ...]
    """For each seat's own random numbers."""
    names: tuple[str, ...]
    """Shown to the bots; empty unless the tournament shows names."""
    suspended: frozenset[str]
    """Names of bots that are not started any more."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Games of one lane, to be played by the worker that has it.

    Several are in flight together where every bot of theirs can hold several.
    """

    lane: int
    orders: tuple[GameTask, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """What a worker process is told at its start."""

    cores: frozenset[int]
    """The CPU cores it and its bots are pinned to; empty for none."""
    clocks: Clocks
    max_processes: int
    """How many bot processes it keeps alive; the least recently used idle one is closed."""
    isolation: Isolation
    """What bots run under, as it was settled before."""
    folder: Path
    """Its own, where sockets and scratch folders go; short, since socket paths are limited."""
    parent_pid: int
    """The driver, without which the worker must not live."""


MAX_LOSSES = 3
"""How often an assignment may lose its worker before the run stops."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Games of one lane to be played together, and who is suspended in it."""

    lane: int
    games: tuple[ScheduledGame, ...]
    suspended: frozenset[str]


class Lanes:
    """All lanes of a run.

    Args:
        schedule: all games of the tournament.
        stored: those that are played, by id: the seats that forfeited.
        bounds: indices of games before which no bundle goes on, such as those with which its parts
            begin: so it is no matter when a tournament was extended.
        games_in_flight: so many games of a lane that follow each other make a bundle.
        workers: how many workers there are; worker w has the lanes l with l mod workers = w.
        suspend_after: forfeits in a row, within a lane, after which a bot is not started there any
            more; 0 is never.
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
        self._streaks: dict[tuple[int, str], int] = {}
        self._losses: dict[int, int] = {}
        self._pending: dict[int, deque[tuple[ScheduledGame, ...]]] = {}
        """Bundles, what was played taken out."""
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
                self.played(game, stored[game.game_id])
        for lane, bundles in lanes.items():
            missing = (
                tuple(game for game in bundle if game.game_id not in stored) for bundle in bundles
            )
            self._pending[lane] = deque(filter(None, missing))

    def take(self, worker: int) -> Bundle | None:
        """The next games for a worker, the earliest in the schedule; None when it has none now."""
        free = [
            lane
            for lane, pending in self._pending.items()
            if pending and lane not in self._busy and lane % self._workers == worker
        ]
        if not free:
            return None
        lane = min(free, key=lambda candidate: self._pending[candidate][0][0].index)
        self._busy.add(lane)
        return Bundle(lane, self._pending[lane].popleft(), self._suspended(lane))

    def finished(self, lane: int) -> None:
        """A lane's games are played; it may have more."""
        self._busy.remove(lane)
        self._losses.pop(lane, None)

    def lost(self, bundle: Bundle) -> None:
        """A bundle's worker died: its games come first again.

        Raises RefereeError when that happened to the same games too often.
        """
        losses = self._losses[bundle.lane] = self._losses.get(bundle.lane, 0) + 1
        if losses >= MAX_LOSSES:
            raise RefereeError(
                f"the worker died {losses} times while it played {bundle.games[0].game_id}"
            )
        self._busy.remove(bundle.lane)
        self._pending[bundle.lane].appendleft(bundle.games)

    def played(self, game: ScheduledGame, forfeited: Iterable[int]) -> None:
        """Note who forfeited a game; call it in schedule order within a lane."""
        losers = set(forfeited)
        for seat, bot in enumerate(game.bots):
            key = game.lane, bot
            self._streaks[key] = self._streaks.get(key, 0) + 1 if seat in losers else 0

    def suspended(self) -> frozenset[str]:
        """Bots that are suspended in some lane."""
        return frozenset().union(*map(self._suspended, {lane for lane, _ in self._streaks}))

    def _suspended(self, lane: int) -> frozenset[str]:
        if not self._suspend_after:
            return frozenset()
        return frozenset(
            bot
            for (where, bot), streak in self._streaks.items()
            if where == lane and streak >= self._suspend_after
        )
