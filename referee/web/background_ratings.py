"""Rate the games of a league in a thread of its own, so that pages do not wait: 100,000 games take a minute."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Lock

from referee.ratings.checkpoint import rate_from_checkpoint
from referee.ratings.trueskill import Ratings
from referee.reports.selection import GameFilter, stored_checkpoint
from referee.result_columns import ResultColumns
from referee.store.league import League

_MANY = 2_000
"""More games take more than half a second to rate."""
_HEAD_START_S = 0.5
"""A long computation begins after this delay, so that the page that needs it is sent first."""
Computation = tuple[ResultColumns, Future[Ratings]]
"""Games, and the ratings after them."""


class NotReadyError(Exception):
    """The ratings are still being computed."""


class BackgroundRatings:
    """Computes the TrueSkill ratings of the selected games. Several threads may use it.

    The server cannot store a checkpoint, because it only reads the league. So the checkpoint of the last computation stays in
    memory, and after a change only the new games are rated.

    Args:
        league: the league, opened read-only.
        choice: selects the games.
    """

    def __init__(self, league: League, choice: GameFilter) -> None:
        self._league = league
        self._choice = choice
        self._lock = Lock()
        self._running: Computation | None = None
        """The last computation. It may be finished."""
        self._checkpoint: bytes | None = None

    def rate(self, games: ResultColumns, patience_s: float | None) -> Ratings:
        """Return the ratings after `games`.

        Args:
            games: the selected games, in schedule order.
            patience_s: how long to wait for the computation, in seconds; None to wait without a limit.

        Raises NotReadyError if the computation takes longer than that. It goes on, and a later call with the same `games` returns its result.
        With many games and no checkpoint there is no wait, unless `patience_s` is None.
        """
        if patience_s is not None and self._takes_long(games):
            patience_s = 0.0
        end_s = None if patience_s is None else time.monotonic() + patience_s
        while True:
            computed, computation = self._begin(games)
            left_s = None if end_s is None else max(0.0, end_s - time.monotonic())
            if not wait([computation], timeout=left_s).done:
                raise NotReadyError
            if computed is games:
                if computation.exception() is not None:
                    self._running = None  # so that the next call tries again
                return computation.result()

    def _begin(self, games: ResultColumns) -> Computation:
        """Return the running computation, even if it rates other games. If none runs, return the one for `games`, and begin it if it was not made."""
        with self._lock:
            running = self._running
            if running is None or (running[1].done() and running[0] is not games):
                executor = ThreadPoolExecutor(1)
                running = games, executor.submit(self._rate, games)
                executor.shutdown(wait=False)  # the thread ends with the computation
                self._running = running
            return running

    def _rate(self, games: ResultColumns) -> Ratings:
        if self._takes_long(games):
            time.sleep(_HEAD_START_S)
        ratings, newer = rate_from_checkpoint(
            self._last_checkpoint(), games, predecessors=self._choice.predecessors(self._league)
        )
        self._checkpoint = newer or self._checkpoint
        return ratings

    def _takes_long(self, games: ResultColumns) -> bool:
        return len(games) > _MANY and self._last_checkpoint() is None

    def _last_checkpoint(self) -> bytes | None:
        return self._checkpoint or stored_checkpoint(self._league, self._choice)
