"""Verify a stored tournament from its seed and the rules.

`verify_tournament` compares seed, configuration, bots and planned schedule with the commitment, and the stored schedule
with the configuration. It compares each game record with the schedule, with the deck that the seed gives, and with a
replay. The tournament may be in a league (`LeagueTournament`) or in an archive (`ArchivedTournament` in
`archive_reader`). Both classes implement `Claim`. A league also has tables with some data of each record. These tables are compared with the record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any, Protocol

from referee import deals
from referee.errors import Cause, UserError
from referee.match.replay import Difference, check_record
from referee.records import BotId, ChargedFault, Fault, GameRecord, GameResult, ScheduledGame
from referee.result_columns import ResultColumns
from referee.schedule.extension import ALGORITHMS, extended_schedule
from referee.store import StoredGame, escape_nul
from referee.store.league import League
from referee.tournament.config import (
    Part,
    TournamentConfig,
    extension_matches,
    find_part,
    part_title,
    plan_games,
    played_stages,
)
from referee.tournament.create import committed_bots, find_tournament
from referee.tournament.looks import TakenLook, list_looks, take_looks
from referee.tournament.terms import (
    CommittedBot,
    digest_bots,
    digest_configuration,
    digest_schedule,
)


class Claim(Protocol):
    """What a league or an archive claims about a tournament."""

    where: str
    """The path of the league or of the archive, for messages."""
    config: TournamentConfig
    stored_config: dict[str, Any]
    """The configuration as JSON values, as it is stored."""
    committed_bots: tuple[CommittedBot, ...]
    """The bots with their contents and authors, in the order of the configuration."""
    bots: dict[str, BotId]
    """The bots by their names in the schedule (`name@version`), in the order of the configuration."""
    schedule: tuple[ScheduledGame, ...]
    parts: tuple[Part, ...]
    """The parts of the tournament. If the seed of a part is None, the decks of this part are not checked."""
    stopped_after: int | None
    """How many rounds were played when the tournament stopped early; None if it did not stop early."""

    def record(self, game: ScheduledGame) -> GameRecord | None:
        """Return the record of a game; None if the game has no record yet. Call this in the order of the schedule.

        Raises Difference or UserError if the record cannot be read or is misplaced.
        """
        ...

    def on_game_checked(self, game: ScheduledGame, record: GameRecord) -> None:
        """Take note of a record that was checked and found correct.

        A league compares its other tables with the record, and raises Difference if they differ. An archive
        collects the result, to check the ratings after the last game.
        """
        ...


def verify_tournament(claim: Claim) -> int:
    """Check commitments, schedule, games and early stop of a tournament; return the number of games that were checked.

    A game without a record is an error if its part of the tournament is finished. Raises Difference at the first
    error. Raises UserError if this version of the referee does not know the algorithm of the schedule.
    """
    _check_commitments(claim)
    _check_that_stop_is_a_look(claim)
    _check_schedule(claim)
    missing = []
    results: dict[int, GameResult] = {}
    for game in claim.schedule:
        with add_game_id(game.game_id):
            record = claim.record(game)
            if record is None:
                missing.append(game)
                continue
            _check_game(claim, game, record)
            claim.on_game_checked(game, record)
            results[game.index] = GameResult.from_record(claim.config.name, game, record)
    lost = [game.game_id for game in missing if find_part(claim.parts, game.index).finished]
    if lost:
        more = f" and {len(lost) - 1} more are" if len(lost) > 1 else " is"
        raise Difference(
            f"{len(results)} of {len(claim.schedule)} games verified; {lost[0]}{more} not stored"
        )
    _check_looks(claim, results)
    return len(results)


@contextmanager
def add_game_id(game_id: str) -> Iterator[None]:
    """Raise a Difference or UserError again, as a Difference with the id of a game before the message."""
    try:
        yield
    except (Difference, UserError) as difference:
        raise Difference(f"{game_id}: {difference}") from difference


def format_value(value: object) -> str:
    """Return a value as text for people: an empty tuple as `none`, any other tuple as its items with spaces."""
    return " ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def _check_commitments(claim: Claim) -> None:
    """Check the commitment of each part and its terms; `_check_schedule` compares the schedule with the terms."""
    try:
        configuration = digest_configuration(claim.stored_config)
    except ValueError as error:
        raise Difference(f"the configuration has no canonical JSON: {error}") from error
    bots = digest_bots(claim.committed_bots)
    for number, part in enumerate(claim.parts):
        _compare(number, "terms", part.terms.commitment, part.commitment, "as the commitment says")
        if part.seed is not None:
            _compare(number, "seed", deals.seed_digest(part.seed), part.terms.seed)
        _compare(number, "configuration", configuration, part.terms.configuration)
        _compare(number, "bots", bots, part.terms.bots)


def _compare(
    number: int, what: str, computed: str, right: str, source: str = "as the terms say"
) -> None:
    """Raise Difference if the SHA-256 of something in part `number` is not the right one."""
    if computed != right:
        where = f"{part_title(number)}: " if number else ""
        raise Difference(f"{where}the SHA-256 of the {what} is {computed}, not {right} {source}")


def _check_schedule(claim: Claim) -> None:
    config = claim.config
    assert config.lanes is not None  # noqa: S101 - stored configurations have a number of lanes
    if config.schedule not in ALGORITHMS:
        raise UserError(
            f"{claim.where}: tournament {config.name}: its schedule was made by"
            f" {config.schedule!r}, which this version of the referee does not know"
        )
    try:
        parts = extended_schedule(
            config.schedule,
            config.name,
            list(claim.bots),
            played_stages(config, claim.stopped_after),
            extension_matches(claim.parts),
            lanes=config.lanes,
        )
    except ValueError as error:
        raise Difference(f"the configuration makes no schedule: {error}") from error
    schedule = list(chain.from_iterable(parts))
    if len(claim.schedule) != len(schedule):
        raise Difference(f"the schedule has {len(claim.schedule)} games, not {len(schedule)}")
    for computed, stored in zip(schedule, claim.schedule, strict=True):
        if computed != stored:
            raise Difference(
                f"{computed.game_id}: the stored schedule differs from that of the configuration"
            )
    for number, (games, part) in enumerate(zip(parts, claim.parts, strict=True)):
        if (games[0].index, len(games)) != (part.first, part.games):
            title = part_title(number) or "the schedule"
            raise Difference(f"{title}: the stored games do not follow from its number of matches")
    # Only a tournament with `until` may play other games than the planned ones.
    planned = parts[0] if config.until is None else plan_games(config)
    for number, (games, part) in enumerate(zip((planned, *parts[1:]), claim.parts, strict=True)):
        _compare(number, "schedule", digest_schedule(games), part.terms.schedule)


def _check_that_stop_is_a_look(claim: Claim) -> None:
    stop = claim.stopped_after
    if stop is not None and stop not in {look.rounds for look in list_looks(claim.config)[:-1]}:
        raise Difference(
            f"the tournament cannot have stopped after {stop} rounds: there is no look after that round"
        )


def _check_looks(claim: Claim, results: Mapping[int, GameResult]) -> None:
    """Check that the tournament stopped early at a look with settled standings, and that no earlier look had any.

    If the tournament did not stop early, no look before a stored game may have settled standings.
    `results` has the result of each stored game, by the index of the game in the schedule.
    """
    stop = claim.stopped_after
    last = max((index for index in results if index < claim.parts[0].games), default=-1)
    taken: TakenLook | None = None
    for look in list_looks(claim.config)[:-1]:
        if last < look.games and look.rounds != stop:
            return  # no game after this look is stored, so the look may not have taken place yet
        games = [results[index] for index in range(look.games) if index in results]
        if len(games) < look.games:
            raise Difference(
                f"games of the first {look.rounds} rounds are missing, but later ones are stored"
            )
        taken = take_looks(claim.config, ResultColumns.from_results(games), look, taken)
        if taken.verdicts.are_settled != (look.rounds == stop):
            stopped = look.rounds == stop
            error = "not settled, but the games ended" if stopped else "settled, but games followed"
            raise Difference(f"after {look.rounds} rounds the standings were {error}")
        if look.rounds == stop:
            return


def _check_game(claim: Claim, game: ScheduledGame, record: GameRecord) -> None:
    seating = tuple(claim.bots[name] for name in game.bots)
    if record.seating != seating:
        raise Difference(
            f"the record has {format_value(record.seating)} at the table,"
            f" the schedule {format_value(seating)}"
        )
    ruleset = claim.config.stages[game.stage].ruleset
    if record.ruleset != ruleset:
        raise Difference(f"the record has the rules of {record.ruleset}, not of {ruleset}")
    clocks = claim.config.clocks
    if claim.config.scale_clocks:
        if record.machine is None:
            raise Difference("the record has no machine, but the tournament scales its clocks")
        clocks = clocks.scale(record.machine.speed)
    limits = clocks, claim.config.faults.max_strikes
    if (record.clocks, record.max_strikes) != limits:
        raise Difference("the record has other clocks or another max_strikes than the tournament")
    seed = find_part(claim.parts, game.index).seed
    if seed is not None and record.deck != deals.deck(seed, game.deal_id, ruleset):
        raise Difference("the deck in the record is not the one that the seed gives")
    check_record(record)


class LeagueTournament:
    """A tournament in a league; it implements `Claim`.

    Creating it raises NotFoundError, UserError and RefereeError as `find_tournament` does.
    """

    def __init__(self, league: League, name: str) -> None:
        tournament = find_tournament(league, name)
        self.where = league.where
        self.config, self.bots = tournament.config, tournament.bots
        self.stored_config = tournament.stored_config
        self.committed_bots = committed_bots(league, tournament.bots)
        self.schedule, self.parts = tournament.schedule, tournament.parts
        self.stopped_after = tournament.stopped_after
        self._league = league
        self._tables = _Tables(league, name)

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
    free = [row for row in league.results(free=True) if not row.tournament]
    tables = _Tables(league, None)
    for row in free:
        with add_game_id(row.game_id):
            record = _load_record(league, row.game_id)
            check_record(record)
            tables.check(record)
    return len(free)


class _Tables:
    """The rows of the database about the games of a tournament, or about all games if `tournament` is None."""

    def __init__(self, league: League, tournament: str | None) -> None:
        results = league.results(tournament=tournament, free=True)
        self._results = {row.game_id: row for row in results}
        self.games = {row.game_id: row for row in league.games(tournament=tournament)}
        self._faults = defaultdict[str, list[ChargedFault]](list)
        for fault in league.faults(tournament=tournament):
            self._faults[fault.game_id].append(fault)

    def check(self, record: GameRecord) -> None:
        """Compare the rows about a stored game with the record of the game. Raises Difference if they differ."""
        _check_result(record, self._results.get(record.game_id))
        _check_summary(record, self.games[record.game_id])
        _check_faults(record, self._faults[record.game_id])


def _load_record(league: League, game_id: str) -> GameRecord:
    """Return the record of a stored game. Raises Difference if the record belongs to another game."""
    record = league.record(game_id)
    if record.game_id != game_id:
        raise Difference(f"the stored record is that of game {record.game_id}")
    return record


def _check_result(record: GameRecord, row: GameResult | None) -> None:
    """Compare a row of the table of results with the record. `row` is None if the table has no row for the game."""
    if row is None:
        raise Difference("the table of results has no row for this game")
    for what, stored, recorded in (
        ("ruleset", row.ruleset, record.ruleset.name),
        ("bots", row.bots, tuple(map(str, record.seating))),
        ("scores", row.scores, record.scores),
        ("ranks", row.ranks, record.ranks),
        ("forfeits", row.forfeited, record.forfeited),
    ):
        if stored != recorded:
            raise Difference(
                f"{what}: the table of results has {format_value(stored)},"
                f" the record {format_value(recorded)}"
            )


def _check_summary(record: GameRecord, row: StoredGame) -> None:
    end = record.termination.value, len(record.moves)
    times = record.started_at_us, record.duration_us
    if (row.termination, row.decisions, row.started_at_us, row.duration_us) != (*end, *times):
        raise Difference("the end or the times in the table of games differ from the record")
    if row.machine != record.machine:
        raise Difference("the machine in the table of games differs from the record")


def _check_faults(record: GameRecord, rows: list[ChargedFault]) -> None:
    stored = [_comparable(row.fault) for row in rows]
    if stored != [_comparable(fault) for fault in record.faults]:
        raise Difference("the table of faults differs from the record")


def _comparable(fault: Fault) -> tuple[int, Cause, bool, int, str, str]:
    """Return the values of a fault that must be equal in the table of faults and in the record.

    The table stores texts as `escape_nul` returns them. So `escape_nul` must be applied to the record, too.
    """
    return (
        fault.seat,
        fault.cause,
        fault.forfeit,
        fault.move,
        escape_nul(fault.evidence.detail),
        escape_nul(fault.evidence.stderr_tail),
    )
