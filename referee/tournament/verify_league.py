"""Verify what a league has stored: its tournaments, and its games outside tournaments.

A league has tables with some data of each game record, for fast queries. These tables are compared with the records, except for
the times and the memory of each seat.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from referee.match.replay import Difference, check_record
from referee.records import ChargedFault, Fault, GameRecord, GameResult, ScheduledGame
from referee.store import StoredGame, escape_nul
from referee.store.league import League
from referee.tournament.create import committed_bots, find_tournament
from referee.tournament.verify import add_game_id, format_value

_STRAY = (
    "its row in the table results names the wrong tournament,"
    " or a row about it in the table faults names a seat that the game does not have"
)


class LeagueTournament:
    """A tournament in a league; it implements `Claim`.

    Creating it raises NotFoundError, UserError and RefereeError as `find_tournament` does, and Difference as `_Tables` does.
    """

    def __init__(self, league: League, name: str) -> None:
        with league.one_moment():  # a driver may store games meanwhile
            tournament = find_tournament(league, name)
            self._tables = _Tables(league, name)
        self.config, self.bots = tournament.config, tournament.bots
        self.stored_config = tournament.stored_config
        self.committed_bots = committed_bots(league, tournament.bots)
        self.schedule, self.parts = tournament.schedule, tournament.parts
        self.stopped_after = tournament.stopped_after
        self._league = league

    def record(self, game: ScheduledGame) -> GameRecord | None:
        """See `Claim.record`."""
        if game.game_id not in self._tables.games:
            return None
        return _load_record(self._league, game.game_id)

    def on_game_checked(self, game: ScheduledGame, record: GameRecord) -> None:  # noqa: ARG002 - part of `Claim`
        """See `Claim.on_game_checked`."""
        self._tables.check(record)


def verify_free_games(league: League) -> int:
    """Check the moves and results of all games outside tournaments; return the number of these games.

    The decks are not checked, because the league does not store the seeds of these games. Raises Difference at the first error.
    """
    tables = _Tables(league, None)
    free = tables.list_free_games()
    for game_id in free:
        with add_game_id(game_id):
            record = _load_record(league, game_id)
            check_record(record)
            tables.check(record)
    return len(free)


class _Tables:
    """The rows of the database about the games of a tournament, or about all games if `tournament` is None.

    `games` has the summaries of the played games, by id. `check` finds wrong rows about these games. The constructor raises
    Difference if `League.stray_games` returns a game that is not in `games`. Such a game has a fault but no result, or the
    table `results` names this tournament for it, but the table `matches` does not.
    """

    def __init__(self, league: League, tournament: str | None) -> None:
        with league.one_moment():  # a driver may store games meanwhile
            games = league.games(tournament=tournament)
            results = league.results(tournament=tournament, free=True)
            faults = league.faults(tournament=tournament)
            self._stray_games = league.stray_games(tournament=tournament)
        self.games = {row.game_id: row for row in games}
        self._results = {row.game_id: row for row in results}
        self._faults = defaultdict[str, list[ChargedFault]](list)
        for fault in faults:
            self._faults[fault.game_id].append(fault)
        for game_id in sorted(self._stray_games - self.games.keys()):
            raise Difference(f"{game_id}: {_STRAY}")

    def list_free_games(self) -> list[str]:
        """Return the ids of the games outside tournaments.

        Games without rows in the table `seats` are returned too, so that `check` reports them.
        """
        scheduled = {row.game_id for row in self._results.values() if row.tournament}
        return [game_id for game_id in self.games if game_id not in scheduled]

    def check(self, record: GameRecord) -> None:
        """Compare the rows about a stored game with the record of the game. Raises Difference if they differ."""
        _check_result(record, self._results.get(record.game_id))
        _check_summary(record, self.games[record.game_id])
        _check_faults(record, self._faults[record.game_id])
        if record.game_id in self._stray_games:
            raise Difference(_STRAY)


def _load_record(league: League, game_id: str) -> GameRecord:
    """Return the record of a stored game. Raises Difference if the record belongs to another game."""
    record = league.record(game_id)
    if record.game_id != game_id:
        raise Difference(f"the stored record is that of game {record.game_id}")
    return record


def _check_result(record: GameRecord, row: GameResult | None) -> None:
    """Compare the result in the database with the record. `row` is None if the table `seats` has no rows for the game."""
    if row is None:
        raise Difference("the table seats has no rows for this game")
    for what, stored, recorded in (
        ("ruleset", row.ruleset, record.ruleset.name),
        ("bots", row.bots, tuple(map(str, record.seating))),
        ("scores", row.scores, record.scores),
        ("ranks", row.ranks, record.ranks),
        ("forfeits", row.forfeited, record.forfeited),
    ):
        if stored != recorded:
            raise Difference(
                f"{what}: the database has {format_value(stored)},"
                f" the record {format_value(recorded)}"
            )


def _check_summary(record: GameRecord, row: StoredGame) -> None:
    end = record.termination.value, len(record.moves)
    times = record.started_at_us, record.duration_us
    if (row.termination, row.decisions, row.started_at_us, row.duration_us) != (*end, *times):
        raise Difference("the end or the times in the table results differ from the record")
    if row.machine != record.machine:
        raise Difference("the machine in the table results differs from the record")


def _check_faults(record: GameRecord, rows: list[ChargedFault]) -> None:
    stored = [_comparable(row.fault) for row in rows]
    if stored != [_comparable(fault) for fault in record.faults]:
        raise Difference("the table of faults differs from the record")


def _comparable(fault: Fault) -> Fault:
    """Return a fault as the table of faults can store it, to compare the table with the record.

    The table has no wall time and no batch size, so these get fixed values. The table stores texts as `escape_nul` returns them.
    """
    evidence = replace(
        fault.evidence,
        detail=escape_nul(fault.evidence.detail),
        stderr_tail=escape_nul(fault.evidence.stderr_tail),
        wall_us=0,
        batch_size=1,
    )
    return replace(fault, evidence=evidence)
