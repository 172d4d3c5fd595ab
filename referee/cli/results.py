"""What several commands look up in a league: results, their ratings, the faults."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from referee.cli.roster import roster_of
from referee.errors import Cause
from referee.ratings import rate
from referee.records import Fault, GameRecord
from referee.reports import StandingRow, standings
from referee.schedule import ScheduledGame
from referee.store import League, ResultRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A result as ratings and reports take it (`reports.FinishedGame`)."""

    game_id: str
    ruleset: str
    round: int
    match: Hashable
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
    """A stored result; its match is told apart from those of other tournaments."""
    return Finished(
        game_id=row.game_id,
        ruleset=row.ruleset,
        round=row.round,
        match=(row.tournament, row.match),
        bots=row.bots,
        scores=row.scores,
        ranks=row.ranks,
        forfeited=row.forfeited,
    )


def of_record(game: ScheduledGame, record: GameRecord) -> Finished:
    """A game just played."""
    return Finished(
        game_id=game.game_id,
        ruleset=game.ruleset.name,
        round=game.round,
        match=game.match,
        bots=tuple(map(str, record.seating)),
        scores=record.result.scores,
        ranks=record.result.ranks,
        forfeited=record.result.forfeited,
    )


def charged(record: GameRecord, fault: Fault) -> Charged:
    """A fault of a game just played."""
    return Charged(record.game_id, str(record.seating[fault.seat]), fault.cause, fault.forfeit)


def current_standings(
    league: League, tournament: str | None = None, ruleset: str | None = None
) -> tuple[StandingRow, ...]:
    """The standings of a tournament, or of the whole league, rated in schedule order.

    In a tournament all begin as newcomers; in the league a version begins where the one before it stands.
    """
    predecessors = roster_of(league).predecessors() if tournament is None else None
    games = [
        of_row(row)
        for row in league.results(tournament=tournament)
        if ruleset is None or row.ruleset == ruleset
    ]
    ratings = rate(games, predecessors=predecessors)
    return standings(games, ratings, league.faults(tournament=tournament))
