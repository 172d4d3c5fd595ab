"""The bots of a league, for the commands that let them play.

How fast games are played here: by the cores of this machine and the games of a league.

What several commands look up in a league: results, their ratings, the faults.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from referee.bots import Launcher
from referee.bots.manifest import Manifest
from referee.cli.options import notes
from referee.errors import Cause, StoreError, UserError
from referee.ratings import Ratings
from referee.records import Fault, GameRecord
from referee.reports.rating_rows import RatingRow, rating_rows
from referee.reports.tournament_rows import GameKind, game_times
from referee.roster import Roster, Workshop
from referee.rules.ruleset import RULESETS
from referee.schedule import ScheduledGame
from referee.store import League, ResultRow


def workshop_at(
    folder: Path, launcher: Launcher | None = None, *, network: bool = False
) -> Workshop:
    """Where the bots of a league are copied and built; says so when it builds.

    Without a launcher nothing can be built there. Builds may use the `network` or not.
    """
    return Workshop(folder, launcher, network=network, on_build=_announce)


def roster_of(league: League, launcher: Launcher | None = None, *, network: bool = False) -> Roster:
    """The bots of a league; what else is said as for `workshop_at`."""
    return Roster(league, workshop_at(league.folder, launcher, network=network))


def now_us() -> int:
    """The time, in microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1000


def _announce(manifest: Manifest) -> None:
    command = " ".join(manifest.build.command) if manifest.build else ""
    notes.print(f"Building {manifest.name}: {command}", soft_wrap=True)


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


if TYPE_CHECKING:
    from referee.ratings.analysis import Analysis
    from referee.ratings.results import Results
    from referee.store.columns import ResultColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A result as ratings and reports take it (`reports.FinishedGame`)."""

    game_id: str
    tournament: str
    ruleset: str
    round: int
    match: tuple[str, int]
    bots: tuple[str, ...]
    scores: tuple[int, ...]
    ranks: tuple[int, ...]
    forfeited: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Charged:
    """A fault as reports take it (`reports.ChargedFault`)."""

    game_id: str
    bot: str
    cause: Cause
    forfeit: bool


def of_row(row: ResultRow) -> Finished:
    """A stored result of a tournament; its match is told apart from those of others."""
    tournament = row.tournament or ""
    return Finished(
        game_id=row.game_id,
        tournament=tournament,
        ruleset=row.ruleset,
        round=row.round,
        match=(tournament, row.match),
        bots=row.bots,
        scores=row.scores,
        ranks=row.ranks,
        forfeited=row.forfeited,
    )


def of_record(tournament: str, game: ScheduledGame, record: GameRecord) -> Finished:
    """A game just played."""
    return Finished(
        game_id=game.game_id,
        tournament=tournament,
        ruleset=game.ruleset.name,
        round=game.round,
        match=(tournament, game.match),
        bots=tuple(map(str, record.seating)),
        scores=record.result.scores,
        ranks=record.result.ranks,
        forfeited=record.result.forfeited,
    )


def charged(record: GameRecord, fault: Fault) -> Charged:
    """A fault of a game just played."""
    return Charged(record.game_id, str(record.seating[fault.seat]), fault.cause, fault.forfeit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Of which games something is to be told. None: all."""

    tournament: str | None = None
    ruleset: str | None = None
    seats: int | None = None
    """Of a table."""

    def games(self, league: League) -> list[Finished]:
        """The games in schedule order. Raises UserError for what is not there at all."""
        self._check(league)
        return [
            of_row(row)
            for row in league.results(tournament=self.tournament)
            if self.ruleset in (None, row.ruleset) and self.seats in (None, len(row.bots))
        ]

    def columns(self, league: League) -> ResultColumns:
        """The same games in columns."""
        self._check(league)
        games = league.columns(tournament=self.tournament)
        wanted = games.ruleset >= 0
        if self.ruleset is not None:
            wanted &= games.ruleset == (*games.rulesets, self.ruleset).index(self.ruleset)
        if self.seats is not None:
            wanted &= (games.bot >= 0).sum(axis=1) == self.seats
        return games.chosen(wanted)

    def _check(self, league: League) -> None:
        if self.tournament is not None:
            league.check_tournament(self.tournament)
        if self.ruleset is not None and self.ruleset not in RULESETS:
            known = ", ".join(RULESETS)
            raise UserError(f"--ruleset: unknown ruleset {self.ruleset!r}; there are {known}")

    def predecessors(self, league: League) -> Mapping[str, str]:
        """In a tournament all begin as newcomers; in the league a version begins where the last stands."""
        return roster_of(league).predecessors() if self.tournament is None else {}


def results(games: ResultColumns) -> dict[str, Results]:
    """The games of each ruleset, as statistics take them."""
    from referee.ratings.results import Results  # noqa: PLC0415 - as `ratings` says

    return Results.of_columns(games)


def analyses(games: ResultColumns) -> dict[str, Analysis]:
    """What the games of each ruleset say, and how sure that is."""
    from referee.ratings.analysis import Analysis  # noqa: PLC0415 - as `ratings` says

    return {ruleset: Analysis(each) for ruleset, each in results(games).items()}


def current_ratings(league: League, choice: Choice) -> list[RatingRow]:
    """How the bots stand after some games, rated in schedule order, and how sure that is."""
    games = choice.columns(league)
    return standings(league, choice, games, analyses(games))


def standings(
    league: League, choice: Choice, games: ResultColumns, analysed: Mapping[str, Analysis]
) -> list[RatingRow]:
    """The same of games that were read and analysed before."""
    ratings = sequential(league, choice, games).table()
    strikes = _strikes(games)
    return [
        row
        for name, analysis in analysed.items()
        for row in rating_rows(name, ratings[name], analysis, strikes[name])
    ]


def sequential(league: League, choice: Choice, games: ResultColumns) -> Ratings:
    """The ratings after the games that a choice has, from where they were left the last time."""
    from referee.ratings.checkpoint import rate_from  # noqa: PLC0415 - as `ratings` says

    name = f"ratings: {choice}"
    ratings, worth_keeping = rate_from(
        league.checkpoint(name), games, predecessors=choice.predecessors(league)
    )
    if worth_keeping is not None:
        with suppress(StoreError, UserError):  # it spares time, and there may be no right to write
            league.keep_checkpoint(name, worth_keeping)
    return ratings


def _strikes(games: ResultColumns) -> dict[str, Counter[str]]:
    """How many strikes the bots have, by ruleset."""
    strikes = {name: Counter[str]() for name in games.rulesets}
    for game, seat in zip(*games.strikes.nonzero(), strict=True):
        ruleset, bot = games.rulesets[games.ruleset[game]], games.bots[games.bot[game, seat]]
        strikes[ruleset][bot] += int(games.strikes[game, seat])
    return strikes
