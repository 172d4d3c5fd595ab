"""Read from a league what its pages show: rows of `reports`, and the speed of tournaments.

Most values are computed once, and kept until the league changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from referee.clocks import SECOND_US
from referee.errors import DamagedRecordError, RefereeError, UserError
from referee.match.replay import Difference
from referee.ratings.analysis import Analysis
from referee.ratings.effects import luck_figures, seat_figures
from referee.ratings.stopping import StopCondition
from referee.records import ChargedFault, GameRecord
from referee.reports.bot_rows import (
    BotRow,
    FaultRow,
    LatencyRow,
    LogRow,
    UsageRow,
    bot_rows,
    fault_rows,
    latency_rows,
    usage_row,
)
from referee.reports.game_rows import ChargeRow
from referee.reports.rating_rows import HistoryRow, history_rows
from referee.reports.selection import CurrentRatings, GameFilter, analyses, rating_table
from referee.reports.statistics import (
    LuckRow,
    PairRow,
    SeatWorthRow,
    luck_rows,
    pair_rows,
    seat_worth_rows,
)
from referee.reports.tournament_rows import (
    NextGameRow,
    StatusRow,
    TournamentRow,
    next_game_rows,
    status_rows,
    tournament_rows,
)
from referee.reports.verdicts import (
    Judgement,
    find_judged_tournament,
    judge_newest_look,
    judge_once,
)
from referee.result_columns import ResultColumns
from referee.store import GameChoice, ListedGame
from referee.store.league import League
from referee.tournament.create import TournamentState, find_state
from referee.web.background import SOON_S, BackgroundRatings, HistoryKeeper
from referee.web.board import board_data
from referee.web.cache import Cache, NotReadyError, note_outdated_input

REPLAY_HIDDEN = "The replay is hidden until all games with the same cards are played."
"""This text replaces a replay while other games with the same deal are still to be played, because the replay would show the cards."""
STDERR_HIDDEN = "Standard error is hidden until all games with the same cards are played."
"""This text replaces what a bot printed in a game with a hidden replay, because the bot may have printed cards."""
DETAIL_HIDDEN = "the detail is hidden until all games with the same cards are played"
"""The text in place of the detail of a fault if `hide_detail` hides it."""
MEASURED = 100
"""The times of a bot's decisions are read from at most this number of its newest games."""
PATIENCE_S = 0.2
"""`LeagueViews.patience_s` of a server."""
NEXT_GAMES = 20
"""The page of a tournament lists at most this number of games that are still to be played."""
SPEED_GAMES = 500
"""The speed is computed from at most this number of the newest games, even if more were played in the last minute."""
_WINDOW_US = 60 * SECOND_US
_KEPT = 64
"""How many values the cache keeps, of all kinds together."""

Figures = TypeVar("Figures")
Row = TypeVar("Row")
Value = TypeVar("Value")
FaultLine = TypeVar("FaultLine", LogRow, ChargeRow)


class Speed(NamedTuple):
    """The speed of a tournament in the last minute of play."""

    games_per_s: float
    left_us: int
    """Time in microseconds for all missing games at this speed."""


