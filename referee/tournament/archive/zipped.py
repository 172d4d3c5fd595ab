"""The zip of an archive: named parts, none of them compressed, with their SHA-256 in the last one.

The same parts make the same file, byte by byte, and a file with any other byte is refused.
"""

from __future__ import annotations

import hashlib
import struct
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from referee.errors import UserError
from referee.match import Difference

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
