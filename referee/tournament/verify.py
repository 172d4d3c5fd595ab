"""Verify a stored tournament from its seed and the rules.

`verify_tournament` compares seed, configuration, bots and planned schedule with the commitment. It computes the schedule
again, from the configuration and from the results before each look, and compares the stored schedule with it. It compares each
game record with the schedule, with the deck that the seed gives, and with a replay. The tournament may be in a league
(`LeagueTournament` in `verify_league`) or in an archive (`ArchivedTournament` in `archive_reader`). Both classes implement
`Claim`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Protocol

from referee import deals
from referee.errors import UserError, count_text
from referee.match.replay import Difference, check_record
from referee.records import BotId, GameRecord, GameResult, ScheduledGame
from referee.result_columns import ResultColumns
from referee.schedule.extension import extension_games
from referee.tournament.config import (
    MAX_IN_FLIGHT,
    Part,
    TournamentConfig,
    extension_matches,
    find_part,
    part_title,
    played_stages,
)
from referee.tournament.course import Course, Look
from referee.tournament.ladder import make_course
from referee.tournament.terms import (
    CommittedBot,
    digest_bots,
    digest_configuration,
    digest_schedule,
)


class Claim(Protocol):
    """What a league or an archive claims about a tournament."""

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

        A league compares the record with the other database tables about the game, and raises Difference if they
        differ. An archive collects the result, to check the ratings after the last game.
        """
        ...


def verify_tournament(claim: Claim) -> int:
    """Check commitments, schedule, games and looks of a tournament; return the number of games that were checked.

    A game without a record is an error if its part of the tournament is finished. Raises Difference at the first
    error.
    """
    _check_commitments(claim)
    course = _make_course(claim)
    _check_that_stop_is_a_look(claim, course)
    checks = _GameChecks(claim)
    planned = before = course.games
    ahead = None
    while ahead is None and (look := course.next_look) is not None:
        before = course.games
        checks.check(before[: look.games])
        ahead = _check_look(claim, course, look, checks)
    parts = _compute_parts(claim, course.games if ahead is None else before)
    _check_number_of_games(claim, parts)
    for number, (games, part) in enumerate(zip((planned, *parts[1:]), claim.parts, strict=True)):
        _compare(number, "schedule", digest_schedule(games), part.terms.schedule)
    checks.check(list(chain.from_iterable(parts)), ahead)
    checks.check_missing()
    return len(checks.results)


@contextmanager
def add_game_id(game_id: str) -> Iterator[None]:
    """If the block raises Difference or UserError, raise a Difference with the id of the game before the message."""
    try:
        yield
    except (Difference, UserError) as difference:
        raise Difference(f"{game_id}: {difference}") from difference


def format_value(value: object) -> str:
    """Return a value as text for people: an empty tuple as `none`, any other tuple as its items with spaces."""
    return " ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def _check_commitments(claim: Claim) -> None:
    """Check the commitment of each part, and its terms except for the schedule, which `verify_tournament` checks later."""
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


def _check_that_stop_is_a_look(claim: Claim, course: Course) -> None:
    stop = claim.stopped_after
    if stop is not None and stop not in course.stops:
        raise Difference(
            f"the tournament cannot have stopped after {count_text(stop, 'round')}: there is no look after that round"
        )


def _make_course(claim: Claim) -> Course:
    """Return the course of the tournament before its first look."""
    config = claim.config
    if config.ladder is not None and len(claim.parts) > 1:
        raise Difference("a ladder has no extension")
    try:
        return make_course(config)
    except ValueError as error:
        raise Difference(f"the configuration makes no schedule: {error}") from error


def _check_look(claim: Claim, course: Course, look: Look, checks: _GameChecks) -> str | None:
    """Check what happened at the next look of the course.

    Return None if the look changes nothing, or if an outcome of the look is stored; the caller compares the stored schedule
    later. Return an error message if no outcome is stored yet, because the tournament is still running or was interrupted.
    A missing outcome alone is no error, so the caller raises the message only if a game after the look has a record.

    Raises Difference in three cases: the tournament stopped early at a wrong look; it is finished, but a game before the look has
    no record; or the configuration makes no schedule.

    Args:
        claim: what the league or the archive claims.
        course: the course before the look. It takes the look here, unless records of earlier games are missing.
        look: the next look of the course.
        checks: the checks of all games before the look.
    """
    where, is_stop = f"after {count_text(look.rounds, 'round')}", claim.stopped_after == look.rounds
    if len(checks.results) < look.games:
        checks.check_missing()
        return f"games before the look after round {look.rounds} are missing, but later ones are stored"
    before, stored = course.games[look.games :], claim.schedule[look.games : claim.parts[0].games]
    try:
        course.take_look(ResultColumns.from_results(checks.results))
    except ValueError as error:
        raise Difference(f"the configuration makes no schedule: {error}") from error
    if is_stop and course.stopped_after is None and not course.stop():
        raise Difference(f"{where} the standings were not settled, but the games ended")
    if not is_stop and course.stopped_after is not None:
        settled = f"{where} the standings were settled, but games followed"
        if claim.stopped_after is not None:
            raise Difference(settled)
        return settled
    after = course.games[look.games :]
    if after != before and stored == before:  # the changed games are not stored
        return f"{where} the results changed the tables, but games were played at the old tables"
    return None


