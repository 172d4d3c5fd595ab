"""Read an archive and check its members against each other.

`ArchivedTournament.verify` calls `verify_tournament`, and then checks four more things: the planned schedule is the committed one,
each record belongs to a game, each part has its seed if all its games are played, and the ratings are right.
`archive_format` defines the members of the zip file.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import isclose
from pathlib import Path
from typing import Self, TypeVar

from pydantic import BaseModel, ValidationError

from referee.errors import UserError, count_text
from referee.match.replay import Difference
from referee.records import BotId, GameRecord, GameResult, ScheduledGame
from referee.schedule import count_games
from referee.tournament import archive_format
from referee.tournament.archive_format import (
    BotsModel,
    Extension,
    Match,
    Rating,
    RatingsModel,
    TournamentModel,
)
from referee.tournament.config import (
    AnyFormat,
    Part,
    TournamentConfig,
    describe_invalid,
    from_canonical_json,
    plan_games,
    played_stages,
)
from referee.tournament.config_file import MAX_BOTS, MAX_GAMES, MAX_LANES
from referee.tournament.terms import CommittedBot, Terms, digest_schedule
from referee.tournament.verify import verify_tournament

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""Matches each name that a tournament can have in a league, also the names to which the league has added a number."""
_RATING_TOLERANCE = 2e-6
"""The largest accepted difference of ratings: another machine may round the last digit differently."""
_AnyModel = TypeVar("_AnyModel", bound=BaseModel)


