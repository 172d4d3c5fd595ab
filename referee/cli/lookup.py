"""Results of games as ratings and reports take them."""

from __future__ import annotations

from dataclasses import dataclass

from referee.errors import Cause
from referee.records import Fault, GameRecord, ScheduledGame
from referee.store import ResultRow


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
        ruleset=record.ruleset.name,
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
