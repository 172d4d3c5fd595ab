"""Read what the pages show from a league: rows of `reports`, each computed once until the league changes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from referee.errors import RefereeError, UserError
from referee.match.replay import Difference
from referee.ratings.analysis import Analysis
from referee.records import GameRecord
from referee.reports.rating_rows import RatingRow
from referee.reports.selection import GameFilter, analyses, standings
from referee.reports.tournament_rows import TournamentRow, tournament_rows
from referee.result_columns import ResultColumns
from referee.store.league import League
from referee.web.board import board_data
from referee.web.cache import Cache

HIDDEN = "The replay is hidden until all games with the same cards are played."
"""What is said instead of a replay that would help the bots of games to come."""
_KEPT = 64
"""How many values are kept: the columns, analyses and standings of some filters."""


class LeagueViews:
    """A league as the pages see it. Several threads may use it.

    Args:
        league: the league, opened read-only.
        spoilers: also show what a bot author must not know while a tournament runs: replays of deals that are not finished.
        now_s: returns the time of a monotonic clock in seconds.
    """

    def __init__(
        self,
        league: League,
        *,
        spoilers: bool = False,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.league = league
        self.spoilers = spoilers
        self._cache = Cache(league.change_mark, now_s, limit=_KEPT)

    def tournaments(self) -> tuple[TournamentRow, ...]:
        """Return a row for each tournament, newest first."""
        return self._cache.get(
            "tournaments", lambda: tournament_rows(self.league.tournaments())[::-1]
        )

    def columns(self, choice: GameFilter) -> ResultColumns:
        """Return the results of the selected games as arrays. Raises NotFoundError for an unknown tournament."""
        return self._cache.get(("columns", choice), lambda: choice.columns(self.league))

    def analyses(self, choice: GameFilter) -> dict[str, Analysis]:
        """Return the analysis of the selected games of each ruleset."""
        return self._cache.get(("analyses", choice), lambda: analyses(self.columns(choice)))

    def standings(self, choice: GameFilter) -> list[RatingRow]:
        """Return the ratings of the bots in the selected games, ruleset by ruleset, best bot first."""
        return self._cache.get(
            ("standings", choice),
            lambda: standings(self.league, choice, self.columns(choice), self.analyses(choice)),
        )

    def is_spoiler(self, game_id: str) -> bool:
        """Return True if a replay of this game would tell of games that are still to be played with the same deal.

        Raises NotFoundError if the league has no game with this id.
        """
        return not (self.spoilers or self.league.place_of(game_id).deal_played)

    def record(self, game_id: str) -> GameRecord:
        """Return the record of a game. Raises NotFoundError if it is not stored, and UserError if it is damaged."""
        return self.league.record(game_id)

    def board(self, game_id: str) -> dict[str, Any]:
        """Return the data of a replay, as `board_data` does.

        Raises NotFoundError if no such game is stored, UserError if its record is damaged or may not be shown yet, and
        RefereeError if the rules do not allow one of its moves.
        """
        if self.is_spoiler(game_id):
            raise UserError(HIDDEN)
        try:
            return board_data(self.record(game_id))
        except Difference as difference:
            raise RefereeError(f"{game_id} is not correct: {difference}") from difference
