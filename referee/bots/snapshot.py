"""A copy of a bot's folder as it was at one moment, and the hash that names its content.

What a bot is built and run from is always such a copy: so that its author can go on working, and that
two games of one version were played by the same files.
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
MAX_FILES = 50_000
MAX_DEPTH = 100
_CHUNK = 1 << 20
_ALWAYS_LEFT_OUT = (".git/", "__pycache__/")
_IGNORE_FILE = ".gitignore"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copied folder."""

    path: Path
    """Where the copy is."""
    content_hash: str
    """SHA-256, in hexadecimal, of all names, contents, links and of which files are executable."""
    files: int
    size: int
    """Bytes of all files together."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """What lies in a folder."""

    path: PurePosixPath
    """From the folder that is copied."""
    mode: int
    size: int


def take(folder: Path, into: Path, *, built: bool) -> Snapshot:
    """Copy a bot's folder into a new one.

    Args:
        folder: the bot's.
        into: made by this; its parent must be there.
        built: the bot is built in the copy, so what the folder's `.gitignore` files name is left out.

    Where the copy is made within the folder, as in a league that lies there, that part is left out.
    Times and owners are not copied; of the permissions, only whether a file is executable. Raises
    UserError, one line, where something cannot or must not be copied: links that lead out of the folder,
    pipes and devices, unreadable files, too many or too large ones. Then nothing is left of the copy.
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
    around = {(parent.stat().st_dev, parent.stat().st_ino) for parent in into.resolve().parents}
    for entry in _entries(folder, PurePosixPath(), () if built else None, around):
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
            raise UserError(f"{source}: neither a file nor a folder nor a link; it must go")
        for part in (kind.encode(), os.fsencode(entry.path), content):
            digest.update(len(part).to_bytes(8, "big") + part)
    return Snapshot(into, digest.hexdigest(), files, size)


def _entries(
    folder: Path,
    below: PurePosixPath,
    ignored: Sequence[tuple[PurePosixPath, GitIgnoreSpec]] | None,
    around: Container[tuple[int, int]],
) -> Iterator[_Entry]:
    """What is in a folder, in an order that depends on the names alone; folders before what is in them.

    Args:
        folder: the one that is copied.
        below: where in it to begin.
        ignored: the rules in force there and the folder from which they count; None: no such rules.
        around: device and inode of folders that are left out, since the copy is within them.
    """
    here = folder / below
    if len(below.parts) > MAX_DEPTH:
        raise UserError(f"{folder}: folders in folders, more than {MAX_DEPTH} deep")
    if ignored is not None and (here / _IGNORE_FILE).is_file():
        ignored = (*ignored, (below, _rules(here / _IGNORE_FILE)))
    for name in sorted(os.listdir(here), key=os.fsencode):  # noqa: PTH208 - names, not paths
        path = below / name
        status = (folder / path).lstat()
        is_folder = stat.S_ISDIR(status.st_mode)
        if is_folder and (status.st_dev, status.st_ino) in around:
            continue
        shown = f"{name}/" if is_folder else name
        if shown in _ALWAYS_LEFT_OUT or _is_ignored(path, ignored or (), is_folder=is_folder):
            continue
        yield _Entry(path, status.st_mode, status.st_size)
        if is_folder:
            yield from _entries(folder, path, ignored, around)


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
    """What git would say: of the rules that speak of a path, the last one counts."""
    verdict = False
    for base, rules in ignored:
        text = f"{path.relative_to(base)}{'/' if is_folder else ''}"
        said = rules.check_file(text).include
        verdict = verdict if said is None else said
    return verdict


def _check_size(folder: Path, files: int, size: int, *, built: bool) -> None:
    hint = f"; what the build makes or downloads belongs into its {_IGNORE_FILE}" if built else ""
    if size > MAX_BYTES:
        raise UserError(f"{folder}: more than {MAX_BYTES >> 20} MiB{hint}")
    if files > MAX_FILES:
        raise UserError(f"{folder}: more than {MAX_FILES} files{hint}")


def _copy_file(source: Path, target: Path, *, executable: bool) -> tuple[str, bytes]:
    """Copy one file; its kind and the hash of its content."""
    digest = hashlib.sha256()
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as reading, target.open("xb") as writing:  # noqa: PTH123
        while chunk := reading.read(_CHUNK):
            digest.update(chunk)
            writing.write(chunk)
    target.chmod(0o755 if executable else 0o644)
    return "program" if executable else "file", digest.digest()


def _copy_link(folder: Path, source: Path, target: Path) -> bytes:
    """Copy a link that stays in the folder; where it leads."""
    leads = source.readlink()
    by_name = os.path.normpath(source.relative_to(folder).parent / leads)
    is_inside = by_name.split(os.sep, 1)[0] != os.pardir
    if leads.is_absolute() or not (is_inside and _stays(folder, source.parent / leads)):
        raise UserError(f"{source}: a link that leads out of the bot's folder, to {leads}")
    target.symlink_to(leads)
    return os.fsencode(leads)


def _stays(folder: Path, path: Path) -> bool:
    """Whether a path is in a folder, all links on the way followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
