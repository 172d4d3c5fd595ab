"""Copy, hash, pack and check the files of a bot. `workshop` keeps the copies."""

from __future__ import annotations

import shutil
import stat
import tarfile
import tempfile
from pathlib import Path
from typing import IO

from referee.bots import snapshot as snapshots
from referee.bots.build import Built
from referee.bots.manifest import FILE_NAME, Manifest, Variant, load_manifest
from referee.errors import UserError, copy_errors, cut_lines

FOLDER = "bot"
"""The name of the subfolder that has the bot's files, in the folder of a copy and in temporary folders."""
_FIRST_LINES, _LAST_LINES = 15, 25
"""How many lines of a failed build's output are shown."""

_TARFILE_ERRORS = (KeyError, RecursionError, ValueError)
"""What `tarfile` raises for a hard link to nowhere, for a long chain of hard links, and for a name with a NUL character."""


class FolderError(UserError):
    """A bot's folder cannot be copied, and the reason is in the folder."""


class BuildError(UserError):
    """The build of a bot has failed, or the fetch that comes before the build."""

    def __init__(self, bot: str, reason: str, output: str, *, is_fetch: bool = False) -> None:
        step = "the fetch of its packages" if is_fetch else f"{FILE_NAME}: build.command"
        super().__init__(f"{bot}: {step}: {reason}")
        self.reason = reason
        """Why the fetch or the build failed, in one sentence."""
        self.output = output
        """The first and the last lines of what fetch and build printed, with control characters escaped."""
        self.is_fetch = is_fetch
        """True if no build was run, so only the fetch can be wrong. False if a build was run, even after a failed fetch."""


def hash_content(
    folder: Path,
    variant: Variant | None = None,
    *,
    left_out: Path | None = None,
    from_copy: bool = False,
) -> str:
    """Return the content hash that a bot's folder would have as a version of a league.

    Args:
        folder: the bot's folder.
        variant: changes of the bot's manifest; None for the bot as it is.
        left_out: a folder that is not part of the bot, such as the folder of the league's copies. If it is inside the
            bot's folder, neither this folder nor any subfolder that contains it is part of the hash.
        from_copy: as in `Workshop.copy`.

    Raises `UserError` if the manifest is wrong or the folder cannot be copied. Raises `Shortage` if the machine lacks a
    resource, because this function makes a temporary copy.
    """
    manifest = load_manifest(folder, variant)
    with tempfile.TemporaryDirectory() as parent:
        into = Path(parent) / FOLDER
        return take_snapshot(
            folder, into, manifest, variant, left_out, from_copy=from_copy
        ).content_hash


def take_snapshot(
    source: Path,
    into: Path,
    manifest: Manifest,
    variant: Variant | None,
    left_out: Path | None = None,
    *,
    from_copy: bool,
) -> snapshots.Snapshot:
    """Copy a bot's folder as `snapshot.take` does.

    `manifest` includes the changes of the `variant`. If there is a `variant`, this manifest is written into the copy.
    """
    replaced = {} if variant is None else {FILE_NAME: manifest.to_toml().encode()}
    built = manifest.build is not None and not from_copy
    return snapshots.take(source, into, built=built, replaced=replaced, left_out=left_out)


def extract(archive: IO[bytes], scratch: Path) -> Path:
    """Extract an archive of `write_archive` into a new subfolder of `scratch`, and return this subfolder.

    Raises `UserError` if the archive is damaged or a file cannot be written, and `Shortage` if the machine lacks a resource.
    """
    folder = scratch / FOLDER
    folder.mkdir()
    try:
        with copy_errors(folder), tarfile.open(fileobj=archive, mode="r:") as files:
            for member in files:
                _extract_member(files, member, folder)
    except (tarfile.TarError, UserError, *_TARFILE_ERRORS) as error:
        raise UserError(f"the archive of a bot cannot be unpacked: {error}") from error
    return folder


