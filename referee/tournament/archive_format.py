"""Define the file format of an archive: a tournament in one zip file that anybody can check.

The zip has five members: three JSON texts, the game records, and the file `SHA256SUMS` with the checksums of the
other four. The zip does not compress the members, and gives all of them the date 1980-01-01. So the bytes of an archive
follow from its members alone. `check_members` packs the members again, and refuses the archive if its bytes differ.

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
from referee.tournament.config_file import MAX_GAMES

FORMAT = 3
"""The number of this format. It must change when the members or their keys change, and when the same games get other ratings."""
MEMBERS = TOURNAMENT, BOTS, RECORDS, RATINGS = (
    "tournament.json",
    "bots.json",
    "records.binpb.gz",
    "ratings.json",
)
"""The names of the members before `SHA256SUMS`, in their order in the zip."""
SUMS = "SHA256SUMS"
"""The name of the last member. It has a line `DIGEST  NAME` for each name in MEMBERS, for `sha256sum --check`."""
MAX_SIZE = 2**30
"""The largest size of an archive in bytes. A tournament of a million games needs less."""
MAX_RECORD_SIZE = 112 * 2**20
"""The largest size of a game record in bytes. Most records have about a thousand bytes. But each fault contains the
last 4 KiB of the bot's standard error. Each byte that is not text is written as an escape of 4 bytes, so a fault can
have 16 KiB. If each of five seats has 1,000 strikes, the record can have about 82 MB."""
MAX_RECORD_FIELDS = 2**20
"""The largest number of fields of a game record. A record has one field for each move and each fault, and a few others. 100,000 turns
at a table of five have at most 1,000,109 moves. Without this limit a small hostile archive could fill gigabytes of memory with empty
faults. An empty fault has 2 bytes, and gzip compresses such bytes 1,000:1. But a parsed fault takes more than 100 bytes of memory. The
limit does not count the numbers inside a field, such as the cards of the deck. If they fill a record of 112 MiB, they take about
1.8 GiB of memory."""
_MAX_EXTENSIONS = 1000
"""The largest number of extensions of a tournament. Without this limit a hostile archive with very many extensions could make the check
endless. With 1,000 bots and a balanced choice, it takes about a second to compute the games of one extension."""
_RATING_DECIMALS = 6

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""32 bytes as 64 hexadecimal digits."""


class ArchiveModel(BaseModel):
    """The base of all models of JSON members: unknown keys are errors, and values of a wrong type are not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Match(ArchiveModel):
    """A match of k bots in the schedule. In its game j, from 0 to k - 1, seat s has the bot `bots[(j + s) % k]`."""

    stage: int
    """The index of the stage in the configuration."""
    round: int
    bots: tuple[str, ...]
    """The bots (`name@version`) in their cyclic order."""
    games: tuple[str, ...]
    """The id of each game."""
    deals: tuple[str, ...]
    """The id of the deal of each game."""
    lanes: tuple[int, ...]
    """The lane of each game."""


class Extension(ArchiveModel):
    """An extension of the tournament: matches that were added later."""

    created_at_us: int
    matches: Annotated[int, Field(ge=1, le=MAX_GAMES)]
    """See `Part.matches` in `config`."""
    commitment: Digest
    terms: str
    """See `Terms.text` in `terms`. The commitment is the SHA-256 of this text."""
    seed: Digest | None
    """The seed of the added games; None until all added games are played."""


class TournamentModel(ArchiveModel):
    """The member `tournament.json`."""

    format: int
    name: str
    created_at_us: int
    """Microseconds since 1970-01-01 UTC."""
    configuration: dict[str, Any]
    schedule: tuple[Match, ...]
    planned_schedule: tuple[Match, ...] | None
    """The matches of the planned schedule. None if they are exactly the matches of `schedule` that no extension has added."""
    commitment: Digest
    terms: str
    """See `Extension.terms`."""
    seed: Digest | None
    """The seed of the games that the tournament was created with; None until all these games are played."""
    stopped_after: Annotated[int, Field(ge=1)] | None
    """The number of rounds after which the tournament stopped early; None if it did not stop early."""
    extensions: Annotated[tuple[Extension, ...], Field(max_length=_MAX_EXTENSIONS)]


class Bot(ArchiveModel):
    """A bot of the tournament."""

    bot: str
    """`name@version`, as in the schedule."""
    content_hash: Digest
    """The content hash of the bot's snapshot."""
    manifest: Manifest


