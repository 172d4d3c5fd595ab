"""A tournament checked from its seed: commitment, schedule, decks, moves, results, and what tables show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from referee import deals
from referee.errors import UserError
from referee.match import Difference, check
from referee.records import GameRecord
from referee.schedule import ALGORITHMS, ScheduledGame
from referee.store import FaultRow, GameRow, League, ResultRow
from referee.tournament.conduct import Tournament


def audit(league: League, tournament: Tournament) -> int:
    """Check everything that is stored of a tournament; returns how many games that were.

    Raises Difference at the first thing that is not right, in the order of the schedule, or when it
    was finished and games are gone, and UserError where this version does not know how the schedule
    was made.
    """
    _check_seed(league, tournament)
    _check_schedule(league, tournament)
    shown = _Tables(league, tournament.name)
    gone = []
    for game in tournament.schedule:
        if game.game_id not in shown.games:
            gone.append(game.game_id)
            continue
        with _naming(game.game_id):
            record = _record(league, game.game_id)
            _check_game(tournament, game, record)
            shown.check(record)
    games = len(tournament.schedule)
    checked = games - len(gone)
    if gone and league.tournament(tournament.name).finished_at_us is not None:
        more = f" and {len(gone) - 1} more are" if len(gone) > 1 else " is"
        raise Difference(f"{checked} of {games} games check; {gone[0]}{more} not stored")
    return checked


def audit_free_games(league: League) -> int:
    """Check the moves and results of all games outside of tournaments; returns how many there are.

    Their decks come from seeds that are not kept. Raises Difference as `audit` does.
    """
    free = [row for row in league.results(free=True) if row.tournament is None]
    shown = _Tables(league, None)
    for row in free:
        with _naming(row.game_id):
            record = _record(league, row.game_id)
            check(record)
            shown.check(record)
    return len(free)


@contextmanager
def _naming(game_id: str) -> Iterator[None]:
    try:
        yield
    except (Difference, UserError) as difference:
        raise Difference(f"{game_id}: {difference}") from difference


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


def _check_seed(league: League, tournament: Tournament) -> None:
    published, commitment = (
        league.tournament(tournament.name).commitment,
        deals.commitment(tournament.seed),
    )
    if commitment != published:
        raise Difference(f"the seed's SHA-256 is {commitment}, not {published}")


def _check_schedule(league: League, tournament: Tournament) -> None:
    config = tournament.config
    assert config.lanes is not None  # noqa: S101 - settled when the tournament was created
    if config.schedule not in ALGORITHMS:
        raise UserError(
            f"{league.folder}: tournament {tournament.name}: its schedule was made by"
            f" {config.schedule!r}, which this version of the referee does not know"
        )
    schedule = ALGORITHMS[config.schedule](
        tournament.name, list(tournament.seats), config.stages, lanes=config.lanes
    )
    if len(tournament.schedule) != len(schedule):
        raise Difference(f"the schedule has {len(tournament.schedule)} games, not {len(schedule)}")
    for made, kept in zip(schedule, tournament.schedule, strict=True):
        if made != kept:
            raise Difference(f"{made.game_id}: the schedule has it otherwise than it is stored")


def _record(league: League, game_id: str) -> GameRecord:
    record = league.record(game_id)
    if record.game_id != game_id:
        raise Difference(f"the record is of another game, {record.game_id}")
    return record


def _check_game(tournament: Tournament, game: ScheduledGame, record: GameRecord) -> None:
    seating = tuple(tournament.seats[name] for name in game.bots)
    if record.seating != seating:
        raise Difference(
            f"the record has {_listed(record.seating)} at the table, the schedule"
            f" {_listed(seating)}"
        )
    if record.ruleset != game.ruleset:
        raise Difference(f"the record has the rules of {record.ruleset}, not of {game.ruleset}")
    limits = tournament.config.clocks, tournament.config.faults.max_strikes
    if (record.clocks, record.max_strikes) != limits:
        raise Difference("the record has other clocks or strikes than the tournament")
    deck = deals.deck(tournament.seed, game.deal_id, game.ruleset)
    if record.deck != deck:
        raise Difference("the deck is not what the seed gives")
    check(record)


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
                f"{what}: the table of results has {_listed(shown)}, the record {_listed(recorded)}"
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
        (row.seat, row.cause, row.forfeit, row.move, row.detail, row.stderr_tail) for row in rows
    ]
    recorded = [
        (
            fault.seat,
            fault.cause,
            fault.forfeit,
            fault.move,
            fault.evidence.detail,
            fault.evidence.stderr_tail,
        )
        for fault in record.faults
    ]
    if shown != recorded:
        raise Difference("the table of faults differs from the record")


def _listed(value: object) -> str:
    return " ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)
