"""Copy a bot's folder and compute the hash that identifies its content.

Bots are always built and run from such a snapshot. So authors can go on working, and all games of one version
are played by the same files.
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
MAX_DEPTH = 100
"""How deep folders may be nested."""
_CHUNK = 1 << 20
_ALWAYS_IGNORED = (".git/", "__pycache__/")
_IGNORE_FILE = ".gitignore"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of a bot's folder."""

    path: Path
    """The folder with the copy."""
    content_hash: str
    """The SHA-256 in hexadecimal over all names, contents, links and executable flags."""
    files: int
    size: int
    """The bytes of all files together."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file, folder or link to copy."""

    path: PurePosixPath
    """The path relative to the folder that is copied."""
    mode: int
    size: int


def take(folder: Path, into: Path, *, built: bool) -> Snapshot:
    """Copy a bot's folder into a new folder.

    Args:
        folder: the bot's folder.
        into: the new folder; its parent must exist.
        built: True if the bot will be built in the copy. Then everything that the folder's `.gitignore` files
            name is left out.

    If the copy lies within `folder`, as in a league inside it, that part is left out. Times and owners are not
    copied, and of the permissions only the executable flag. Raises `UserError`, in one line, and removes the
    copy for: links that lead out of the folder, pipes and devices, unreadable files, too many or too large
    files.
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
    """Yield the content of a folder in an order that depends only on names; a folder before its content.

    Args:
        folder: the folder that is copied.
        below: the subfolder to begin with, relative to `folder`.
        ignored: the ignore rules in force there, each with the folder to which its patterns are relative; None
            if no rules are used.
        left_out: device and inode of the folders that contain the copy.
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
    """Return whether git would ignore a path: the last rule that matches counts."""
    is_ignored = False
    for base, rules in ignored:
        text = f"{path.relative_to(base)}{'/' if is_folder else ''}"
        matched = rules.check_file(text).include
        is_ignored = is_ignored if matched is None else matched
    return is_ignored


def _check_size(folder: Path, files: int, size: int, *, built: bool) -> None:
    hint = f"; name what the build creates or downloads in its {_IGNORE_FILE}" if built else ""
    if size > MAX_BYTES:
        raise UserError(f"{folder}: more than {MAX_BYTES >> 20} MiB{hint}")
    if files > MAX_FILES:
        raise UserError(f"{folder}: more than {MAX_FILES} files{hint}")


def _copy_file(source: Path, target: Path, *, executable: bool) -> tuple[str, bytes]:
    """Copy a file; return its kind and the hash of its content."""
    digest = hashlib.sha256()
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as reading, target.open("xb") as writing:  # noqa: PTH123
        while chunk := reading.read(_CHUNK):
            digest.update(chunk)
            writing.write(chunk)
    target.chmod(0o755 if executable else 0o644)
    return "program" if executable else "file", digest.digest()


def _copy_link(folder: Path, source: Path, target: Path) -> bytes:
    """Copy a link that stays within the folder; return its target."""
    destination = source.readlink()
    by_name = os.path.normpath(source.relative_to(folder).parent / destination)
    is_inside = by_name.split(os.sep, 1)[0] != os.pardir
    if destination.is_absolute() or not (is_inside and _stays(folder, source.parent / destination)):
        raise UserError(f"{source}: a link that leads out of the bot's folder, to {destination}")
    target.symlink_to(destination)
    return os.fsencode(destination)


def _stays(folder: Path, path: Path) -> bool:
    """Return whether a path is in a folder once all links are followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
