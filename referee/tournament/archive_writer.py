"""Records one after another, compressed: what an archive keeps its games in.

A gzip file of messages, each a `linko.v1.GameRecord` with its length before it as a varint, as
protobuf's libraries write and read them.

An archive written: what a league knows of a tournament, in parts.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import groupby
from pathlib import Path

from pydantic import BaseModel

from referee.match.replay import Difference
from referee.protocol import record as wire
from referee.records import GameRecord, GameResult, ScheduledGame
from referee.roster.roster import Roster
from referee.store import League
from referee.tournament import archive_container
from referee.tournament.archive_container import RECORDS
from referee.tournament.config import Part, TournamentConfig, canonical_json
from referee.tournament.create import Tournament, find_tournament

MAX_RECORD_SIZE = 2**20
"""Bytes. Records have about a thousand, more with much evidence; what claims more is no record."""
_MAX_LENGTH_SIZE = 3
"""Bytes of a varint that can say MAX_RECORD_SIZE."""
_MORE = 0x80
_BITS = 7
_CUT_OFF = "it ends in the middle of a record"


def dump(records: Iterable[GameRecord]) -> bytes:
    """The records as a compressed stream; the same bytes for the same records."""
    buffer = BytesIO()
    with gzip.GzipFile("", "wb", compresslevel=9, fileobj=buffer, mtime=0) as stream:
        for record in records:
            message = wire.dumps(record)
            stream.write(_varint(len(message)))
            stream.write(message)
    return buffer.getvalue()


def load(data: bytes) -> Iterator[GameRecord]:
    """The records of a stream, read one by one, so that its size when unpacked is no matter.

    Raises Difference where it goes wrong.
    """
    number = 1
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as stream:
            while (message := _message(stream)) is not None:
                yield wire.loads(message)
                number += 1
    except (gzip.BadGzipFile, EOFError, ValueError, zlib.error) as error:
        raise Difference(f"{RECORDS}: record {number}: {error}") from error


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= _MORE:
        out.append(number & (_MORE - 1) | _MORE)
        number >>= _BITS
    out.append(number)
    return bytes(out)


def _message(stream: gzip.GzipFile) -> bytes | None:
    """The next record; None at the end of the stream."""
    size = _length(stream)
    if size is None:
        return None
    message = stream.read(size)
    if len(message) < size:
        raise EOFError(_CUT_OFF)
    return message


def _length(stream: gzip.GzipFile) -> int | None:
    """The length of the next record; None at the end of the stream."""
    size = 0
    for place in range(_MAX_LENGTH_SIZE):
        byte = stream.read(1)
        if not byte:
            if place:
                raise EOFError(_CUT_OFF)
            return None
        size |= (byte[0] & (_MORE - 1)) << _BITS * place
        if byte[0] < _MORE and size <= MAX_RECORD_SIZE:
            return size
    raise ValueError(f"a record of more than {MAX_RECORD_SIZE} bytes")


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


def export_archive(league: League, roster: Roster, name: str) -> Export:
    """The archive of a tournament of a league, finished or not.

    Raises NotFoundError when there is no such tournament, and UserError and RefereeError where the
    league is damaged or a bot's copy is gone.
    """
    found, row, added = (
        find_tournament(league, name),
        league.tournament(name),
        league.extensions(name),
    )
    played = league.stored(name)  # after `found`: a game that is stored meanwhile ends nothing
    first, *others = (_seed(found, part, played) for part in found.parts)
    games = [game for game in found.schedule if game.game_id in played]
    records = [league.record(game.game_id) for game in games]
    results = [
        GameResult.from_record(name, game, record)
        for game, record in zip(games, records, strict=True)
    ]
    hashes = {bot.bot: bot.content_hash for bot in league.bots()}
    tournament = archive_container.TournamentPart(
        format=archive_container.FORMAT,
        name=name,
        created_at_us=row.created_at_us,
        configuration=_configuration(found.config),
        schedule=tuple(_matches(found.schedule)),
        commitment=row.commitment,
        seed=first,
        stopped_after=found.stopped_after,
        extensions=tuple(
            archive_container.Extension(
                created_at_us=each.created_at_us,
                matches=each.matches,
                commitment=each.commitment,
                seed=seed,
            )
            for each, seed in zip(added, others, strict=True)
        ),
    )
    bots = archive_container.BotsPart(
        tuple(
            archive_container.Bot(bot=text, content_hash=hashes[bot], manifest=roster.manifest(bot))
            for text, bot in found.seats.items()
        )
    )
    data = archive_container.pack(
        {
            archive_container.TOURNAMENT: _json(tournament),
            archive_container.BOTS: _json(bots),
            archive_container.RECORDS: dump(records),
            archive_container.RATINGS: _json(archive_container.RatingsPart.of(results)),
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


def _matches(schedule: Iterable[ScheduledGame]) -> Iterator[archive_container.Match]:
    for _, group in groupby(schedule, key=lambda game: game.match):
        first, *others = group
        games = (first, *others)
        yield archive_container.Match(
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