class ArchivedTournament:
    """A tournament in an archive. This class implements the protocol `Claim` of the module `verify`.

    Args:
        path: the path of the archive, for messages.
        members: the content of each member of the zip file, by its name.

    Raises Difference if a member is wrong or contradicts another member. Raises UserError if this version of the referee
    does not know the format of the configuration or the algorithm of its schedule.
    """

    def __init__(self, path: Path, members: Mapping[str, bytes]) -> None:
        tournament = _parse(TournamentModel, archive_format.TOURNAMENT, members)
        self.config = _load_config(path, tournament)
        self.stored_config = tournament.configuration
        self.parts = _make_parts(self.config, tournament)
        self.stopped_after = tournament.stopped_after
        bots = _parse(BotsModel, archive_format.BOTS, members)
        self.bots = _make_bots(self.config, bots)
        self.committed_bots = tuple(
            CommittedBot(bot.bot, bot.content_hash, bot.manifest.author) for bot in bots.root
        )
        self.schedule = _make_schedule(self.config, self.parts, tournament)
        self._planned = None
        """The games of `planned_schedule`; None if the archive has none, because the first part has exactly these games."""
        if tournament.planned_schedule is not None:
            self._planned = _make_games(
                self.config, tournament.planned_schedule, "planned_schedule"
            )
        self._indices = {game.game_id: game.index for game in self.schedule}
        self._records = archive_format.load_records(members[archive_format.RECORDS])
        self._next: GameRecord | None = None
        """The record that was read last from `_records`, if the method `record` has not returned it yet; otherwise None."""
        self._ratings = _parse(RatingsModel, archive_format.RATINGS, members)
        self._results: list[GameResult] = []

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read an archive and check its bytes.

        Raises UserError if the file cannot be read, is too large or is not an archive, or if this version of the referee does
        not know a format or an algorithm in it. Raises Difference if the archive is damaged or was changed.
        """
        data = _read_file(path)
        members = archive_format.unpack(path, data)
        # Errors are suppressed here. `check_members` reports a missing or changed member, and the constructor reports a
        # member that is wrong but has the right checksum.
        with suppress(Difference, KeyError):
            head = _parse(AnyFormat, archive_format.TOURNAMENT, members)
            if head.format != archive_format.FORMAT:
                raise UserError(
                    f"{path}: {archive_format.TOURNAMENT}: format: {head.format}; this version of the"
                    f" referee knows {archive_format.FORMAT}"
                )
        archive_format.check_members(data, members)
        return cls(path, members)

    def record(self, game: ScheduledGame) -> GameRecord | None:
        """See `Claim.record`."""
        if self._next is None:
            self._next = next(self._records, None)
        if self._next is None:
            return None
        if self._next.game_id != game.game_id:
            if self._indices.get(self._next.game_id, -1) < game.index:
                raise _misplacement_error(self._next)
            return None
        record, self._next = self._next, None
        return record

    def on_game_checked(self, game: ScheduledGame, record: GameRecord) -> None:
        """See `Claim.on_game_checked`. The method `verify` computes ratings from the results that are collected here."""
        self._results.append(GameResult.from_record(self.config.name, game, record))

    def verify(self) -> int:
        """Check everything in the archive; return the number of played games.

        Raises Difference as `verify_tournament` does. It also raises Difference if a record belongs to no
        game, if the planned schedule or a rating is wrong, or if a part has no seed, though all its games are played.
        """
        games = verify_tournament(self)
        self._check_planned_schedule()
        rest = self._next or next(self._records, None)
        if rest is not None:
            raise _misplacement_error(rest)
        self._check_seeds()
        _check_ratings(self._ratings, RatingsModel.from_results(self._results))
        return games

    def _check_planned_schedule(self) -> None:
        """Raise Difference if `planned_schedule` is wrong, or is missing or superfluous.

        All games are compared, because other games can have the same digest: it contains neither the matches nor the ends of ids.
        """
        planned = self.schedule[: self.parts[0].games] if self._planned is None else self._planned
        where = f"{archive_format.TOURNAMENT}: planned_schedule"
        if digest_schedule(planned) != self.parts[0].terms.schedule or (
            self._planned is not None and planned != plan_games(self.config)
        ):
            raise Difference(f"{where}: not the one of the commitment")
        if self._planned == self.schedule[: self.parts[0].games]:
            raise Difference(f"{where}: must be null, because the schedule has the same games")

    def _check_seeds(self) -> None:
        """Raise Difference if a part has no seed, though all its games are played. Without the seed, nobody can check its decks."""
        played = {result.game_id for result in self._results}
        for number, part in enumerate(self.parts):
            games = self.schedule[part.first : part.first + part.games]
            if part.seed is None and all(game.game_id in played for game in games):
                where = f"extensions: {number - 1}: seed" if number else "seed"
                raise Difference(
                    f"{archive_format.TOURNAMENT}: {where}: missing, though all its games are played"
                )


def _read_file(path: Path) -> bytes:
    """Return the bytes of a file. Raises UserError if it cannot be read or is too large."""
    try:
        if not path.is_file():
            raise UserError(f"{path}: {'not a file' if path.exists() else 'no such file'}")
        size = path.stat().st_size
        if size > archive_format.MAX_SIZE:
            raise UserError(
                f"{path}: {size} bytes; an archive has at most {archive_format.MAX_SIZE}"
            )
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error


def _parse(model: type[_AnyModel], name: str, members: Mapping[str, bytes]) -> _AnyModel:
    """Return a JSON member as its model. Raises Difference if the member does not fit the model, or repeats a key."""
    try:
        parsed = model.model_validate_json(members[name])
    except ValidationError as error:
        raise Difference(f"{name}: {describe_invalid(error)}") from error
    # pydantic takes the last value of a repeated key; a person or another program may take the first one
    json.loads(members[name], object_pairs_hook=partial(_check_keys, name), parse_int=str)
    return parsed


def _check_keys(name: str, pairs: Sequence[tuple[str, object]]) -> None:
    """Raise Difference if an object of a JSON member has a key twice."""
    count = Counter(key for key, _ in pairs)
    for key in count:
        if count[key] > 1:
            raise Difference(f"{name}: the key {key} is there {count[key]} times")


def _load_config(path: Path, tournament: TournamentModel) -> TournamentConfig:
    """Return the configuration. Refuse wrong values with which a later check could crash or run for ever.

    Raises Difference if a value is wrong, and UserError if this version of the referee does not know the
    format of the configuration or the algorithm of its schedule.
    """
    where = f"{archive_format.TOURNAMENT}: configuration"
    try:
        config = from_canonical_json(json.dumps(tournament.configuration))
    except UserError as error:
        raise UserError(f"{path}: {where}: {error}") from error
    except ValueError as error:
        raise Difference(f"{where}: {error}") from error
    _check_name(config.name, tournament.name, where)
    if config.lanes is None or config.lanes > MAX_LANES:
        problem = "missing" if config.lanes is None else f"more than {MAX_LANES}"
        raise Difference(f"{where}: lanes: {problem}")
    if len(config.bots) > 2 * MAX_BOTS:
        raise Difference(f"{where}: bots: more than {2 * MAX_BOTS}")
    if config.games > MAX_GAMES:
        raise Difference(f"{where}: stages: more than {MAX_GAMES} games")
    return config


def _check_name(name: str, expected: str, where: str) -> None:
    """Raise Difference if the name is not the expected one, or does not match `_NAME`.

    `referee verify` prints the name. A name with a line break, for example, could imitate output of the referee.
    """
    if _NAME.fullmatch(name) is None:
        raise Difference(f"{where}: name: impossible name")
    if name != expected:
        raise Difference(f"{where}: name: {name}, not {expected}")


def _make_bots(config: TournamentConfig, bots: BotsModel) -> dict[str, BotId]:
    """Return the ids of the bots by `name@version`. Raises Difference if the configuration or a manifest has other names."""
    names = [bot.bot for bot in bots.root]
    configured = [entry.text for entry in config.bots]
    if names != configured:
        raise Difference(
            f"{archive_format.BOTS}: it has {', '.join(names) or 'no bots'},"
            f" but the configuration has {', '.join(configured)}"
        )
    ids = {}
    for bot in bots.root:
        ids[bot.bot] = BotId.parse(bot.bot)
        if bot.manifest.name != ids[bot.bot].name:
            raise Difference(
                f"{archive_format.BOTS}: {bot.bot}: its manifest has the name {bot.manifest.name}"
            )
    return ids


def _make_parts(config: TournamentConfig, tournament: TournamentModel) -> tuple[Part, ...]:
    """Return the parts of the tournament. The first part has the games of the schedule that no extension adds."""
    added = [
        count_games(
            (replace(stage, matches=each.matches) for stage in config.stages), len(config.bots)
        )
        for each in tournament.extensions
    ]
    first = sum(len(match.games) for match in tournament.schedule) - sum(added)
    parts = [_make_part(0, first, None, tournament)]
    for games, extension in zip(added, tournament.extensions, strict=True):
        first = parts[-1].first + parts[-1].games
        parts.append(_make_part(first, games, extension.matches, extension))
    return tuple(parts)


def _make_part(
    first: int, games: int, matches: int | None, source: TournamentModel | Extension
) -> Part:
    """Return a part. Raises Difference if the text of its terms cannot be parsed."""
    seed = None if source.seed is None else bytes.fromhex(source.seed)
    try:
        terms = Terms.parse(source.terms)
    except ValueError as error:
        raise Difference(f"{archive_format.TOURNAMENT}: terms: {error}") from error
    return Part(first, games, matches, source.commitment, terms, seed, finished=seed is not None)


def _make_schedule(
    config: TournamentConfig, parts: Sequence[Part], tournament: TournamentModel
) -> tuple[ScheduledGame, ...]:
    """Return the games of the schedule in the archive. `verify_tournament` compares them with the configuration.

    Without looks, the first part must have exactly as many games as the configuration makes. A look may drop games,
    so with looks there may be fewer, but at least one. Raises Difference if the number is wrong, and as `_make_games` does.
    """
    most = count_games(played_stages(config, tournament.stopped_after), len(config.bots))
    if not 0 < parts[0].games <= most or (not config.has_looks and parts[0].games < most):
        count = sum(len(match.games) for match in tournament.schedule)
        expected = most + sum(part.games for part in parts[1:])
        source = (
            "configuration and extensions make" if len(parts) > 1 else "the configuration makes"
        )
        raise Difference(
            f"{archive_format.TOURNAMENT}: schedule: {count_text(count, 'game')}, but {source}"
            f" {'at most ' if config.has_looks else ''}{expected}"
        )
    return _make_games(config, tournament.schedule, "schedule")


def _make_games(
    config: TournamentConfig, matches: Iterable[Match], key: str
) -> tuple[ScheduledGame, ...]:
    """Return the games of matches; `key` is the key of the matches in `tournament.json`, for messages.

    Raises Difference if a match has an unknown stage, or a wrong number of lanes or deals.
    """
    where = f"{archive_format.TOURNAMENT}: {key}"
    games: list[ScheduledGame] = []
    for number, match in enumerate(matches, start=1):
        if not 0 <= match.stage < len(config.stages):
            raise Difference(
                f"{where}: match {number}: the configuration has no stage {match.stage}"
            )
        if not len(match.lanes) == len(match.deals) == len(match.games):
            raise Difference(
                f"{where}: match {number}: it must have as many lanes and deals as games"
            )
        for seating, (game_id, deal_id, lane) in enumerate(
            zip(match.games, match.deals, match.lanes, strict=True)
        ):
            games.append(
                ScheduledGame(
                    index=len(games),
                    stage=match.stage,
                    round=match.round,
                    match=number,
                    seating=seating,
                    lane=lane,
                    bots=match.bots[seating:] + match.bots[:seating],
                    deal_id=deal_id,
                    game_id=game_id,
                )
            )
    return tuple(games)


def _misplacement_error(record: GameRecord) -> Difference:
    return Difference(
        f"{archive_format.RECORDS}: {record.game_id} is not in the schedule, or is out of order"
    )


def _check_ratings(stored: RatingsModel, computed: RatingsModel) -> None:
    for ruleset, table in computed.root.items():
        for bot, rating in table.items():
            stored_rating = stored.root.get(ruleset, {}).get(bot)
            if stored_rating is None or not _are_equal(stored_rating, rating):
                raise Difference(
                    f"{archive_format.RATINGS}: {ruleset}: {bot} has {stored_rating or 'none'},"
                    f" but its games give {rating}"
                )
    for ruleset, table in stored.root.items():
        for bot in table:
            if bot not in computed.root.get(ruleset, {}):
                raise Difference(
                    f"{archive_format.RATINGS}: {ruleset}: {bot} has ratings, but has not played"
                )


def _are_equal(one: Rating, other: Rating) -> bool:
    """Return True if two ratings are equal except for rounding."""
    return all(
        isclose(getattr(one, name), getattr(other, name), rel_tol=0, abs_tol=_RATING_TOLERANCE)
        for name in Rating.model_fields
    )