def speed(ends_us: Iterable[int], missing: int) -> Speed | None:
    """Return the speed in the last minute of play. Return None if no two games ended at different times in this minute.

    The last minute of play ends at the end of the newest game, not now. So an interrupted tournament keeps its speed.

    Args:
        ends_us: when each of the newest games ended, in microseconds since 1970-01-01 UTC, in any order.
        missing: number of games that are not played yet.
    """
    ends = sorted(ends_us)
    recent = [end_us for end_us in ends if ends[-1] - end_us < _WINDOW_US]
    if not recent or recent[-1] == recent[0]:
        return None
    span_us = recent[-1] - recent[0]
    games = len(recent) - 1  # the span begins at the end of the first game
    return Speed(games * SECOND_US / span_us, missing * span_us // games)


def hide_detail(row: FaultLine) -> FaultLine:
    """Return the row of a fault without detail, exit code and signal, because the bot could reveal cards with them.

    Use this for a game with a hidden replay. The row keeps `stderr_tail`: the templates show `STDERR_HIDDEN` instead.
    """
    if isinstance(row, ChargeRow):
        return replace(row, detail=DETAIL_HIDDEN, exit_code=None, signal=None)
    return replace(row, detail=DETAIL_HIDDEN)


class _Games(NamedTuple):
    """The selected games, and for each ruleset the analysis of its games."""

    columns: ResultColumns
    analyses: dict[str, Analysis]


class LeagueViews:
    """A league as the pages see it. Several threads may use it.

    Args:
        league: the league, opened read-only.
        spoilers: True to show the replay of a game, and everything about its faults, even if other games with the same deal are
            still to be played. Authors of bots must not see this.
        patience_s: how long a page waits for the computation of ratings or rating histories, in seconds; None to wait until it
            has ended. If it takes longer, the page shows outdated ratings. If there are none, the page says that the ratings are
            being computed.
        now_s: returns the time of a monotonic clock in seconds.
    """

    def __init__(
        self,
        league: League,
        *,
        spoilers: bool = False,
        patience_s: float | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.league = league
        self.spoilers = spoilers
        self.patience_s = patience_s
        self._cache = Cache(league.change_mark, now_s, limit=_KEPT)
        self._ratings: dict[GameFilter, BackgroundRatings] = {}
        self._keepers: dict[GameFilter, HistoryKeeper] = {}

    def tournaments(self, *, having: str | None = None) -> tuple[TournamentRow, ...]:
        """Return a row for each tournament that can be read, newest first.

        The rows may be outdated. But if the tournament `having` is missing in them, they are read again.
        """
        rows, _ = self._cache.get("tournaments", self._read_tournaments)
        if having is not None and having not in {row.tournament for row in rows}:
            rows, _ = self._read_tournaments()
        return rows[::-1]

    def unreadable_tournaments(self) -> list[str]:
        """Return a message for each tournament that cannot be read; it says why."""
        _, errors = self._cache.get("tournaments", self._read_tournaments)
        return [self.league.explain(error) for error in errors]

    def _read_tournaments(self) -> tuple[tuple[TournamentRow, ...], tuple[RefereeError, ...]]:
        return tournament_rows(self.league.tournaments())

    def columns(self, choice: GameFilter) -> ResultColumns:
        """Return the results of the selected games as arrays. Raises NotFoundError for an unknown tournament."""
        return self._games(choice).columns

    def analyses(self, choice: GameFilter) -> dict[str, Analysis]:
        """Return the analysis of the selected games of each ruleset."""
        return self._games(choice).analyses

    def _games(self, choice: GameFilter) -> _Games:
        """Return the selected games and their analyses. Both always fit each other, because the cache keeps them as one value."""

        def make() -> _Games:
            columns = choice.columns(self.league)
            return _Games(columns, analyses(columns))

        return self._cache.get(("games", choice), make)

    def ratings(self, choice: GameFilter) -> CurrentRatings | None:
        """Return the ratings of the bots in the selected games, and the analyses from which they were computed.

        These analyses already have their intervals. The analyses that the method `analyses` returns may not have them yet.
        If the games are not rated within `self.patience_s` seconds, return the outdated ratings, or None if there are none. The
        computation goes on.
        """
        end_s = None if self.patience_s is None else time.monotonic() + self.patience_s

        def make() -> CurrentRatings:
            games, analysed = self._games(choice)
            background = self._ratings.setdefault(choice, BackgroundRatings(self.league, choice))
            left_s = None if end_s is None else max(0.0, end_s - time.monotonic())
            rated = background.rate(games, analysed, left_s)
            rows = rating_table(rated.ratings, rated.games, rated.analysed)
            return CurrentRatings(rows, rated.analysed)

        return self._get_if_ready(("ratings", choice), make)

    def _get_if_ready(self, key: Hashable, make: Callable[[], Value]) -> Value | None:
        """Return a value of the cache. Return None if there is none yet, and it cannot be made in time.

        A value cannot be made in time in two cases. Either `make` raises NotReadyError, because ratings are being computed. Or
        another thread makes the value and needs more than `self.patience_s` seconds.
        """
        try:
            return self._cache.get(key, make, self.patience_s)
        except NotReadyError:
            note_outdated_input(time.monotonic() + SOON_S)
            return None

    def pairs(self, choice: GameFilter) -> tuple[PairRow, ...] | None:
        """Return one comparison of every two bots, ruleset by ruleset; see `Analysis.pairs`.

        If they cannot be made in time, return outdated ones, or None if there are none; see `_get_if_ready`.
        """

        def make() -> tuple[PairRow, ...]:
            ratings = self.ratings(choice)
            if ratings is None:
                raise NotReadyError
            return tuple(
                row
                for name, analysis in ratings.analysed.items()
                for row in pair_rows(name, analysis.pairs())
            )

        return self._get_if_ready(("pairs", choice), make)

    def judge(self, choice: GameFilter) -> Judgement | None:
        """Return the verdicts about the bots of the selected games.

        If they cannot be made in time, return outdated ones, or None if there are none; see `_get_if_ready`.
        """

        def make() -> Judgement:
            tournament = find_judged_tournament(self.league, choice)
            if tournament is None:
                ratings = self.ratings(choice)
                if ratings is None:
                    raise NotReadyError
                return judge_once(self.league, choice, ratings.analysed, StopCondition())
            return judge_newest_look(
                tournament, self.columns(GameFilter(tournament=tournament.name))
            )

        return self._get_if_ready(("judgement", choice), make)

    def seat_worths(self, choice: GameFilter) -> tuple[SeatWorthRow, ...]:
        """Return the value of each seat, ruleset by ruleset."""
        return self._rows(choice, seat_worth_rows, lambda each: seat_figures(each.results))

    def luck(self, choice: GameFilter) -> tuple[LuckRow, ...]:
        """Return how much luck decides, ruleset by ruleset."""
        return self._rows(choice, luck_rows, lambda each: luck_figures(each.results))

    def _rows(
        self,
        choice: GameFilter,
        rows: Callable[[str, Iterable[Figures]], tuple[Row, ...]],
        figures: Callable[[Analysis], Iterable[Figures]],
    ) -> tuple[Row, ...]:
        """Return the rows of every ruleset: `figures` computes figures from an analysis, `rows` turns them into rows."""
        return self._cache.get(
            (rows.__name__, choice),
            lambda: tuple(
                row
                for name, analysis in self.analyses(choice).items()
                for row in rows(name, figures(analysis))
            ),
        )

    def history(
        self, choice: GameFilter, bot: str, *, patience_s: float | None
    ) -> tuple[HistoryRow, ...] | None:
        """Return the rating of a bot after each round, ruleset by ruleset.

        If the histories of the selected games are not computed within `patience_s` seconds, return outdated ones, or None if there are
        none. The computation goes on.
        """
        histories = self._history_keeper(choice).get(patience_s)
        return None if histories is None else history_rows(histories.get(bot, {}))

    def history_share(self, choice: GameFilter) -> float:
        """Return how far the computation for `history` is; see `HistoryKeeper.share`."""
        return self._history_keeper(choice).share

    def _history_keeper(self, choice: GameFilter) -> HistoryKeeper:
        return self._keepers.setdefault(choice, HistoryKeeper(self.league, choice))

    def tournament(self, name: str) -> TournamentState:
        """Return the state of a tournament. Raises NotFoundError if it does not exist."""
        return self._cache.get(("tournament", name), lambda: find_state(self.league, name))

    def status(self, name: str) -> tuple[StatusRow, ...]:
        """Return the progress of each round of a tournament; the last row is for all rounds."""
        return self._cache.get(("status", name), lambda: status_rows(self.league.progress(name)))

    def next_games(self, name: str) -> tuple[NextGameRow, ...]:
        """Return the first games of a tournament that are still to be played, in schedule order."""
        total = self.status(name)[-1]
        if total.done == total.games:
            return ()
        return self._cache.get(
            ("next games", name),
            lambda: next_game_rows(self.league.missing_games(name, limit=NEXT_GAMES)),
        )

    def speed(self, name: str) -> Speed | None:
        """Return the speed of a tournament. Return None if no game is missing, or if the function `speed` returns None."""
        total = self.status(name)[-1]
        if total.done == total.games:
            return None

        def make() -> Speed | None:
            choice = GameChoice(tournament=name)
            newest, _ = self.league.find_games(choice, offset=0, limit=SPEED_GAMES)
            ends_us = [each.summary.started_at_us + each.summary.duration_us for each in newest]
            return speed(ends_us, total.games - total.done)

        return self._cache.get(("speed", name), make)

    def fault_counts(
        self, *, tournament: str | None = None, bot: str | None = None
    ) -> tuple[FaultRow, ...]:
        """Return how many faults of each cause there are in a tournament, of a bot, or of a bot in a tournament."""
        return self._cache.get(
            ("fault counts", tournament, bot),
            lambda: fault_rows(self.league.fault_counts(tournament=tournament, bot=bot)),
        )

    def last_faults(self, *, tournament: str | None, bot: str, limit: int) -> list[ChargedFault]:
        """Return the `limit` faults of a bot that were stored last, in one tournament or in all games; see `League.faults`."""
        return self._cache.get(
            ("last faults", tournament, bot, limit),
            lambda: self.league.faults(tournament=tournament, bot=bot, limit=limit),
        )

    def bots(self, *, having: str | None = None) -> tuple[BotRow, ...]:
        """Return a row for each version of each bot, in the order of submission.

        The rows may be outdated. But if the version `having` is missing in them, they are read again.
        """

        def read() -> tuple[BotRow, ...]:
            counts = self.league.fault_counts()
            return bot_rows(self.league.bots(), self.league.game_counts(), counts)

        rows = self._cache.get("bots", read)
        return rows if having is None or having in {row.bot for row in rows} else read()

    def usage(self, bot: str) -> UsageRow | None:
        """Return the CPU time and memory of a bot; None if they were never measured."""
        rows = self._cache.get("usage", self.league.usage)
        return next((usage_row(row) for row in rows if row.bot == bot), None)

    def latencies(self, choice: GameFilter, bot: str) -> tuple[LatencyRow, ...]:
        """Return how long the decisions of a bot took in its newest `MEASURED` games.

        If `choice` names a tournament, only its games count. Damaged records are left out.
        """

        def make() -> tuple[LatencyRow, ...]:
            listed, _ = self.league.find_games(
                GameChoice(tournament=choice.tournament, bot=bot), offset=0, limit=MEASURED
            )
            return latency_rows(bot, self._intact_records(listed))

        return self._cache.get(("latencies", choice, bot), make)

    def _intact_records(self, listed: Iterable[ListedGame]) -> Iterator[GameRecord]:
        """Yield the records of the games, except records that cannot be read. `replay_moves` may still refuse a record."""
        for game in listed:
            with suppress(DamagedRecordError):
                yield self.league.record(game.result.game_id)

    def is_spoiler(self, game_id: str) -> bool:
        """Return True if the replay must be hidden, because games with the same deal are still to be played.

        If `spoilers` is True, always return False. Otherwise, raise NotFoundError if the league has no game with this id.
        """
        return not (self.spoilers or self.league.is_deal_played(game_id))

    def board(self, game_id: str) -> dict[str, Any]:
        """Return the data of a replay, as `board_data` does.

        Raises NotFoundError if no such game is stored, DamagedRecordError if its record is damaged, and UserError if the replay
        must not be shown yet.
        """
        if self.is_spoiler(game_id):
            raise UserError(REPLAY_HIDDEN)
        try:
            return board_data(self.league.record(game_id))
        except Difference as difference:
            raise DamagedRecordError(f"{game_id} is not correct: {difference}") from difference
