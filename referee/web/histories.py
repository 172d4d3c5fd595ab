"""Compute the rating histories of a league in a thread of its own, so that requests do not wait: 100,000 games take a minute."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Lock

from referee.ratings.trueskill import Histories, RatingHistories
from referee.reports.selection import GameFilter
from referee.store.league import League
from referee.web.cache import DELAY_FACTOR, MAX_DELAY_S, note_outdated_input

_TAIL = 1_000
"""Number of games at the end that are rated again after each change. Games can be stored in another order than that of the
schedule, so a new game may come before some of them."""
SOON_S = 1.0
"""While ratings or histories are computed, a page that needs them may be made again after this time."""


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
        self._base = RatingHistories()
        """The histories after the games in `_base_games`."""
        self._base_games: list[str] = []
        self.share = 0.0
        """The share of the games that the running computation has rated."""

    def get(self, patience_s: float | None) -> Histories | None:
        """Return the newest histories; None if there are none yet.

        They are outdated if the computation takes longer than `patience_s`, or if the delay after the last one is not over.

        Args:
            patience_s: how long to wait for a computation, in seconds; None to wait without a limit.
        """
        mark = self._league.change_mark()
        with self._lock:
            running = self._computation is not None and not self._computation.done()
            is_due = self._mark != mark and time.monotonic() >= self._again_at_s
            if not running and (self._histories is None or is_due):
                self.share = 0.0
                executor = ThreadPoolExecutor(1)
                self._computation = executor.submit(self._compute, mark)
                executor.shutdown(wait=False)  # the thread ends with the computation
            computation = self._computation
        if computation is not None:
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
        now_s = time.monotonic()
        self._again_at_s = now_s + min(DELAY_FACTOR * (now_s - began_s), MAX_DELAY_S)
