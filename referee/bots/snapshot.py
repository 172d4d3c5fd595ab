"""Copy a bot's folder, compute the hash that identifies its content, and check what a build has left in the copy.

A league builds and runs bots only from snapshots. So all games of a version are played with the same files, even if
the author changes the bot's folder.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Container, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from referee.bots.ignore_files import IGNORE_FILE, MAX_IGNORE_BYTES, IgnoreFiles
from referee.errors import UserError, copy_errors
from referee.sandbox.folders import remove_folder

MAX_BYTES = 1 << 30
"""The most bytes in all files of a snapshot."""
MAX_ENTRIES = 50_000
"""The most files, folders and links in a snapshot."""
MAX_DEPTH = 100
"""How many levels of folders a snapshot may have."""
_BUILT_FACTOR = 10
"""After the build of a snapshot, `MAX_BYTES` and `MAX_ENTRIES` are multiplied by this, because compilers leave many files."""
_CHUNK = 1 << 20
_ALWAYS_IGNORED = (".git", ".git/", "__pycache__/")
"""Names that `take` never copies; a folder's name ends with a slash. `.git` is a file in a worktree or submodule of git. It
contains a path of this machine, which must not change the content hash."""
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_HINT = "; remove the files that the bot does not need"
_BUILT_HINT = f"; list the files that the build creates or downloads in {IGNORE_FILE}"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of a bot's folder."""

    path: Path
    """The folder with the copy."""
    content_hash: str
    """The SHA-256, in hexadecimal, of all names, file contents, link targets and executable flags in the copy."""
    entries: int
    """The number of files, folders and links."""
    size: int
    """The number of bytes in all files together."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file, folder or link to copy."""

    path: PurePosixPath
    """The path relative to the folder that is copied."""
    parent: int
    """A descriptor of the folder that contains it; open until the next entry is asked for."""
    mode: int
    """Type and permissions, as in `st_mode`."""
    size: int
    """The number of bytes, as in `st_size`."""


def take(
    folder: Path,
    into: Path,
    *,
    built: bool,
    replaced: Mapping[str, bytes] | None = None,
    left_out: Path | None = None,
) -> Snapshot:
    """Copy a bot's folder into a new folder, and return the copy as a `Snapshot`.

    Args:
        folder: the bot's folder.
        into: the new folder. Its parent must exist.
        built: True if `folder` is the author's own folder, and the bot will be built in the copy. Then everything that
            a `.gitignore` file in this folder excludes is left out, because the build makes it again.
        replaced: maps the paths of some files in the folder to the content that they get in the copy.
        left_out: a folder that must not be copied, such as the league; `into` is never copied.

    If `into` or `left_out` is inside the bot's folder, the copy leaves it out, and also every subfolder that contains it,
    because one of these subfolders may be the league. The copy keeps the executable flags, but no other permissions, no
    times and no owners. Nothing from outside the bot's folder gets into the copy, even if a program replaces folders by
    links meanwhile.

    Raises `UserError` if a link leads out of the folder, if there is a pipe, a socket, a device or an unreadable file, if
    the content exceeds `MAX_BYTES`, `MAX_ENTRIES` or `MAX_DEPTH`, if a `.gitignore` file is wrong, or if all `.gitignore`
    files together take too long. Raises `Shortage` if the machine lacks a resource, such as space on the disk of the copy. After
    any error the copy is removed.
    """
    with copy_errors(into):
        into.mkdir()
    try:
        excluded = (into,) if left_out is None else (into, left_out)
        with copy_errors(into, folder):
            return _copy(folder, into, replaced or {}, excluded, built=built)
    except BaseException:
        remove_folder(into)
        raise


def check_built(folder: Path) -> None:
    """Check what a build has left in a copy, by the rules of `take` but with other limits.

    Raises `UserError` if the build has replaced the folder with a link, if a link leads out of the folder, if there is
    a pipe, a socket, a device or an unreadable folder, if folders are nested more than `MAX_DEPTH` deep, or if there
    are more than ten times as many bytes or entries as `take` allows. Raises `Shortage` if the machine lacks a resource.
    """
    size = 0
    with copy_errors(folder, folder):
        if folder.is_symlink():
            raise UserError(f"{folder}: the build has replaced the folder with a link")
        with closing(_entries(folder, PurePosixPath(), None, None, (), always_ignored=())) as found:
            for count, entry in enumerate(found, 1):
                is_file = stat.S_ISREG(entry.mode)
                size += entry.size if is_file else 0
                _check_size(folder, count, size, "", factor=_BUILT_FACTOR)
                if stat.S_ISLNK(entry.mode):
                    _check_link(folder, folder, entry.path)
                elif not (is_file or stat.S_ISDIR(entry.mode)):
                    raise _kind_error(folder / entry.path)