def _compute_parts(
    claim: Claim, first_part: Sequence[ScheduledGame]
) -> tuple[tuple[ScheduledGame, ...], ...]:
    """Return the games of each part of the tournament."""
    config = claim.config
    assert config.lanes is not None  # noqa: S101 - stored configurations have a number of lanes
    try:
        added = extension_games(
            config.schedule,
            config.name,
            list(claim.bots),
            played_stages(config, claim.stopped_after),
            extension_matches(claim.parts),
            lanes=config.lanes,
            last=first_part[-1],
        )
    except ValueError as error:
        raise Difference(f"the configuration makes no schedule: {error}") from error
    return (tuple(first_part), *added)


def _check_number_of_games(claim: Claim, parts: Sequence[Sequence[ScheduledGame]]) -> None:
    games = sum(map(len, parts))
    if len(claim.schedule) != games:
        raise Difference(f"the schedule has {count_text(len(claim.schedule), 'game')}, not {games}")
    for number, (computed, part) in enumerate(zip(parts, claim.parts, strict=True)):
        if (computed[0].index, len(computed)) != (part.first, part.games):
            title = part_title(number) or "the schedule"
            raise Difference(
                f"{title}: the number of stored games does not fit the number of matches"
            )


class _GameChecks:
    """Checks the games of a tournament in the order of the schedule."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._checked = 0
        """The number of games that were compared with the schedule."""
        self._missing: list[ScheduledGame] = []
        """The compared games that have no record."""
        self.results: list[GameResult] = []
        """The results of the compared games that have a record."""
        self._last_deal: tuple[str, tuple[int, ...]] = "", ()
        """The deal id and the deck of the last checked record."""

    def check(self, schedule: Sequence[ScheduledGame], ahead: str | None = None) -> None:
        """Check the games that come after the games of earlier calls.

        Args:
            schedule: the computed schedule. It includes the games of earlier calls.
            ahead: the error message that is raised if one of these games has a record; None if records are allowed.
        """
        new = slice(self._checked, len(schedule))
        for computed, game in zip(schedule[new], self._claim.schedule[new], strict=False):
            if computed != game:
                raise Difference(
                    f"{computed.game_id}: the stored schedule differs from that of the configuration"
                )
        for game in self._claim.schedule[new]:
            with add_game_id(game.game_id):
                self._check_record(game, ahead)
        self._checked = len(schedule)

    def _check_record(self, game: ScheduledGame, ahead: str | None) -> None:
        record = self._claim.record(game)
        if record is None:
            self._missing.append(game)
            return
        if ahead is not None:
            raise Difference(ahead)
        _check_game(self._claim, game, record)
        deal_id, deck = self._last_deal
        if game.deal_id == deal_id and record.deck != deck:
            raise Difference("the record has another deck than an earlier game with the same deal")
        self._last_deal = game.deal_id, record.deck
        self._claim.on_game_checked(game, record)
        self.results.append(GameResult.from_record(self._claim.config.name, game, record))

    def check_missing(self) -> None:
        """Raise Difference if a part of the tournament is finished, but a game of the part has no record."""
        parts = self._claim.parts
        lost = [game.game_id for game in self._missing if find_part(parts, game.index).finished]
        if lost:
            more = f" and {len(lost) - 1} more are" if len(lost) > 1 else " is"
            raise Difference(
                f"{len(self.results)} of {len(self._claim.schedule)} games verified;"
                f" {lost[0]}{more} not stored"
            )


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
    most = claim.config.games_in_flight or MAX_IN_FLIGHT
    if (largest := max((move.batch_size for move in record.moves), default=1)) > most:
        raise Difference(
            f"a batch has {largest} requests, but a bot plays at most {count_text(most, 'game')}"
        )
    seed = find_part(claim.parts, game.index).seed
    if seed is not None and record.deck != deals.deck(seed, game.deal_id, ruleset):
        raise Difference("the deck in the record is not the one that the seed gives")
    check_record(record)
