"""An archive written: what a league knows of a tournament, in parts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from pydantic import BaseModel

from referee.ratings import Ratings
from referee.roster import Roster
from referee.schedule import ScheduledGame
from referee.store import League
from referee.tournament.archive import layout, record_stream, zipped
from referee.tournament.conduct import find
from referee.tournament.config import TournamentConfig, canonical_json


@dataclass(frozen=True, slots=True)
class Export:
    """An archive, and what is to be said of it."""

    data: bytes
    played: int
    """Games in it."""
    games: int
    """Games of the schedule."""
    has_seed: bool


def export(league: League, roster: Roster, name: str) -> Export:
    """The archive of a tournament of a league, finished or not.

    Raises NotFoundError when there is no such tournament, and UserError and RefereeError where the
    league is damaged or a bot's copy is gone.
    """
    found, row = find(league, name), league.tournament(name)
    played = league.stored(name)  # after `row`: a game that is stored meanwhile ends no tournament
    finished = row.finished_at_us is not None or len(played) == row.games
    records = [league.record(game.game_id) for game in found.schedule if game.game_id in played]
    ratings = Ratings()
    for record in records:
        ratings.add(layout.RankedRecord.of(record))
    hashes = {bot.bot: bot.content_hash for bot in league.bots()}
    tournament = layout.TournamentPart(
        format=layout.FORMAT,
        name=name,
        created_at_us=row.created_at_us,
        configuration=_configuration(found.config),
        schedule=tuple(_matches(found.schedule)),
        commitment=row.commitment,
        seed=row.seed.hex() if finished else None,
    )
    bots = layout.BotsPart(
        tuple(
            layout.Bot(bot=text, content_hash=hashes[bot], manifest=roster.manifest(bot))
            for text, bot in found.seats.items()
        )
    )
    data = zipped.pack(
        {
            layout.TOURNAMENT: _json(tournament),
            layout.BOTS: _json(bots),
            layout.RECORDS: record_stream.dump(records),
            layout.RATINGS: _json(layout.RatingsPart.of(ratings)),
        }
    )
    return Export(data, len(played), row.games, finished)


def _configuration(config: TournamentConfig) -> dict[str, object]:
    """What is kept of the configuration; where its file lies is nobody's business."""
    stored: dict[str, object] = json.loads(
        canonical_json(replace(config, file=Path(config.file.name)))
    )
    return stored


def _matches(schedule: Iterable[ScheduledGame]) -> Iterator[layout.Match]:
    for _, group in groupby(schedule, key=lambda game: game.match):
        first, *others = group
        games = (first, *others)
        yield layout.Match(
            deal=first.deal_id,
            stage=first.stage,
            round=first.round,
            bots=first.bots,
            games=tuple(game.game_id for game in games),
            lanes=tuple(game.lane for game in games),
        )


def _json(part: BaseModel) -> bytes:
    """A part as text, in which no two ways are possible."""
    values = part.model_dump(mode="json")
    return (json.dumps(values, sort_keys=True, separators=(",", ":")) + "\n").encode()
