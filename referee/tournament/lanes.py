"""Which game is played next, by which worker: the driver's bookkeeping, pure.

A lane plays its games in schedule order, one assignment at a time, so what a lane's processes have
met, and when a bot is suspended in it, does not depend on how many workers there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from referee.errors import RefereeError
from referee.schedule import ScheduledGame

MAX_BUNDLE = 16
"""Games of one assignment at most: so many are played again when a worker dies."""
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
        games: those still to be played, in schedule order.
        workers: how many workers there are; worker w has the lanes l with l mod workers = w.
        suspend_after: forfeits in a row, within a lane, after which a bot is not started there any
            more; 0 is never.
    """

    def __init__(self, games: Sequence[ScheduledGame], *, workers: int, suspend_after: int) -> None:
        self._pending: dict[int, deque[ScheduledGame]] = {}
        for game in games:
            self._pending.setdefault(game.lane, deque()).append(game)
        self._workers = workers
        self._suspend_after = suspend_after
        self._busy: set[int] = set()
        self._streaks: dict[tuple[int, str], int] = {}
        self._capacities: dict[tuple[int, str], int] = {}
        """By lane and bot: what a lane has not met itself it does not know, so that how its games are
        put together does not depend on how fast others are."""
        self._losses: dict[int, int] = {}

    def take(self, worker: int) -> Bundle | None:
        """The next games for a worker, the earliest in the schedule; None when it has none now."""
        free = [
            lane
            for lane, pending in self._pending.items()
            if pending and lane not in self._busy and lane % self._workers == worker
        ]
        if not free:
            return None
        lane = min(free, key=lambda candidate: self._pending[candidate][0].index)
        self._busy.add(lane)
        return Bundle(lane, self._bundle(lane), self._suspended(lane))

    def finished(self, lane: int, capacities: Iterable[tuple[str, int]]) -> None:
        """A lane's games are played; it may have more."""
        self._busy.remove(lane)
        self._losses.pop(lane, None)
        self._capacities.update({(lane, bot): games for bot, games in capacities})

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
        self._pending[bundle.lane].extendleft(reversed(bundle.games))

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

    def _bundle(self, lane: int) -> tuple[ScheduledGame, ...]:
        """As many games as every bot of theirs can hold at once."""
        pending = self._pending[lane]
        games: list[ScheduledGame] = []
        size = MAX_BUNDLE
        while pending:
            size = min(size, *(self._capacities.get((lane, bot), 1) for bot in pending[0].bots))
            if len(games) >= size:
                break
            games.append(pending.popleft())
        return tuple(games)
