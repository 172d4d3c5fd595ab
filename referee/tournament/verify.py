"""A tournament checked from its seed: commitment, schedule, decks, moves, results, and what is shown.

Where it is kept is no matter: `stored` has the tournaments of a league, `archive` those of a file.

What a league says of its tournaments and games, to be checked against their records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Protocol

from referee import deals
from referee.errors import Cause, UserError
from referee.match.replay import Difference, check_record
from referee.records import BotId, ChargedFault, Fault, GameRecord, GameResult, ScheduledGame
from referee.schedule import ALGORITHMS, extended
from referee.store import League, StoredGame, storable
from referee.tournament.config import (
    Part,
    TournamentConfig,
    extension_matches,
    find_part,
    is_table_settled,
    list_looks,
    part_title,
    played_stages,
)
from referee.tournament.create import find_tournament


class Claim(Protocol):
    """What is said of a tournament."""

    where: str
    """What is at fault when it cannot be checked: a folder or a file."""
    config: TournamentConfig
    seats: dict[str, BotId]
    """The bots by what the schedule calls them, in its order."""
    schedule: tuple[ScheduledGame, ...]
    parts: tuple[Part, ...]
    """A seed that is None is secret as yet: no deck of the part can be checked."""
    stopped_after: int | None
    """It stopped after so many rounds, when its table was settled; None: it did not."""

    def record(self, game: ScheduledGame) -> GameRecord | None:
        """The record of a game, if there is one; asked for in the order of the schedule.

        Raises Difference or UserError where there should be one and is not.
        """
        ...

    def check_shown(self, game: ScheduledGame, record: GameRecord) -> None:
        """Hold what else is said of a game against its record. Raises Difference."""
        ...


def verify_tournament(claim: Claim) -> int:
    """Check everything that is said of a tournament; returns how many games that were.

    Raises Difference at the first thing that is not right, in the order of the schedule, or when it
    was finished and games are gone, and UserError where this version does not know how the schedule
    was made.
    """
    for number, part in enumerate(claim.parts):
        _check_seed(number, part)
    _check_look(claim)
    _check_schedule(claim)
    gone = []
    played: dict[int, GameResult] = {}
    for game in claim.schedule:
        with naming(game.game_id):
            record = claim.record(game)
            if record is None:
                gone.append(game)
                continue
            _check_game(claim, game, record)
            claim.check_shown(game, record)
            played[game.index] = GameResult.from_record(claim.config.name, game, record)
    games = len(claim.schedule)
    checked = games - len(gone)
    lost = [game.game_id for game in gone if find_part(claim.parts, game.index).finished]
    if lost:
        more = f" and {len(lost) - 1} more are" if len(lost) > 1 else " is"
        raise Difference(f"{checked} of {games} games check; {lost[0]}{more} not stored")
    _check_stop(claim, played)
    return checked


@contextmanager
def naming(game_id: str) -> Iterator[None]:
    """Say of which game it is that something is not right."""
    try:
        yield
    except (Difference, UserError) as difference:
        raise Difference(f"{game_id}: {difference}") from difference


def listed(value: object) -> str:
    """A value for people; those of a tuple with spaces between them."""
    return " ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def _check_seed(number: int, part: Part) -> None:
    if part.seed is None:
        return
    commitment = deals.commitment(part.seed)
    if commitment != part.commitment:
        where = f"{part_title(number)}: " if number else ""
        raise Difference(f"{where}the seed's SHA-256 is {commitment}, not {part.commitment}")


def _check_schedule(claim: Claim) -> None:
    config = claim.config
    assert config.lanes is not None  # noqa: S101 - settled when the tournament was created
    if config.schedule not in ALGORITHMS:
        raise UserError(
            f"{claim.where}: tournament {config.name}: its schedule was made by"
            f" {config.schedule!r}, which this version of the referee does not know"
        )
    try:
        parts = extended(
            config.schedule,
            config.name,
            list(claim.seats),
            played_stages(config, claim.stopped_after),
            extension_matches(claim.parts),
            lanes=config.lanes,
        )
    except ValueError as error:
        raise Difference(f"the configuration makes no schedule: {error}") from error
    schedule = list(chain.from_iterable(parts))
    if len(claim.schedule) != len(schedule):
        raise Difference(f"the schedule has {len(claim.schedule)} games, not {len(schedule)}")
    for made, kept in zip(schedule, claim.schedule, strict=True):
        if made != kept:
            raise Difference(f"{made.game_id}: the schedule has it otherwise than it is stored")
    for number, (games, part) in enumerate(zip(parts, claim.parts, strict=True)):
        if (games[0].index, len(games)) != (part.first, part.games):
            raise Difference(
                f"{part_title(number) or 'the schedule'}: it has other games than its matches make"
            )


def _check_look(claim: Claim) -> None:
    stop = claim.stopped_after
    if stop is not None and stop not in {look.rounds for look in list_looks(claim.config)[:-1]}:
        raise Difference(f"it cannot have been settled after {stop} rounds: nobody looked")


def _check_stop(claim: Claim, played: Mapping[int, GameResult]) -> None:
    """It must have stopped at the first look that finds its table settled, and at no other."""
    stop = claim.stopped_after
    last = max((index for index in played if index < claim.parts[0].games), default=-1)
    for look in list_looks(claim.config)[:-1]:
        if last < look.games and look.rounds != stop:
            return  # as yet it has not gone on
        games = [played[index] for index in range(look.games) if index in played]
        if len(games) < look.games:
            raise Difference(
                f"games of the first {look.rounds} rounds are missing, but no later ones"
            )
        if is_table_settled(claim.config, games) != (look.rounds == stop):
            said = (
                "settled, but it went on" if look.rounds != stop else "not settled, but it stopped"
            )
            raise Difference(f"after {look.rounds} rounds the table was {said}")
        if look.rounds == stop:
            return


def _check_game(claim: Claim, game: ScheduledGame, record: GameRecord) -> None:
    seating = tuple(claim.seats[name] for name in game.bots)
    if record.seating != seating:
        raise Difference(
            f"the record has {listed(record.seating)} at the table, the schedule {listed(seating)}"
        )
    ruleset = claim.config.stages[game.stage].ruleset
    if record.ruleset != ruleset:
        raise Difference(f"the record has the rules of {record.ruleset}, not of {ruleset}")
    limits = claim.config.clocks, claim.config.faults.max_strikes
    if (record.clocks, record.max_strikes) != limits:
        raise Difference("the record has other clocks or strikes than the tournament")
    seed = find_part(claim.parts, game.index).seed
    if seed is not None:
        deck = deals.deck(seed, game.deal_id, ruleset)
        if record.deck != deck:
            raise Difference("the deck is not what the seed gives")
    check_record(record)


class LeagueTournament:
    """A tournament of a league, as `verify_tournament` takes it.

    Raises NotFoundError, UserError and RefereeError as `find` does.
    """

    def __init__(self, league: League, name: str) -> None:
        found = find_tournament(league, name)
        self.where = league.where
        self.config, self.seats, self.schedule = found.config, found.seats, found.schedule
        self.parts, self.stopped_after = found.parts, found.stopped_after
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


def verify_free_games(league: League) -> int:
    """Check the moves and results of all games outside of tournaments; returns how many there are.

    Their decks come from seeds that are not kept. Raises Difference as `verify_tournament` does.
    """
    free = [row for row in league.results(free=True) if not row.tournament]
    shown = _Tables(league, None)
    for row in free:
        with naming(row.game_id):
            record = _record(league, row.game_id)
            check_record(record)
            shown.check(record)
    return len(free)


class _Tables:
    """What the tables show of games: of one tournament, or of all games, free ones included."""

    def __init__(self, league: League, tournament: str | None) -> None:
        results = league.results(tournament=tournament, free=True)
        self._results = {row.game_id: row for row in results}
        self.games = {row.game_id: row for row in league.games(tournament=tournament)}
        self._faults = defaultdict[str, list[ChargedFault]](list)
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


def _check_result(record: GameRecord, row: GameResult | None) -> None:
    """What ratings are made of must be what the record says."""
    if row is None:
        raise Difference("the table of results has no seats for it")
    for what, shown, recorded in (
        ("ruleset", row.ruleset, record.ruleset.name),
        ("bots", row.bots, tuple(map(str, record.seating))),
        ("scores", row.scores, record.scores),
        ("ranks", row.ranks, record.ranks),
        ("forfeits", row.forfeited, record.forfeited),
    ):
        if shown != recorded:
            raise Difference(
                f"{what}: the table of results has {listed(shown)}, the record {listed(recorded)}"
            )


def _check_summary(record: GameRecord, row: StoredGame) -> None:
    recorded = (
        record.termination.value,
        len(record.moves),
        record.started_at_us,
        record.duration_us,
    )
    if (row.termination, row.decisions, row.started_at_us, row.duration_us) != recorded:
        raise Difference("the table of games has its end or its times otherwise than the record")


def _check_faults(record: GameRecord, rows: list[ChargedFault]) -> None:
    stored = [_comparable(row.fault) for row in rows]
    if stored != [_comparable(fault) for fault in record.faults]:
        raise Difference("the table of faults differs from the record")


def _comparable(fault: Fault) -> tuple[int, Cause, bool, int, str, str]:
    """Return what the table and the record must agree on; the table keeps texts as `storable`."""
    return (
        fault.seat,
        fault.cause,
        fault.forfeit,
        fault.move,
        storable(fault.evidence.detail),
        storable(fault.evidence.stderr_tail),
    )
