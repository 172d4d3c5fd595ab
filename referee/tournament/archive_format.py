"""Define the file format of an archive: a tournament in one zip file that anybody can check.

The zip has four parts: three of JSON, and a stream of game records. A last part has the SHA-256 of each of them.
No part is compressed by the zip, and dates are fixed. So the same tournament always gives the same bytes, and a
file with any other byte is refused.

`archive_writer` exports a tournament of a league, `archive_reader` checks an archive.
"""

from __future__ import annotations

import gzip
import hashlib
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, RootModel

from referee.bots.manifest import Manifest
from referee.errors import UserError
from referee.match.replay import Difference
from referee.protocol import record as wire
from referee.ratings.analysis import Analysis
from referee.ratings.trueskill import rate
from referee.records import GameRecord, GameResult
from referee.result_columns import ResultColumns

FORMAT = 1
"""The number of this format. An archive with other parts or keys gets another number."""
PARTS = TOURNAMENT, BOTS, RECORDS, RATINGS = (
    "tournament.json",
    "bots.json",
    "records.binpb.gz",
    "ratings.json",
)
"""The names of the parts, in the order of the file."""
SUMS = "SHA256SUMS"
"""The last part: a line `DIGEST  NAME` for each other part, as `sha256sum --check` reads it."""
MAX_SIZE = 2**30
"""The largest archive in bytes. A million games take less."""
MAX_RECORD_SIZE = 2**20
"""The largest record in bytes. Most have about a thousand, and more with the evidence of many faults."""
_RATING_DECIMALS = 6

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""32 bytes, hexadecimal."""


class ArchivePart(BaseModel):
    """The base of all models of JSON parts: unknown keys are errors, and no value is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Head(BaseModel):
    """The key of `tournament.json` that all formats have."""

    format: int


class Match(ArchivePart):
    """A match of the schedule. In game j, from 0, seat s has the bot at place (j + s) mod k of `bots`."""

    deal: str
    stage: int
    round: int
    bots: tuple[str, ...]
    games: tuple[str, ...]
    """The id of each game."""
    lanes: tuple[int, ...]
    """The lane of each game."""


class Extension(ArchivePart):
    """Matches that were added to a tournament."""

    created_at_us: int
    matches: Annotated[int, Field(ge=1)]
    """Matches that were added at each table, or in each balanced choice."""
    commitment: Digest
    seed: Digest | None
    """None, because it is secret, until all games of the extension are played."""


class TournamentPart(ArchivePart):
    """The part `tournament.json`."""

    format: int
    name: str
    created_at_us: int
    """Microseconds since 1970-01-01 UTC."""
    configuration: dict[str, Any]
    schedule: tuple[Match, ...]
    commitment: Digest
    seed: Digest | None
    """None, because it is secret, until all games are played; extensions have seeds of their own."""
    stopped_after: Annotated[int, Field(ge=1)] | None
    """Rounds that were played when the tournament stopped early, and which `schedule` has; None: it did not."""
    extensions: tuple[Extension, ...]


class Bot(ArchivePart):
    """A bot that played."""

    bot: str
    """`name@version`, as in the schedule."""
    content_hash: Digest
    manifest: Manifest


class BotsPart(RootModel[tuple[Bot, ...]]):
    """The part `bots.json`: the bots in the order of the configuration."""


class Rating(ArchivePart):
    """The ratings of a bot."""

    mu: float
    """TrueSkill's mean, updated game by game in schedule order."""
    sigma: float
    """TrueSkill's uncertainty."""
    fit: float
    """The rating that is fitted to all games at once; their order does not matter."""


class RatingsPart(RootModel[dict[str, dict[str, Rating]]]):
    """The part `ratings.json`: by ruleset, then by bot, from the games of this tournament alone."""

    @classmethod
    def from_results(cls, games: Sequence[GameResult]) -> Self:
        """Compute the ratings after these games, which are in schedule order."""
        by_ruleset = ResultColumns.from_results(games).by_ruleset()
        ratings = {}
        for ruleset, table in rate(games).items():
            results = by_ruleset[ruleset]
            fits = dict(zip(results.bots, Analysis(results).ratings.tolist(), strict=True))
            ratings[ruleset] = {
                bot: Rating(
                    mu=round(rating.mu, _RATING_DECIMALS),
                    sigma=round(rating.sigma, _RATING_DECIMALS),
                    fit=round(fits[bot], _RATING_DECIMALS),
                )
                for bot, rating in table.items()
            }
        return cls(ratings)


# The stream of records: gzip, and in it for each record its length as a varint and then a `linko.v1.GameRecord`.
# That is how protobuf's libraries write and read delimited messages.

_VARINT_BITS = 7
_VARINT_MORE = 1 << _VARINT_BITS
_MAX_VARINT_SIZE = 3
"""Bytes of a varint with the value MAX_RECORD_SIZE."""
_CUT_OFF = "it ends in the middle of a record"


