"""An archive written: what a league knows of a tournament, in parts."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from pydantic import BaseModel

from referee.roster import Roster
from referee.schedule import ScheduledGame
from referee.store import League
from referee.tournament.archive import layout, record_stream, zipped
from referee.tournament.conduct import Tournament, find
from referee.tournament.config import TournamentConfig, canonical_json
from referee.tournament.parts import Part
from referee.tournament.results import PlayedRecord


@dataclass(frozen=True, slots=True)
class Export:
    """An archive, and what is to be said of it."""

    data: bytes
    played: int
    """Games in it."""
    games: int
    """Games of the schedule."""
    has_seed: bool
    """That of the tournament as it was created."""
    secret: tuple[int, ...]
    """The extensions, from 1, whose seeds are not in it."""


def export(league: League, roster: Roster, name: str) -> Export:
    """The archive of a tournament of a league, finished or not.

    Raises NotFoundError when there is no such tournament, and UserError and RefereeError where the
    league is damaged or a bot's copy is gone.
    """
    found, row, added = find(league, name), league.tournament(name), league.extensions(name)
    played = league.stored(name)  # after `found`: a game that is stored meanwhile ends nothing
    first, *others = (_seed(found, part, played) for part in found.parts)
    games = [game for game in found.schedule if game.game_id in played]
    records = [league.record(game.game_id) for game in games]
    results = [PlayedRecord.of(game, record) for game, record in zip(games, records, strict=True)]
    hashes = {bot.bot: bot.content_hash for bot in league.bots()}
    tournament = layout.TournamentPart(
        format=layout.FORMAT,
        name=name,
        created_at_us=row.created_at_us,
        configuration=_configuration(found.config),
        schedule=tuple(_matches(found.schedule)),
        commitment=row.commitment,
        seed=first,
        settled_after=found.settled_after,
        extensions=tuple(
            layout.Extension(
                created_at_us=each.created_at_us,
                matches=each.matches,
                commitment=each.commitment,
                seed=seed,
            )
            for each, seed in zip(added, others, strict=True)
        ),
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
            layout.RATINGS: _json(layout.RatingsPart.of(results)),
        }
    )
    secret = tuple(number for number, seed in enumerate(others, 1) if seed is None)
    return Export(data, len(played), row.games, first is not None, secret)


def _seed(tournament: Tournament, part: Part, played: Container[str]) -> str | None:
    """The seed of a part as text, if it is no secret any more."""
    games = tournament.schedule[part.first : part.first + part.games]
    finished = part.finished or all(game.game_id in played for game in games)
    return part.seed.hex() if part.seed is not None and finished else None


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