def _copy(
    folder: Path,
    into: Path,
    replaced: Mapping[str, bytes],
    excluded: Sequence[Path],
    *,
    built: bool,
) -> Snapshot:
    digest = hashlib.sha256()
    count = size = 0
    with_parents = {
        outer for each in excluded for outer in (each.resolve(), *each.resolve().parents)
    }
    left_out = {(each.stat().st_dev, each.stat().st_ino) for each in with_parents if each.exists()}
    hint = _BUILT_HINT if built else _HINT
    links = []
    ignored = IgnoreFiles.start(folder) if built else None
    with closing(_entries(folder, PurePosixPath(), None, ignored, left_out)) as found:
        for count, entry in enumerate(found, 1):
            source, target = folder / entry.path, into / entry.path
            is_file = stat.S_ISREG(entry.mode)
            _check_size(folder, count, size + (entry.size if is_file else 0), hint)
            if (new := replaced.get(str(entry.path))) is not None:
                target.write_bytes(new)
                size += len(new)
                kind, content = "file", hashlib.sha256(new).digest()
            elif is_file:
                # read up to one byte more than allowed, so that `_check_size` notices a file that has grown
                most = MAX_BYTES - size + 1
                kind, content, copied = _copy_file(entry.parent, source, target, most)
                size += copied
                _check_size(folder, count, size, hint)
            elif stat.S_ISLNK(entry.mode):
                kind, content = "link", _copy_link(entry.parent, source, target)
                links.append(entry.path)
            elif stat.S_ISDIR(entry.mode):
                target.mkdir()
                kind, content = "folder", b""
            else:
                raise _kind_error(source)
            for part in (kind.encode(), os.fsencode(entry.path), content):
                digest.update(len(part).to_bytes(8, "big") + part)
    for path in links:
        _check_link(into, folder, path)
    return Snapshot(into, digest.hexdigest(), count, size)


def _entries(
    folder: Path,
    below: PurePosixPath,
    parent: int | None,
    ignored: IgnoreFiles | None,
    left_out: Container[tuple[int, int]],
    *,
    always_ignored: Container[str] = _ALWAYS_IGNORED,
) -> Generator[_Entry, None, None]:
    """Yield what to copy, sorted by name so that the hash is reproducible. Each folder comes before its content.

    Each folder is opened relative to the descriptor of its parent, and no link is followed. So it does no harm if a program
    replaces a folder by a link meanwhile. Close the generator, so that no descriptor stays open after an error.

    Args:
        folder: the folder that is copied.
        below: the subfolder to begin with, relative to `folder`.
        parent: a descriptor of the folder that contains `below`; None if `below` is `folder` itself.
        ignored: the `.gitignore` files above `below`; None if `.gitignore` files have no effect.
        left_out: device and inode number of each folder that is left out: the copy, `left_out` of `take`, and every folder
            that contains one of them.
        always_ignored: names that are always left out; a folder's name ends with a slash.
    """
    if len(below.parts) > MAX_DEPTH:
        raise UserError(f"{folder}: folders are nested more than {MAX_DEPTH} deep")
    here = folder / below
    if parent is None:
        descriptor = os.open(folder, _OPEN_FOLDER)
    else:
        with _show_whole_path(here):
            descriptor = os.open(below.name, _OPEN_FOLDER | os.O_NOFOLLOW, dir_fd=parent)
    try:
        file = here / IGNORE_FILE
        if ignored is not None and (data := _read_ignore_file(descriptor, file)) is not None:
            ignored = ignored.add(below, file, data)
        for name in sorted(os.listdir(descriptor), key=os.fsencode):  # noqa: PTH208 - not a path
            path = below / name
            with _show_whole_path(folder / path):
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            is_folder = stat.S_ISDIR(status.st_mode)
            if is_folder and (status.st_dev, status.st_ino) in left_out:
                continue
            pattern = f"{name}/" if is_folder else name
            if pattern in always_ignored or (
                ignored is not None and ignored.match(path, is_folder=is_folder)
            ):
                continue
            yield _Entry(path, descriptor, status.st_mode, status.st_size)
            if is_folder:
                yield from _entries(
                    folder, path, descriptor, ignored, left_out, always_ignored=always_ignored
                )
    finally:
        os.close(descriptor)


