"""Copy a bot's folder and compute the hash that identifies its content.

A league builds and runs bots only from snapshots. So all games of a version are played with the same files, even if
the author changes the bot's folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pathspec import GitIgnoreSpec

from referee.errors import UserError

MAX_BYTES = 1 << 30
"""The most bytes in all files of a snapshot."""
MAX_FILES = 50_000
"""The most files in a snapshot."""
MAX_DEPTH = 100
"""How many levels of folders a snapshot may have."""
_CHUNK = 1 << 20
_ALWAYS_IGNORED = (".git/", "__pycache__/")
_IGNORE_FILE = ".gitignore"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of a bot's folder."""

    path: Path
    """The folder with the copy."""
    content_hash: str
    """The SHA-256, in hexadecimal, of all names, file contents, link targets and executable flags in the copy."""
    files: int
    """The number of files, without folders and links."""
    size: int
    """The number of bytes in all files together."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file, folder or link to copy."""

    path: PurePosixPath
    """The path relative to the folder that is copied."""
    mode: int
    """Type and permissions, as in `st_mode`."""
    size: int
    """The number of bytes, as in `st_size`."""


def take(folder: Path, into: Path, *, built: bool) -> Snapshot:
    """Copy a bot's folder into a new folder, and return the copy as a `Snapshot`.

    Args:
        folder: the bot's folder.
        into: the new folder; its parent must exist.
        built: True if the bot will be built in the copy. Then everything that the folder's `.gitignore` files
            name is left out, because the build makes these files again.

    If `into` lies in a subfolder of the bot's folder, this subfolder is left out: it may contain the league. The copy
    keeps the executable flags, but no other permissions, no times and no owners.

    Raises `UserError` and removes the copy if a link leads out of the folder, if there is a pipe, a device or an
    unreadable file, or if the content exceeds `MAX_BYTES`, `MAX_FILES` or `MAX_DEPTH`.
    """
    try:
        return _copy(folder, into, built=built)
    except OSError as error:
        shutil.rmtree(into, ignore_errors=True)
        raise UserError(f"{error.filename or folder}: {error.strerror}") from error
    except BaseException:
        shutil.rmtree(into, ignore_errors=True)
        raise


def _copy(folder: Path, into: Path, *, built: bool) -> Snapshot:
    into.mkdir()
    digest = hashlib.sha256()
    files = size = 0
    parents = {(parent.stat().st_dev, parent.stat().st_ino) for parent in into.resolve().parents}
    for entry in _entries(folder, PurePosixPath(), () if built else None, parents):
        source, target = folder / entry.path, into / entry.path
        if stat.S_ISREG(entry.mode):
            files, size = files + 1, size + entry.size
            _check_size(folder, files, size, built=built)
            kind, content = _copy_file(source, target, executable=bool(entry.mode & stat.S_IXUSR))
        elif stat.S_ISLNK(entry.mode):
            kind, content = "link", _copy_link(folder, source, target)
        elif stat.S_ISDIR(entry.mode):
            target.mkdir()
            kind, content = "folder", b""
        else:
            raise UserError(f"{source}: neither a file nor a folder nor a link; remove it")
        for part in (kind.encode(), os.fsencode(entry.path), content):
            digest.update(len(part).to_bytes(8, "big") + part)
    return Snapshot(into, digest.hexdigest(), files, size)


def _entries(
    folder: Path,
    below: PurePosixPath,
    ignored: Sequence[tuple[PurePosixPath, GitIgnoreSpec]] | None,
    left_out: Container[tuple[int, int]],
) -> Iterator[_Entry]:
    """Yield what to copy, sorted by name so that the hash is reproducible. Each folder comes before its content.

    Args:
        folder: the folder that is copied.
        below: the subfolder to begin with, relative to `folder`.
        ignored: the rules of the `.gitignore` files above `below`, each with the folder of the file; None if
            `.gitignore` files have no effect.
        left_out: device and inode number of each folder that contains the copy.
    """
    here = folder / below
    if len(below.parts) > MAX_DEPTH:
        raise UserError(f"{folder}: folders are nested more than {MAX_DEPTH} deep")
    if ignored is not None and (here / _IGNORE_FILE).is_file():
        ignored = (*ignored, (below, _rules(here / _IGNORE_FILE)))
    for name in sorted(os.listdir(here), key=os.fsencode):  # noqa: PTH208 - names, not paths
        path = below / name
        status = (folder / path).lstat()
        is_folder = stat.S_ISDIR(status.st_mode)
        if is_folder and (status.st_dev, status.st_ino) in left_out:
            continue
        pattern = f"{name}/" if is_folder else name
        if pattern in _ALWAYS_IGNORED or _is_ignored(path, ignored or (), is_folder=is_folder):
            continue
        yield _Entry(path, status.st_mode, status.st_size)
        if is_folder:
            yield from _entries(folder, path, ignored, left_out)


def _rules(file: Path) -> GitIgnoreSpec:
    try:
        return GitIgnoreSpec.from_lines(file.read_text(errors="replace").splitlines())
    except ValueError as error:
        raise UserError(f"{file}: {error}") from error


def _is_ignored(
    path: PurePosixPath,
    ignored: Sequence[tuple[PurePosixPath, GitIgnoreSpec]],
    *,
    is_folder: bool,
) -> bool:
    """Return whether git would ignore a path. The last rule that matches the path decides."""
    is_ignored = False
    for base, rules in ignored:
        text = f"{path.relative_to(base)}{'/' if is_folder else ''}"
        matched = rules.check_file(text).include
        is_ignored = is_ignored if matched is None else matched
    return is_ignored


def _check_size(folder: Path, files: int, size: int, *, built: bool) -> None:
    hint = (
        f"; list the files that the build creates or downloads in {_IGNORE_FILE}"
        if built
        else "; remove the files that the bot does not need"
    )
    if size > MAX_BYTES:
        raise UserError(f"{folder}: more than {MAX_BYTES >> 20} MiB{hint}")
    if files > MAX_FILES:
        raise UserError(f"{folder}: more than {MAX_FILES} files{hint}")


def _copy_file(source: Path, target: Path, *, executable: bool) -> tuple[str, bytes]:
    """Copy a file; return its kind, `program` or `file`, and the SHA-256 of its content."""
    digest = hashlib.sha256()
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as reading, target.open("xb") as writing:  # noqa: PTH123
        while chunk := reading.read(_CHUNK):
            digest.update(chunk)
            writing.write(chunk)
    target.chmod(0o755 if executable else 0o644)
    return "program" if executable else "file", digest.digest()


def _copy_link(folder: Path, source: Path, target: Path) -> bytes:
    """Copy a link and return its target. Raises `UserError` if the link leads out of the folder."""
    destination = source.readlink()
    by_name = os.path.normpath(source.relative_to(folder).parent / destination)
    is_inside = by_name.split(os.sep, 1)[0] != os.pardir
    if destination.is_absolute() or not (is_inside and _stays(folder, source.parent / destination)):
        raise UserError(f"{source}: a link that leads out of the bot's folder, to {destination}")
    target.symlink_to(destination)
    return os.fsencode(destination)


def _stays(folder: Path, path: Path) -> bool:
    """Return whether a path is still in a folder after all links in the path are followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
