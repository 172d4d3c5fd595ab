"""How fast games are played here: by the cores of this machine and the games of a league."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from statistics import fmean

from referee.reports import GameKind, game_times
from referee.store import League


class LeaguePace:
    """What a league's games, those of `play --keep` too, say of games to come (`budget.Pace`).

    It is opened when something is asked first, and need not be there.
    """

    def __init__(self, league: Path, db: str | None) -> None:
        self.cores = len(os.sched_getaffinity(0))
        self._league = league
        self._db = db

    def game_us(self, ruleset: str, seats: int) -> float | None:
        """See `Pace.game_us`."""
        times = self.times.get(GameKind(ruleset, seats))
        return fmean(times) if times else None

    @cached_property
    def times(self) -> dict[GameKind, tuple[int, ...]]:
        """The durations of all games, in microseconds, by kind."""
        if not League.is_at(self._league, self._db):
            return {}
        with League.open(self._league, create=False, db=self._db) as store:
            kinds = {
                row.game_id: GameKind(row.ruleset, len(row.bots))
                for row in store.results(free=True)
            }
            return game_times((kinds[row.game_id], row.duration_us) for row in store.games())