@contextmanager
def _show_whole_path(path: Path) -> Iterator[None]:
    """Put the whole path into an `OSError`, because the system call got only the last part of it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _read_ignore_file(parent: int, file: Path) -> bytes | None:
    """Return the content of a `.gitignore` file; None if there is no such file. A link or a folder has no effect.

    If the file is too large, return only its first part. `IgnoreFiles.add` refuses this part, because it is too large too.

    Args:
        parent: a descriptor of the folder.
        file: the path of the file, for messages.
    """
    try:
        with _show_whole_path(file):
            descriptor = os.open(IGNORE_FILE, _OPEN_FILE, dir_fd=parent)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ELOOP, errno.ENXIO}:
            return None
        raise
    try:
        # check this before `open`, which raises an error for the descriptor of a folder
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with open(descriptor, "rb", closefd=False) as opened:
            return opened.read(MAX_IGNORE_BYTES + 1)
    finally:
        os.close(descriptor)


def _check_size(folder: Path, count: int, size: int, hint: str, *, factor: int = 1) -> None:
    if size > factor * MAX_BYTES:
        raise UserError(f"{folder}: more than {factor * MAX_BYTES >> 20} MiB{hint}")
    if count > factor * MAX_ENTRIES:
        raise UserError(
            f"{folder}: more than {factor * MAX_ENTRIES} files, folders and links{hint}"
        )


def _kind_error(file: Path) -> UserError:
    return UserError(f"{file}: neither a file nor a folder nor a link; remove it")


def _copy_file(parent: int, source: Path, target: Path, most: int) -> tuple[str, bytes, int]:
    """Copy a file; return its kind, `program` or `file`, the SHA-256 of its content, and the number of bytes.

    Args:
        parent: a descriptor of the folder that contains the file.
        source: the path of the file, for messages. Only its name is opened, relative to `parent`.
        target: the path of the copy.
        most: stop after this many bytes.
    """
    digest = hashlib.sha256()
    size = 0
    with _show_whole_path(source):
        descriptor = os.open(source.name, _OPEN_FILE, dir_fd=parent)
    with open(descriptor, "rb") as reading, target.open("xb") as writing:  # noqa: PTH123
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise _kind_error(source)
        while chunk := reading.read(min(_CHUNK, most - size)):
            size += len(chunk)
            digest.update(chunk)
            writing.write(chunk)
    executable = bool(mode & stat.S_IXUSR)
    target.chmod(0o755 if executable else 0o644)
    return "program" if executable else "file", digest.digest(), size


def _copy_link(parent: int, source: Path, target: Path) -> bytes:
    """Copy a link and return its target; the arguments are as in `_copy_file`.

    `Path` removes `./` from the target. This must stay so, because stored content hashes depend on it.
    """
    with _show_whole_path(source):
        destination = Path(os.readlink(source.name, dir_fd=parent))
    target.symlink_to(destination)
    return os.fsencode(destination)


def _check_link(folder: Path, shown: Path, path: PurePosixPath) -> None:
    """Raise `UserError` if a link leads out of a folder.

    Args:
        folder: the folder. No program may change it during the check.
        shown: the folder that the message names.
        path: the path of the link, relative to the folder.
    """
    destination = (folder / path).readlink()
    by_name = os.path.normpath(path.parent / destination)
    is_inside = by_name.split(os.sep, 1)[0] != os.pardir
    target = folder / path.parent / destination
    if destination.is_absolute() or not (is_inside and _stays(folder, target)):
        raise UserError(
            f"{shown / path}: a link that leads out of the bot's folder, to {destination}"
        )


def _stays(folder: Path, path: Path) -> bool:
    """Return whether a path is still in a folder after all links in the path are followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
