"""What a league says of its tournaments and games, to be checked against their records."""

from __future__ import annotations

from collections import defaultdict

from referee.match import Difference, check
from referee.records import GameRecord
from referee.schedule import ScheduledGame
from referee.store import FaultRow, GameRow, League, ResultRow, storable
from referee.tournament.audit import listed, naming
from referee.tournament.conduct import find


class StoredTournament:
    """A tournament of a league, as `audit` takes it.

    Raises NotFoundError, UserError and RefereeError as `find` does.
    """

    def __init__(self, league: League, name: str) -> None:
        found = find(league, name)
        self.where = league.where
        self.config, self.seats, self.schedule = found.config, found.seats, found.schedule
        self.parts, self.settled_after = found.parts, found.settled_after
        self._league = league
        self._shown = _Tables(league, name)

    def record(self, game: ScheduledGame) -> GameRecord | None:
        """See `Claim.record`."""
        if game.game_id not in self._shown.games:
            return None
        return _record(self._league, game.game_id)

    def check_shown(self, game: ScheduledGame, record: GameRecord) -> None:  # noqa: ARG002 - it is in the record
        """See `Claim.check_shown`."""
        self._shown.check(record)


def audit_free_games(league: League) -> int:
    """Check the moves and results of all games outside of tournaments; returns how many there are.

    Their decks come from seeds that are not kept. Raises Difference as `audit` does.
    """
    free = [row for row in league.results(free=True) if row.tournament is None]
    shown = _Tables(league, None)
    for row in free:
        with naming(row.game_id):
            record = _record(league, row.game_id)
            check(record)
            shown.check(record)
    return len(free)


class _Tables:
    """What the tables show of games: of one tournament, or of all games, free ones included."""

    def __init__(self, league: League, tournament: str | None) -> None:
        results = league.results(tournament=tournament, free=True)
        self._results = {row.game_id: row for row in results}
        self.games = {row.game_id: row for row in league.games(tournament=tournament)}
        self._faults = defaultdict[str, list[FaultRow]](list)
        for fault in league.faults(tournament=tournament):
            self._faults[fault.game_id].append(fault)

    def check(self, record: GameRecord) -> None:
        """Hold the tables against the record of a stored game."""
        _check_result(record, self._results.get(record.game_id))
        _check_summary(record, self.games[record.game_id])
        _check_faults(record, self._faults[record.game_id])


def _record(league: League, game_id: str) -> GameRecord:
    record = league.record(game_id)
    if record.game_id != game_id:
        raise Difference(f"the record is of another game, {record.game_id}")
    return record


def _check_result(record: GameRecord, row: ResultRow | None) -> None:
    """What ratings are made of must be what the record says."""
    if row is None:
        raise Difference("the table of results has no seats for it")
    for what, shown, recorded in (
        ("ruleset", row.ruleset, record.ruleset.name),
        ("bots", row.bots, tuple(map(str, record.seating))),
        ("scores", row.scores, record.result.scores),
        ("ranks", row.ranks, record.result.ranks),
        ("forfeits", row.forfeited, record.result.forfeited),
    ):
        if shown != recorded:
            raise Difference(
                f"{what}: the table of results has {listed(shown)}, the record {listed(recorded)}"
            )


def _check_summary(record: GameRecord, row: GameRow) -> None:
    recorded = (
        record.result.termination.value,
        len(record.moves),
        record.started_at_us,
        record.duration_us,
    )
    if (row.termination, row.decisions, row.started_at_us, row.duration_us) != recorded:
        raise Difference("the table of games has its end or its times otherwise than the record")


def _check_faults(record: GameRecord, rows: list[FaultRow]) -> None:
    shown = [
        (
            row.seat,
            row.cause,
            row.forfeit,
            row.move,
            storable(row.detail),  # those of the first leagues may have what is no more stored
            storable(row.stderr_tail),
        )
        for row in rows
    ]
    recorded = [
        (
            fault.seat,
            fault.cause,
            fault.forfeit,
            fault.move,
            storable(fault.evidence.detail),
            storable(fault.evidence.stderr_tail),
        )
        for fault in record.faults
    ]
    if shown != recorded:
        raise Difference("the table of faults differs from the record")