def dump_records(records: Iterable[GameRecord]) -> bytes:
    """Return the part `records.binpb.gz`; the same records always give the same bytes."""
    buffer = BytesIO()
    with gzip.GzipFile("", "wb", compresslevel=9, fileobj=buffer, mtime=0) as stream:
        for record in records:
            message = wire.dumps(record)
            stream.write(_dump_varint(len(message)))
            stream.write(message)
    return buffer.getvalue()


def load_records(data: bytes) -> Iterator[GameRecord]:
    """Yield the records of a stream one by one, so that a huge stream needs little memory.

    Raises Difference at the first record that cannot be read.
    """
    number = 1
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as stream:
            while (message := _read_message(stream)) is not None:
                yield wire.loads(message)
                number += 1
    except (gzip.BadGzipFile, EOFError, ValueError, zlib.error) as error:
        raise Difference(f"{RECORDS}: record {number}: {error}") from error


def _dump_varint(number: int) -> bytes:
    varint = bytearray()
    while number >= _VARINT_MORE:
        varint.append(number & (_VARINT_MORE - 1) | _VARINT_MORE)
        number >>= _VARINT_BITS
    varint.append(number)
    return bytes(varint)


def _read_message(stream: gzip.GzipFile) -> bytes | None:
    """Return the bytes of the next record; None at the end of the stream."""
    size = _read_size(stream)
    if size is None:
        return None
    message = stream.read(size)
    if len(message) < size:
        raise EOFError(_CUT_OFF)
    return message


def _read_size(stream: gzip.GzipFile) -> int | None:
    """Return the size of the next record; None at the end of the stream."""
    size = 0
    for place in range(_MAX_VARINT_SIZE):
        byte = stream.read(1)
        if not byte:
            if place:
                raise EOFError(_CUT_OFF)
            return None
        size |= (byte[0] & (_VARINT_MORE - 1)) << _VARINT_BITS * place
        if byte[0] < _VARINT_MORE and size <= MAX_RECORD_SIZE:
            return size
    raise ValueError(f"it has more than {MAX_RECORD_SIZE} bytes")


_ZIP_START = b"PK\x03\x04"
_UNIX = 3
_MODE = 0o100644 << 16
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    NotImplementedError,  # an unknown compression or version
    RuntimeError,  # an encrypted part
    EOFError,
    ValueError,
    OSError,
    struct.error,
)
"""What `zipfile` raises for a damaged file."""


def pack(parts: Mapping[str, bytes]) -> bytes:
    """Return the archive with these parts, in their order, and their sums."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in {**parts, SUMS: _make_sums(parts)}.items():
            info = zipfile.ZipInfo(name)  # its date is always 1980-01-01
            info.create_system = _UNIX
            info.external_attr = _MODE
            archive.writestr(info, content)
    return buffer.getvalue()


def unpack(path: Path, data: bytes) -> dict[str, bytes]:
    """Return the parts of an archive by name, unchecked; `check_parts` checks them.

    Raises UserError if the data are not a zip file, and Difference if the zip file is damaged.
    """
    if not zipfile.is_zipfile(BytesIO(data)) and not data.startswith(_ZIP_START):
        raise UserError(f"{path}: this is not a zip file, and so not an archive of a tournament")
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            members = archive.infolist()
            for member in members:
                if member.compress_type != zipfile.ZIP_STORED:
                    raise Difference(f"{member.filename}: parts of an archive are not compressed")
            if sum(member.file_size for member in members) > len(data):
                raise Difference("the parts of the zip are larger than the file")
            return {member.filename: archive.read(member) for member in members}
    except _ZIP_ERRORS as error:
        raise Difference(f"the zip is damaged or cut off: {error}") from error


def check_parts(data: bytes, parts: Mapping[str, bytes]) -> None:
    """Check the parts of an archive against their sums, and its bytes against those of `pack`.

    Raises Difference, with the name of the first wrong part.
    """
    for name in (*PARTS, SUMS):
        if name not in parts:
            raise Difference(f"{name}: the part is missing")
    for name in parts:
        if name not in (*PARTS, SUMS):
            raise Difference(f"{name}: an archive has no part of this name")
    wanted = {name: parts[name] for name in PARTS}
    stored_sums = parts[SUMS].splitlines()
    for name, line in zip(PARTS, _make_sums(wanted).splitlines(), strict=True):
        if line not in stored_sums:
            raise Difference(f"{name}: its SHA-256 is not the one in {SUMS}")
    packed = pack(wanted)
    if data != packed:
        pairs = enumerate(zip(data, packed, strict=False))
        first = next(
            (at for at, (byte, right) in pairs if byte != right), min(len(data), len(packed))
        )
        raise Difference(f"the zip was not packed by the referee: byte {first} differs")


def _make_sums(parts: Mapping[str, bytes]) -> bytes:
    return "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in parts.items()
    ).encode()