def _extract_member(files: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Extract a folder, file or link, without its owner and its times.

    `TarFile.extractall` is not used, because it differs between versions of Python. Before 3.11.4 it has no filters. In
    some later versions its filter `data` removes `x/..` from the targets of links, and this changes the content hash.

    Raises `TarError` for a device or a pipe, or if the path of `member` leads out of `folder`. Raises `OSError` if
    the path exists already, unless `member` and what exists are both folders.
    """
    path = folder / member.name
    is_inside = path == folder or path.parent.resolve().is_relative_to(folder.resolve())
    if ".." in Path(member.name).parts or not is_inside:
        raise tarfile.TarError(f"{member.name!r} leads out of the archive")
    if member.isdir():
        path.mkdir(exist_ok=True)
    elif member.issym():
        path.symlink_to(member.linkname)
    elif (content := files.extractfile(member)) is not None:
        with content, path.open("xb") as file:
            shutil.copyfileobj(content, file)
        path.chmod(0o755 if member.mode & stat.S_IXUSR else 0o644)
    else:
        raise tarfile.TarError(f"{member.name!r} is a device or a pipe")


def write_archive(folder: Path, archive: IO[bytes]) -> None:
    """Write the content of a folder to `archive`, as a tar archive."""
    with tarfile.open(fileobj=archive, mode="w") as files:
        files.add(folder, arcname=".")


def check_copied(manifest: Manifest, source: Path, copied: Path) -> None:
    """Raise `UserError` if the copy of a folder does not have the manifest that was read from the folder before.

    Args:
        manifest: the manifest as read from `source`, with the changes of a variant.
        source: the folder.
        copied: the copy.
    """
    if not (copied / FILE_NAME).exists():
        raise UserError(
            f"{source / FILE_NAME}: is not in the copy, because .gitignore excludes it or because it is a"
            " link to an excluded file"
        )
    try:
        is_same = load_manifest(copied) == manifest
    except UserError:  # its message would name a file of the copy
        is_same = False
    if not is_same:
        raise UserError(f"{source / FILE_NAME}: changed while it was copied; submit it again")


def check_build(manifest: Manifest, built: Built, folder: Path) -> None:
    """Raise `BuildError` if the build failed, left something that no bot may contain, or changed the manifest.

    Args:
        manifest: the manifest before the build.
        built: the result of the build.
        folder: the bot's folder after the build.
    """
    is_fetch = built.is_fetch or manifest.build is None
    reason = built.reason or _find_damage(manifest, folder, "fetch" if is_fetch else "build")
    if reason is not None:
        output = "\n".join(cut_lines(built.output.splitlines(), _FIRST_LINES, _LAST_LINES))
        raise BuildError(manifest.name, reason, output, is_fetch=is_fetch)


def _find_damage(manifest: Manifest, folder: Path, step: str) -> str | None:
    """Return what is wrong in a bot's folder after a successful `step` ("build" or "fetch"); None if nothing is wrong."""
    try:
        if folder.exists():
            snapshots.check_built(folder)
    except UserError as error:
        return f"the {step} has left something that no bot may contain: {error}"
    try:
        if load_manifest(folder) != manifest:
            return f"the {step} has changed {FILE_NAME}"
    except UserError as error:
        return f"the {step} has damaged {FILE_NAME}: {error}"
    return None


def make_read_only(folder: Path) -> None:
    """Make a copy's files read-only, because the bot that plays must be the bot that was checked.

    The folders of the copy stay writable for the referee's user, so this protects only against accidents. The isolation
    gives the real protection. All users may read the files, because a bot can run as another user if the referee is root.
    Set-user-ID bits that a build has set are removed. Otherwise, other users of the machine could run such a program
    with the rights of the referee.
    """
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            path.chmod(0o755)
        elif stat.S_ISREG(mode):
            path.chmod(0o555 if mode & stat.S_IXUSR else 0o444)
