"""Read an archive and check every part of it against the others.

`ArchivedTournament` lets `verify_tournament` check the tournament, and then checks what only archives have: ratings,
and the seeds of finished games. `archive_format` describes the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import isclose
from pathlib import Path
from typing import Self, TypeVar

from pydantic import BaseModel, ValidationError

from referee.errors import UserError
from referee.match.replay import Difference
from referee.records import BotId, GameRecord, GameResult, ScheduledGame
from referee.schedule import Stage
from referee.tournament import archive_format
from referee.tournament.archive_format import (
    BotsPart,
    Extension,
    Head,
    Rating,
    RatingsPart,
    TournamentPart,
)
from referee.tournament.config import Part, TournamentConfig, from_canonical_json, played_stages
from referee.tournament.config_file import MAX_GAMES
from referee.tournament.verify import verify_tournament

_RATING_TOLERANCE = 2e-6
"""The largest accepted difference of ratings: another machine may round the last digit differently."""
_AnyPart = TypeVar("_AnyPart", bound=BaseModel)


class ArchivedTournament:
    """A tournament in an archive; it implements `verify.Claim`.

    Args:
        path: the archive, for messages.
        parts: its parts by name.

    Raises Difference if the parts do not fit each other, and UserError if this version of the referee does
    not know the format of the configuration.
    """

    def __init__(self, path: Path, parts: Mapping[str, bytes]) -> None:
        tournament = _parse(TournamentPart, archive_format.TOURNAMENT, parts)
        self.where = str(path)
        self.config = _load_config(path, tournament)
        self.parts = _make_parts(self.config, tournament)
        self.stopped_after = tournament.stopped_after
        self.seats = _make_seats(self.config, _parse(BotsPart, archive_format.BOTS, parts))
        self.schedule = _make_schedule(self.config, self.parts, tournament)
        self._indices = {game.game_id: game.index for game in self.schedule}
        self._records = archive_format.load_records(parts[archive_format.RECORDS])
        self._next: GameRecord | None = None
        """The next record of the stream if it has been read already."""
        self._ratings = _parse(RatingsPart, archive_format.RATINGS, parts)
        self._results: list[GameResult] = []

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read an archive and check its bytes.

        Raises UserError if the file is not an archive or has another format, and Difference if it is damaged
        or was changed.
        """
        data = _read_file(path)
        parts = archive_format.unpack(path, data)
        with suppress(
            Difference, KeyError
        ):  # `check_parts` reports a part that is wrong or missing
            head = _parse(Head, archive_format.TOURNAMENT, parts)
            if head.format != archive_format.FORMAT:
                raise UserError(
                    f"{path}: {archive_format.TOURNAMENT}: format: {head.format}; this version of the"
                    f" referee knows {archive_format.FORMAT}"
                )
        archive_format.check_parts(data, parts)
        return cls(path, parts)

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

    def check_copies(self, game: ScheduledGame, record: GameRecord) -> None:
        """Collect the result of a game; `verify` checks the ratings after all games."""
        self._results.append(GameResult.from_record(self.config.name, game, record))

    def verify(self) -> int:
        """Check everything in the archive; return the number of its games.

        Raises Difference and UserError as `verify_tournament` does.
        """
        games = verify_tournament(self)
        rest = self._next or next(self._records, None)
        if rest is not None:
            raise _misplacement_error(rest)
        if games == len(self.schedule) and any(part.seed is None for part in self.parts):
            raise Difference(
                f"{archive_format.TOURNAMENT}: seed: missing, though all games are played"
            )
        _check_ratings(self._ratings, RatingsPart.from_results(self._results))
        return games


def _read_file(path: Path) -> bytes:
    """Return the bytes of a file. Raises UserError if it cannot be read or is too large."""
    try:
        if not path.is_file():
            raise UserError(f"{path}: no such file")
        size = path.stat().st_size
        if size > archive_format.MAX_SIZE:
            raise UserError(
                f"{path}: {size} bytes; an archive has at most {archive_format.MAX_SIZE}"
            )
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error


def _parse(model: type[_AnyPart], name: str, parts: Mapping[str, bytes]) -> _AnyPart:
    try:
        return model.model_validate_json(parts[name])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"{key}: " for key in first["loc"])
        raise Difference(f"{name}: {place}{first['msg']}") from error


