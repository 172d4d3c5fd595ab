"""Compute ratings and rating histories in threads of their own, so that pages do not wait for them.

The computation takes up to a minute for 100,000 games or for 200 bots.

The thread that writes a report needs the complete figures, and computes them itself, not in another thread, for two reasons. It
reads the league inside `League.one_moment`, which has no effect in another thread. And after Ctrl-C, Python would wait until the other
thread ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from threading import Lock, Thread
from typing import NamedTuple, TypeVar

from referee.ratings.analysis import Analysis
from referee.ratings.checkpoint import rate_from_checkpoint
from referee.ratings.trueskill import Histories, RatingHistories, Ratings
from referee.reports.selection import GameFilter, stored_checkpoint
from referee.result_columns import ResultColumns
from referee.store.league import League
from referee.web.cache import NotReadyError, end_of_delay_s, note_outdated_input

_MANY = 2_000
"""Rating more than this number of games takes more than half a second."""
_HEAD_START_S = 0.5
"""A long computation begins after this delay, so that the page that needs it is sent first."""
_TAIL = 1_000
"""For the histories, this number of games at the end of the schedule order is rated again after each change. Games can be stored in
another order, so a new game may have its place before some of the games that are already rated."""
SOON_S = 1.0
"""While ratings or histories are computed, a page that needs them may be made again after this time."""
Result = TypeVar("Result")


class RatedGames(NamedTuple):
    """The result of a computation."""

    games: ResultColumns
    analysed: dict[str, Analysis]
    """The analyses of `games`, after `Analysis.prepare`."""
    ratings: Ratings
    """The ratings after `games`."""


Computation = tuple[ResultColumns, Future[RatedGames]]
"""Games, and the computation that rates them."""


def _carry_out(
    computation: Future[Result], compute: Callable[[], Result], patience_s: float | None
) -> None:
    """Give `computation` the result of `compute`, or its error.

    If `patience_s` is None, call `compute` in this thread. Otherwise, begin a thread that calls it, and do not wait.
    """
    try:
        if patience_s is None:
            computation.set_result(compute())
        else:
            Thread(target=_carry_out, args=(computation, compute, None)).start()
    except BaseException as error:  # noqa: BLE001 - `computation.result()` raises it again
        computation.set_exception(error)


class BackgroundRatings:
    """Computes the TrueSkill ratings of the selected games, and the intervals of their analyses. Several threads may use it.

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
        self._latest: Computation | None = None
        """The newest computation. It may be finished."""
        self._finished: RatedGames | None = None
        """The result of the last computation that has finished."""
        self._checkpoint: bytes | None = None
        self._again_at_s = 0.0
        """The monotonic time from which a new computation may begin. It does not apply to a caller that waits without a limit."""

    def rate(
        self, games: ResultColumns, analysed: dict[str, Analysis], patience_s: float | None
    ) -> RatedGames:
        """Compute and return the ratings after `games`, together with the intervals of `analysed`.

        If this computation is not finished after `patience_s`, or may not begin yet (see `DELAY_FACTOR`), return the result of the last
        computation that has finished, perhaps for other games. If there are many games and no checkpoint, do not wait at all,
        unless `patience_s` is None. A computation that has begun goes on. When it is finished, a call with the same object `games`
        returns its result.

        Args:
            games: the selected games, in schedule order.
            analysed: `analyses(games)`.
            patience_s: how long to wait for the computation, in seconds; None to wait without a limit, and to compute in this thread.

        Raises NotReadyError if no computation has finished.
        """
        if patience_s is not None and self._takes_long(games):
            patience_s = 0.0
        end_s = None if patience_s is None else time.monotonic() + patience_s
        while (latest := self._begin(games, analysed, patience_s)) is not None:
            computed, computation = latest
            left_s = None if end_s is None else max(0.0, end_s - time.monotonic())
            if not wait([computation], timeout=left_s).done:
                break
            if computed is games:
                if computation.exception() is not None:
                    self._forget(computation)
                return computation.result()
        if self._finished is None:
            raise NotReadyError
        note_outdated_input(max(time.monotonic() + SOON_S, self._again_at_s))
        return self._finished

    def _begin(
        self, games: ResultColumns, analysed: dict[str, Analysis], patience_s: float | None
    ) -> Computation | None:
        """Return the newest computation if it still runs, even for other games, or if it rates `games`. Otherwise start one.

        Return None if a new computation may not start yet (see `DELAY_FACTOR`).
        """
        with self._lock:
            latest = self._latest
            if latest is not None and (latest[0] is games or not latest[1].done()):
                return latest
            if patience_s is not None and time.monotonic() < self._again_at_s:
                return None
            latest = self._latest = games, Future()
        _carry_out(latest[1], partial(self._rate, games, analysed, patience_s), patience_s)
        return latest

    def _forget(self, failed: Future[RatedGames]) -> None:
        """Forget a failed computation, so that the next call tries again."""
        with self._lock:
            if self._latest is not None and self._latest[1] is failed:
                self._latest = None

    def _rate(
        self, games: ResultColumns, analysed: dict[str, Analysis], patience_s: float | None
    ) -> RatedGames:
        if patience_s is not None and self._takes_long(games):
            time.sleep(_HEAD_START_S)
        began_s = time.monotonic()
        ratings, newer = rate_from_checkpoint(
            self._last_checkpoint(), games, predecessors=self._choice.predecessors(self._league)
        )
        self._checkpoint = newer or self._checkpoint
        for analysis in analysed.values():
            analysis.prepare()
        self._again_at_s = end_of_delay_s(began_s, time.monotonic())
        self._finished = RatedGames(games, analysed, ratings)
        return self._finished

    def _takes_long(self, games: ResultColumns) -> bool:
        return len(games) > _MANY and self._last_checkpoint() is None

    def _last_checkpoint(self) -> bytes | None:
        return self._checkpoint or stored_checkpoint(self._league, self._choice)


