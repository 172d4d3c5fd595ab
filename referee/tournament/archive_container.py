"""What is in the parts of an archive.

The zip of an archive: named parts, none of them compressed, with their SHA-256 in the last one.

The same parts make the same file, byte by byte, and a file with any other byte is refused.
"""

from __future__ import annotations

import hashlib
import struct
import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, RootModel

from referee.bots.manifest import Manifest
from referee.errors import UserError
from referee.match.replay import Difference
from referee.ratings import rate
from referee.records import GameResult

FORMAT = 1
"""Of an archive. One that has other parts or keys gets another number."""
PARTS = TOURNAMENT, BOTS, RECORDS, RATINGS = (
    "tournament.json",
    "bots.json",
    "records.binpb.gz",
    "ratings.json",
)
"""In the order of the file."""
_DECIMALS = 6

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""32 bytes in hexadecimal."""


class ArchivePart(BaseModel):
    """A part, or a piece of one: unknown keys are errors, and no value is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Head(BaseModel):
    """What tournament.json has in every format."""

    format: int


class Match(ArchivePart):
    """A match of the schedule. In game j, from 0, seat s has the bot at place (j + s) mod k."""

    deal: str
    stage: int
    round: int
    bots: tuple[str, ...]
    games: tuple[str, ...]
    lanes: tuple[int, ...]
    """Of each game."""


class Extension(ArchivePart):
    """Matches that were added to a tournament."""

    created_at_us: int
    matches: Annotated[int, Field(ge=1)]
    """More at each table, or in each stage of a balanced choice."""
    commitment: Digest
    seed: Digest | None
    """None while games of it are missing."""


class TournamentPart(ArchivePart):
    """tournament.json."""

    format: int
    name: str
    created_at_us: int
    """Microseconds since 1970-01-01 UTC."""
    configuration: dict[str, Any]
    schedule: tuple[Match, ...]
    commitment: Digest
    seed: Digest | None
    """None while games are missing, but for those of extensions: it is a secret until then."""
    stopped_after: Annotated[int, Field(ge=1)] | None
    """It stopped after so many rounds; `schedule` has no others then. None: it did not."""
    extensions: tuple[Extension, ...]


class Bot(ArchivePart):
    """A bot that played."""

    bot: str
    """`name@version`, as in the schedule."""
    content_hash: Digest
    manifest: Manifest


class BotsPart(RootModel[tuple[Bot, ...]]):
    """bots.json: in the order of the configuration."""


class Rating(ArchivePart):
    """What is believed of a bot's skill."""

    mu: float
    """TrueSkill, game after game."""
    sigma: float
    fit: float
    """The order-free rating: of all games at once."""


class RatingsPart(RootModel[dict[str, dict[str, Rating]]]):
    """ratings.json: by ruleset, then bot, from this tournament's games alone."""

    @classmethod
    def of(cls, games: Sequence[GameResult]) -> Self:
        """What games, in schedule order, make of the bots, rounded to what is kept of it."""
        from referee.ratings.analysis import Analysis  # noqa: PLC0415 - as `ratings` says
        from referee.result_columns import ResultColumns  # noqa: PLC0415 - the same

        by_ruleset = ResultColumns.from_results(games).by_ruleset()
        found = {}
        for ruleset, table in rate(games).items():
            results = by_ruleset[ruleset]
            fits = dict(zip(results.bots, Analysis(results).ratings.tolist(), strict=True))
            found[ruleset] = {
                bot: Rating(
                    mu=round(rating.mu, _DECIMALS),
                    sigma=round(rating.sigma, _DECIMALS),
                    fit=round(fits[bot], _DECIMALS),
                )
                for bot, rating in table.items()
            }
        return cls(found)


MAX_SIZE = 2**30
"""Bytes. A million games have less."""
SUMS = "SHA256SUMS"
"""The last part: a line `DIGEST  NAME` for each other one, as `sha256sum --check` reads it."""
_FIRST_BYTES = b"PK\x03\x04"
_UNIX = 3
_MODE = 0o100644 << 16
_BROKEN = (
    zipfile.BadZipFile,
    NotImplementedError,  # a compression or version that nobody knows
    RuntimeError,  # encrypted
    EOFError,
    ValueError,
    OSError,
    struct.error,
)
"""What zipfile raises for a file that was tampered with."""


def pack(parts: Mapping[str, bytes]) -> bytes:
    """The parts, in their order, and their sums as one file."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in {**parts, SUMS: _sums(parts)}.items():
            info = zipfile.ZipInfo(name)  # the date is that of 1980
            info.create_system = _UNIX
            info.external_attr = _MODE
            archive.writestr(info, content)
    return buffer.getvalue()


def read(path: Path) -> bytes:
    """The bytes of a file. Raises UserError where it cannot be read or has too many."""
    try:
        if not path.is_file():
            raise UserError(f"{path}: no such file")
        size = path.stat().st_size
        if size > MAX_SIZE:
            raise UserError(f"{path}: {size} bytes; an archive has at most {MAX_SIZE}")
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error


def unpack(path: Path, data: bytes) -> dict[str, bytes]:
    """The parts in a file's bytes by name, whatever they are; `check` says whether they are right.

    Raises UserError for what is no zip at all, and Difference for one that is damaged.
    """
    if not zipfile.is_zipfile(BytesIO(data)) and not data.startswith(_FIRST_BYTES):
        raise UserError(f"{path}: no archive of a tournament: it is not a zip file")
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            members = archive.infolist()
            for member in members:
                if member.compress_type != zipfile.ZIP_STORED:
                    raise Difference(
                        f"{member.filename}: compressed, which no part of an archive is"
                    )
            if sum(member.file_size for member in members) > len(data):
                raise Difference("the zip's parts are larger than itself")
            return {member.filename: archive.read(member) for member in members}
    except _BROKEN as error:
        raise Difference(f"the zip is damaged or cut off: {error}") from error


def check(data: bytes, parts: Mapping[str, bytes], names: tuple[str, ...]) -> None:
    """Hold the parts of a file against their sums, and the file against what `pack` makes of them.

    Raises Difference, which names the part.
    """
    for name in (*names, SUMS):
        if name not in parts:
            raise Difference(f"{name}: the part is missing")
    for name in parts:
        if name not in (*names, SUMS):
            raise Difference(f"{name}: no part of an archive has this name")
    wanted = {name: parts[name] for name in names}
    noted = parts[SUMS].splitlines()
    for name, line in zip(names, _sums(wanted).splitlines(), strict=True):
        if line not in noted:
            raise Difference(f"{name}: its SHA-256 is not the one in {SUMS}")
    packed = pack(wanted)
    if data != packed:
        pairs = enumerate(zip(data, packed, strict=False))
        first = next((at for at, (was, made) in pairs if was != made), min(len(data), len(packed)))
        raise Difference(f"the zip is not packed as the referee does it, from byte {first} on")


def _sums(parts: Mapping[str, bytes]) -> bytes:
    return "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in parts.items()
    ).encode()