def _load_config(path: Path, tournament: TournamentPart) -> TournamentConfig:
    """Return the configuration. Only values that would break the other checks are checked here."""
    where = f"{archive_format.TOURNAMENT}: configuration"
    impossible = Difference(f"{where}: no tournament can have these values")
    try:
        config = from_canonical_json(json.dumps(tournament.configuration))
        stages_are_possible = all(
            0 < stage.matches <= MAX_GAMES
            and stage.seats > 0
            and 0 <= stage.challengers < len(config.bots)
            for stage in config.stages
        )
    except UserError as error:
        raise UserError(f"{path}: {where}: {error}") from error
    except ValueError as error:
        raise impossible from error
    if config.name != tournament.name:
        raise Difference(f"{where}: name: {config.name}, not {tournament.name}")
    if config.lanes is None or not config.stages or not stages_are_possible:
        raise impossible
    return config


def _make_seats(config: TournamentConfig, bots: BotsPart) -> dict[str, BotId]:
    names = [bot.bot for bot in bots.root]
    configured = [entry.text for entry in config.bots]
    if names != configured:
        raise Difference(
            f"{archive_format.BOTS}: {', '.join(names) or 'none'};"
            f" the configuration has {', '.join(configured)}"
        )
    seats = {}
    for bot in bots.root:
        seats[bot.bot] = BotId.parse(bot.bot)
        if bot.manifest.name != seats[bot.bot].name:
            raise Difference(
                f"{archive_format.BOTS}: {bot.bot}: its manifest has the name {bot.manifest.name}"
            )
    return seats


def _make_parts(config: TournamentConfig, tournament: TournamentPart) -> tuple[Part, ...]:
    stages = played_stages(config, tournament.stopped_after)
    parts = [_make_part(0, _count_games(config, stages), None, tournament)]
    for extension in tournament.extensions:
        first = parts[-1].first + parts[-1].games
        added = (replace(stage, matches=extension.matches) for stage in config.stages)
        parts.append(_make_part(first, _count_games(config, added), extension.matches, extension))
    return tuple(parts)


def _make_part(
    first: int, games: int, matches: int | None, source: TournamentPart | Extension
) -> Part:
    seed = None if source.seed is None else bytes.fromhex(source.seed)
    return Part(first, games, matches, source.commitment, seed, finished=seed is not None)


def _count_games(config: TournamentConfig, stages: Iterable[Stage]) -> int:
    return sum(stage.games(len(config.bots)) for stage in stages)


def _make_schedule(
    config: TournamentConfig, parts: Sequence[Part], tournament: TournamentPart
) -> tuple[ScheduledGame, ...]:
    """Return the games of the schedule; `verify_tournament` compares them with those of the configuration.

    Their number is checked first, so that a forged archive cannot demand a huge schedule.
    """
    where = f"{archive_format.TOURNAMENT}: schedule"
    count = sum(len(match.games) for match in tournament.schedule)
    expected = sum(part.games for part in parts)
    if count != expected:
        raise Difference(f"{where}: {count} games; the configuration makes {expected}")
    games: list[ScheduledGame] = []
    for number, match in enumerate(tournament.schedule):
        if not 0 <= match.stage < len(config.stages) or len(match.lanes) != len(match.games):
            raise Difference(f"{where}: {match.deal} cannot be a match of this tournament")
        for seating, (game_id, lane) in enumerate(zip(match.games, match.lanes, strict=True)):
            games.append(
                ScheduledGame(
                    index=len(games),
                    stage=match.stage,
                    round=match.round,
                    match=number,
                    seating=seating,
                    lane=lane,
                    bots=match.bots[seating:] + match.bots[:seating],
                    deal_id=match.deal,
                    game_id=game_id,
                )
            )
    return tuple(games)


def _misplacement_error(record: GameRecord) -> Difference:
    return Difference(
        f"{archive_format.RECORDS}: {record.game_id} is not in the schedule, or is out of order"
    )


def _check_ratings(stored: RatingsPart, computed: RatingsPart) -> None:
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
                raise Difference(f"{archive_format.RATINGS}: {ruleset}: {bot} has not played")


def _are_equal(one: Rating, other: Rating) -> bool:
    """Return True if two ratings are equal except for rounding."""
    return all(
        isclose(getattr(one, name), getattr(other, name), rel_tol=0, abs_tol=_RATING_TOLERANCE)
        for name in Rating.model_fields
    )
