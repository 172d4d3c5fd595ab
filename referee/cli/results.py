"""What several commands look up in a league: results, their ratings, the faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from referee.cli.roster import roster_of
from referee.errors import Cause, UserError
from referee.ratings import rate
from referee.records import Fault, GameRecord
from referee.reports import RatingRow, rating_rows, standings
from referee.rules.ruleset import RULESETS
from referee.schedule import ScheduledGame
from referee.store import League, ResultRow

if TYPE_CHECKING:
    from referee.ratings.analysis import Analysis
    from referee.ratings.results import Results


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
        if self.tournament is not None:
            league.tournament(self.tournament)
        if self.ruleset is not None and self.ruleset not in RULESETS:
            known = ", ".join(RULESETS)
            raise UserError(f"--ruleset: unknown ruleset {self.ruleset!r}; there are {known}")
        return [
            of_row(row)
            for row in league.results(tournament=self.tournament)
            if self.ruleset in (None, row.ruleset) and self.seats in (None, len(row.bots))
        ]

    def predecessors(self, league: League) -> Mapping[str, str]:
        """In a tournament all begin as newcomers; in the league a version begins where the last stands."""
        return roster_of(league).predecessors() if self.tournament is None else {}


def results(games: Iterable[Finished]) -> dict[str, Results]:
    """The games of each ruleset, as statistics take them."""
    from referee.ratings.results import Results  # noqa: PLC0415 - as `ratings` says

    return Results.of(games)


def analyses(games: Iterable[Finished]) -> dict[str, Analysis]:
    """What the games of each ruleset say, and how sure that is."""
    from referee.ratings.analysis import Analysis  # noqa: PLC0415 - as `ratings` says

    return {ruleset: Analysis(each) for ruleset, each in results(games).items()}


def current_ratings(league: League, choice: Choice) -> tuple[RatingRow, ...]:
    """How the bots stand after some games, rated in schedule order, and how sure that is."""
    games = choice.games(league)
    ratings = rate(games, predecessors=choice.predecessors(league))
    rows = standings(games, ratings, league.faults(tournament=choice.tournament))
    analysed = analyses(games)
    leads = {
        (row.ruleset, row.bot, below.bot): analysed[row.ruleset].pair(row.bot, below.bot).chance
        for row, below in pairwise(rows)
        if row.ruleset == below.ruleset
    }
    return rating_rows(rows, {name: each.bots() for name, each in analysed.items()}, leads)