class BotsModel(RootModel[tuple[Bot, ...]]):
    """The member `bots.json`: the bots in the order of the configuration."""


class Rating(ArchiveModel):
    """The ratings of a bot under one ruleset."""

    mu: float
    """TrueSkill's mean, updated game by game in schedule order."""
    sigma: float
    """TrueSkill's uncertainty."""
    fit: float
    """The skill from the fit, which uses all games at once and ignores their order."""


class RatingsModel(RootModel[dict[str, dict[str, Rating]]]):
    """The member `ratings.json`: for each ruleset, the ratings of each bot. No game of another tournament counts."""

    @classmethod
    def from_results(cls, games: Sequence[GameResult]) -> Self:
        """Compute the ratings from the results of all played games, which must be in schedule order."""
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


# The member `records.binpb.gz` is compressed with gzip. For each record it has the size of the record as a varint, then
# the record as a message `linko.v1.GameRecord`. The libraries of protobuf call this format "delimited messages".

_VARINT_BITS = 7
_VARINT_MORE = 1 << _VARINT_BITS
_MAX_VARINT_SIZE = 4
"""Number of bytes of a varint with the value MAX_RECORD_SIZE."""
_MAX_PROTOBUF_VARINT_SIZE = 10
"""Number of bytes of the longest varint that protobuf accepts, which is a number of 64 bits."""
_VARINT, _LENGTH_DELIMITED = 0, 2
"""The two types that a field of a record can have. The last three bits of a field's tag give its type. See
https://protobuf.dev/programming-guides/encoding."""
_CUT_OFF = "the file ends in the middle of this record"


def dump_records(records: Iterable[GameRecord]) -> bytes:
    """Return the bytes of the member `records.binpb.gz`; the same records always give the same bytes."""
    buffer = BytesIO()
    with gzip.GzipFile("", "wb", compresslevel=9, fileobj=buffer, mtime=0) as stream:
        for record in records:
            message = wire.dumps(record)
            stream.write(_dump_varint(len(message)))
            stream.write(message)
    return buffer.getvalue()


def load_records(data: bytes) -> Iterator[GameRecord]:
    """Yield the records in the bytes of `records.binpb.gz` one by one, because the memory may be too small for all records.

    Raises Difference at the first record that cannot be read.
    """
    number = 1
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as stream:
            while (message := _read_message(stream)) is not None:
                _check_number_of_fields(message)
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
    """Return the bytes of the next record; None at the end of the stream.

    Raises EOFError if the stream ends inside the record, and ValueError if the record is too large.
    """
    size = _read_size(stream)
    if size is None:
        return None
    message = stream.read(size)
    if len(message) < size:
        raise EOFError(_CUT_OFF)
    return message


def _read_size(stream: gzip.GzipFile) -> int | None:
    """Return the size of the next record in bytes; None at the end of the stream. Raises as `_read_message` does."""
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


def _check_number_of_fields(message: bytes) -> None:
    """Raise ValueError if a large record has more than `MAX_RECORD_FIELDS` fields, or a field of a type that records do not have.

    A field has at least two bytes. So a record of at most 2 × `MAX_RECORD_FIELDS` bytes cannot have too many fields, and is not checked.
    """
    if len(message) <= 2 * MAX_RECORD_FIELDS:
        return
    place = 0
    for _ in range(MAX_RECORD_FIELDS):
        tag, place = _parse_varint(message, place)
        value, place = _parse_varint(message, place)
        wire_type = tag % 8
        if wire_type == _LENGTH_DELIMITED:
            place += value
        elif wire_type != _VARINT:
            raise ValueError("it has a field of an unknown type")
        if place >= len(message):
            return
    raise ValueError(f"it has more than {MAX_RECORD_FIELDS} fields")


