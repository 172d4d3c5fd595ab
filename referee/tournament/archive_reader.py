"""An archive read: every part is held against the others before anything is believed."""

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
from referee.tournament import archive_container, archive_writer
from referee.tournament.archive_container import BotsPart, Head, RatingsPart, TournamentPart
from referee.tournament.config import Part, TournamentConfig, from_canonical_json, played_stages
from referee.tournament.config_file import MAX_GAMES
from referee.tournament.verify import verify_tournament

_TOLERANCE = 2e-6
"""By how much ratings may differ: the last digit that is kept, which another machine may round otherwise."""
_AnyPart = TypeVar("_AnyPart", bound=BaseModel)


class ArchivedTournament:
    """A tournament in an archive, as `verify_tournament` takes it.

    Args:
        path: of the archive, for messages.
        parts: by their names.

    Raises Difference where the parts do not fit each other, and UserError where a newer version made
    them.
    """

    def __init__(self, path: Path, parts: Mapping[str, bytes]) -> None:
        tournament = _read(TournamentPart, archive_container.TOURNAMENT, parts)
        self.where = str(path)
        self.config = _config(path, tournament)
        self.parts = _parts(self.config, tournament)
        self.stopped_after = tournament.stopped_after
        self.seats = _seats(self.config, _read(BotsPart, archive_container.BOTS, parts))
        self.schedule = _schedule(self.config, self.parts, tournament)
        self._records = archive_writer.load(parts[archive_container.RECORDS])
        self._next: GameRecord | None = None
        self._places = {game.game_id: game.index for game in self.schedule}
        self._kept = _read(RatingsPart, archive_container.RATINGS, parts)
        self._played: list[GameResult] = []

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read an archive.

        Raises UserError where the file is none or a newer version made it, and Difference where it
        was damaged or changed.
        """
        data = archive_container.read(path)
        parts = archive_container.unpack(path, data)
        with suppress(Difference, KeyError):  # which the sums name
            head = _read(Head, archive_container.TOURNAMENT, parts)
            if head.format != archive_container.FORMAT:
                raise UserError(
                    f"{path}: {archive_container.TOURNAMENT}: format: {head.format}; this version of the"
                    f" referee knows {archive_container.FORMAT}"
                )
        archive_container.check(data, parts, archive_container.PARTS)
        return cls(path, parts)

    def record(self, game: ScheduledGame) -> GameRecord | None:
        """See `Claim.record`."""
        if self._next is None:
            self._next = next(self._records, None)
        if self._next is None:
            return None
        if self._next.game_id != game.game_id:
            if self._places.get(self._next.game_id, -1) < game.index:
                raise _out_of_place(self._next)
            return None
        record, self._next = self._next, None
        return record

    def check_shown(self, game: ScheduledGame, record: GameRecord) -> None:
        """See `Claim.check_shown`; the ratings are held against all records together."""
        self._played.append(GameResult.from_record(self.config.name, game, record))

    def verify(self) -> int:
        """Check everything that is in it; returns how many games that were.

        Raises Difference and UserError as `verify_tournament` does.
        """
        games = verify_tournament(self)
        left = self._next or next(self._records, None)
        if left is not None:
            raise _out_of_place(left)
        if games == len(self.schedule) and any(part.seed is None for part in self.parts):
            raise Difference(
                f"{archive_container.TOURNAMENT}: seed: missing, though all games are played"
            )
        _check_ratings(RatingsPart.of(self._played), self._kept)
        return games


def _read(kind: type[_AnyPart], name: str, parts: Mapping[str, bytes]) -> _AnyPart:
    try:
        return kind.model_validate_json(parts[name])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"{key}: " for key in first["loc"])
        raise Difference(f"{name}: {place}{first['msg']}") from error


def _config(path: Path, tournament: TournamentPart) -> TournamentConfig:
    where = f"{archive_container.TOURNAMENT}: configuration"
    try:
        config = from_canonical_json(json.dumps(tournament.configuration))
        stages = all(
            0 < stage.matches <= MAX_GAMES
            and stage.seats > 0
            and 0 <= stage.challengers < len(config.bots)
            for stage in config.stages
        )
    except UserError as error:
        raise UserError(f"{path}: {where}: {error}") from error
    except ValueError as error:
        raise Difference(f"{where}: it is none that a tournament can have") from error
    if config.name != tournament.name:
        raise Difference(f"{where}: name: {config.name}, not {tournament.name}")
    if config.lanes is None or not config.stages or not stages:
        raise Difference(f"{where}: it is none that a tournament can have")
    return config


def _seats(config: TournamentConfig, bots: BotsPart) -> dict[str, BotId]:
    named = [bot.bot for bot in bots.root]
    wanted = [entry.text for entry in config.bots]
    if named != wanted:
        raise Difference(
            f"{archive_container.BOTS}: {', '.join(named) or 'none'}; the configuration has {', '.join(wanted)}"
        )
    seats = {}
    for bot in bots.root:
        seats[bot.bot] = BotId.parse(bot.bot)
        if bot.manifest.name != seats[bot.bot].name:
            raise Difference(
                f"{archive_container.BOTS}: {bot.bot}: its manifest is of {bot.manifest.name}"
            )
    return seats


def _parts(config: TournamentConfig, tournament: TournamentPart) -> tuple[Part, ...]:
    played = played_stages(config, tournament.stopped_after)
    parts = [_part(0, _games(config, played), None, tournament)]
    for each in tournament.extensions:
        first = parts[-1].first + parts[-1].games
        added = (replace(stage, matches=each.matches) for stage in config.stages)
        parts.append(_part(first, _games(config, added), each.matches, each))
    return tuple(parts)


def _games(config: TournamentConfig, stages: Iterable[Stage]) -> int:
    return sum(stage.games(len(config.bots)) for stage in stages)


def _part(
    first: int, games: int, matches: int | None, says: TournamentPart | archive_container.Extension
) -> Part:
    seed = None if says.seed is None else bytes.fromhex(says.seed)
    return Part(first, games, matches, says.commitment, seed, finished=seed is not None)


def _schedule(
    config: TournamentConfig, parts: Sequence[Part], tournament: TournamentPart
) -> tuple[ScheduledGame, ...]:
    """The games of the schedule. That there are as many as should be, no more, is checked first."""
    where = f"{archive_container.TOURNAMENT}: schedule"
    count = sum(len(match.games) for match in tournament.schedule)
    should = sum(part.games for part in parts)
    if count != should:
        raise Difference(f"{where}: {count} games; the configuration makes {should}")
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


def _out_of_place(record: GameRecord) -> Difference:
    return Difference(
        f"{archive_container.RECORDS}: {record.game_id} is not in the schedule, or out of its order"
    )


def _check_ratings(made: RatingsPart, kept: RatingsPart) -> None:
    for ruleset, table in made.root.items():
        for bot, rating in table.items():
            claimed = kept.root.get(ruleset, {}).get(bot)
            if claimed is None or not all(
                isclose(said, made, rel_tol=0, abs_tol=_TOLERANCE)
                for said, made in (
                    (claimed.mu, rating.mu),
                    (claimed.sigma, rating.sigma),
                    (claimed.fit, rating.fit),
                )
            ):
                raise Difference(
                    f"{archive_container.RATINGS}: {ruleset}: {bot} has {claimed or 'none'},"
                    f" the games make it {rating}"
                )
    for ruleset, ratings in kept.root.items():
        for bot in ratings:
            if bot not in made.root.get(ruleset, {}):
                raise Difference(f"{archive_container.RATINGS}: {ruleset}: {bot} has not played")