class HistoryKeeper:
    """Keeps the rating histories of the selected games, and continues them when games were added. Several threads may use it.

    Args:
        league: the league, opened read-only.
        choice: selects the games.
    """

    def __init__(self, league: League, choice: GameFilter) -> None:
        self._league = league
        self._choice = choice
        self._lock = Lock()
        self._computation: Future[None] | None = None
        self._histories: Histories | None = None
        self._mark: int | None = None
        """The change mark of the league before the computation of `_histories`."""
        self._again_at_s = 0.0
        """The monotonic time from which a new computation may begin."""
        self._base = RatingHistories()
        """The histories after the games in `_base_games`."""
        self._base_games: list[str] = []
        self.share = 0.0
        """How far the newest computation is, from 0 to 1. Only the games that it rates count, not those in the base from which it starts."""

    def get(self, patience_s: float | None) -> Histories | None:
        """Return the newest histories; None if there are none yet.

        They may be outdated, either because a new computation takes longer than `patience_s`, or because it may not begin yet:
        it begins only when a delay after the end of the last computation is over (see `DELAY_FACTOR`).

        Args:
            patience_s: how long to wait for a computation, in seconds; None to wait without a limit, and to compute in this thread.
        """
        mark = self._league.change_mark()
        with self._lock:
            running = self._computation is not None and not self._computation.done()
            is_due = self._mark != mark and time.monotonic() >= self._again_at_s
            begins = not running and (self._histories is None or is_due)
            if begins:
                self.share = 0.0
                self._computation = Future()
            computation = self._computation
        if computation is not None:
            if begins:
                _carry_out(computation, partial(self._compute, mark), patience_s)
            wait([computation], timeout=patience_s)
            if computation.done():
                computation.result()  # raises the error of the computation
        if self._mark != mark:
            note_outdated_input(max(time.monotonic() + SOON_S, self._again_at_s))
        return self._histories

    def _compute(self, mark: int) -> None:
        began_s = time.monotonic()
        games = self._choice.games(self._league)
        predecessors = self._choice.predecessors(self._league)
        ids = [game.game_id for game in games]
        is_continued = ids[: len(self._base_games)] == self._base_games
        base = self._base if is_continued else RatingHistories()
        begin = len(self._base_games) if is_continued else 0
        end = max(begin, len(games) - _TAIL)
        histories = base.copy(predecessors=predecessors)
        for number, game in enumerate(games[begin:], begin):
            if number == end:
                self._base, self._base_games = histories.copy(predecessors=predecessors), ids[:end]
            histories.add(game)
            self.share = (number + 1 - begin) / (len(games) - begin)
        self._histories, self._mark = histories.histories(), mark
        self._again_at_s = end_of_delay_s(began_s, time.monotonic())