def _parse_varint(message: bytes, place: int) -> tuple[int, int]:
    """Return the varint at a place of a message, and the place after it. Reading stops at the end of the message, and after 10 bytes."""
    number = 0
    for index, byte in enumerate(message[place : place + _MAX_PROTOBUF_VARINT_SIZE]):
        number |= (byte & (_VARINT_MORE - 1)) << _VARINT_BITS * index
        place += 1
        if byte < _VARINT_MORE:
            break
    return number, place


_ZIP_START = b"PK\x03\x04"
_UNIX = 3
_MODE = 0o100644 << 16
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    NotImplementedError,  # an unknown compression or version
    RuntimeError,  # an encrypted member
    EOFError,
    ValueError,
    OverflowError,  # an offset that is too large for a file
    OSError,
    struct.error,
)
"""The exceptions that `zipfile` raises for a damaged file."""


def pack(members: Mapping[str, bytes]) -> bytes:
    """Return the bytes of an archive. It has `members` in their order, then `SHA256SUMS`."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in {**members, SUMS: _make_sums(members)}.items():
            info = zipfile.ZipInfo(name)  # its date is always 1980-01-01
            info.create_system = _UNIX
            info.external_attr = _MODE
            archive.writestr(info, content)
    return buffer.getvalue()


def is_archive(path: Path) -> bool:
    """Return whether a file is a zip file with a member `SHA256SUMS`. Such a file counts as an archive, even if its content is wrong.

    Raises OSError if the file cannot be opened.
    """
    with path.open("rb") as file:
        try:
            return SUMS in zipfile.ZipFile(file).namelist()
        except _ZIP_ERRORS:
            return False


def unpack(path: Path, data: bytes) -> dict[str, bytes]:
    """Return the content of each member of an archive, by the name of the member. Call `check_members` next.

    Raises UserError if the data are not a zip file. Raises Difference if the zip file is damaged, if a member is
    compressed, or if the members together are larger than the file.
    """
    try:
        if not zipfile.is_zipfile(BytesIO(data)) and not data.startswith(_ZIP_START):
            raise UserError(
                f"{path}: this is not a zip file, and so not an archive of a tournament"
            )
        with zipfile.ZipFile(BytesIO(data)) as archive:
            infos = archive.infolist()
            for info in infos:
                if info.compress_type != zipfile.ZIP_STORED:
                    raise Difference(f"{info.filename}: members of an archive are not compressed")
            if sum(info.file_size for info in infos) > len(data):
                raise Difference("the members of the zip are larger than the file")
            return {info.filename: archive.read(info) for info in infos}
    except _ZIP_ERRORS as error:
        raise Difference(f"the zip is damaged or cut off: {error}") from error


def check_members(data: bytes, members: Mapping[str, bytes]) -> None:
    """Check the members of an archive against `SHA256SUMS`. Then pack the members again, and compare the bytes with `data`.

    Args:
        data: the bytes of the archive.
        members: the content of each member by its name, from `unpack`.

    Raises Difference at the first error. The message names the wrong member or the wrong byte.
    """
    for name in (*MEMBERS, SUMS):
        if name not in members:
            raise Difference(f"{name}: the member is missing")
    for name in members:
        if name not in (*MEMBERS, SUMS):
            raise Difference(f"{name}: an archive has no member of this name")
    expected = {name: members[name] for name in MEMBERS}
    stored_sums = members[SUMS].splitlines()
    for name, line in zip(MEMBERS, _make_sums(expected).splitlines(), strict=True):
        if line not in stored_sums:
            raise Difference(f"{name}: its SHA-256 is not the one in {SUMS}")
    packed = pack(expected)
    if data != packed:
        pairs = enumerate(zip(data, packed, strict=False))
        first = next(
            (at for at, (byte, right) in pairs if byte != right), min(len(data), len(packed))
        )
        raise Difference(f"the zip was not packed by the referee: byte {first} differs")


def _make_sums(members: Mapping[str, bytes]) -> bytes:
    return "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in members.items()
    ).encode()
