"""Copy bots into the league's folder and build the copies. Equal folders share a copy.

bots/NAME/lock           locked while a copy of this bot is made or removed
bots/NAME/new-*/bot      an unfinished copy, whose hash is not yet known
bots/NAME/HASH/bot       the copy, in which the bot is built and from which it is run
bots/NAME/HASH/source.tar the files before fetch and build, for variants and other machines; only if the bot has a fetch or a build
bots/NAME/HASH/build.log the output of fetch and build
bots/NAME/HASH/ready     exists when the copy and its build are complete, and says where it was built
bots/NAME/HASH/passing   exists while the copy is temporary; its modification time is the time of the last use
bots/NAME/HASH-PLACE/    a copy with the same files, built again for another folder, machine or Python (see the states of a copy)
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import io
import os
import platform
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import (
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import dataclass
from pathlib import Path

from referee.bots import BotSpec
from referee.bots.build import build
from referee.bots.fetch import plan_fetches
from referee.bots.manifest import FILE_NAME, Manifest, Variant, load_manifest
from referee.errors import UserError, copy_errors
from referee.roster.content import (
    FOLDER,
    FolderError,
    check_build,
    check_copied,
    extract,
    hash_content,
    make_read_only,
    take_snapshot,
    write_archive,
)
from referee.sandbox.folders import remove_folder
from referee.sandbox.launcher import Launcher

_SOURCE = "source.tar"
_LOG = "build.log"
_READY = "ready"
_NEW = "new-"
_LOCK = "lock"
_LOCK_POLL_S = 0.05
_PASSING = "passing"
_PASSING_S = 86_400.0
"""`Workshop.copy` keeps a temporary copy for this many seconds after it last returned the copy, because a game may still use it."""


# The states of a copy:
#
#     copying (new-*) --hash computed--> building (HASH without ready) --success--> ready
#         |                                  |                                       |
#         +---- failure --> removed <--------+                                    discard
#                              ^                                                    |
#                              +---- removing (HASH without ready) <----------------+
#
# If the referee is killed while copying, the next submission of a bot with the same name removes the unfinished
# copy. If the referee is killed while building or while removing a discarded copy, the next submission of the same
# content removes what is left, and copies and builds it again. It does the same if the files of a ready copy have changed,
# for example because a person has edited or deleted some. No bot plays from such a copy: `refresh` raises an error. The
# files of a bot with a fetch or a build are not compared, because the fetch or the build changes them itself.
#
# A build depends on its place: the folder of the league, the kind of machine and the version of Python. In another place, for
# example after the league was moved, `refresh` builds the sources of a ready copy again. The new copy gets a folder of its
# own, HASH-PLACE. The first copy stays as it is, because other processes may play with it.


@dataclass(frozen=True, slots=True)
class Copy:
    """A copied and built bot."""

    manifest: Manifest
    content_hash: str
    """The hash of the copied files before fetch and build, as in `Snapshot`. It includes the changes of a variant."""
    spec: BotSpec
    """How to start the bot from the copy. `spec.bot` is the id from the manifest; the league may use another id."""
    build_s: float | None
    """How many seconds fetch and build took; None if the bot needs neither, or if the same content was built before."""
    is_new: bool
    """False if the workshop already had a usable copy with this content."""


class Workshop:
    """Makes and finds the copies of a league's bots.

    Args:
        folder: the league's folder; the copies are in its subfolder `bots`.
        launcher: starts the builds; None if nothing will be built.
        on_build: called with the manifest before a bot is built.
        only: the content hashes of the bots that may be copied; None for all bots.
    """

    def __init__(
        self,
        folder: Path,
        launcher: Launcher | None,
        *,
        on_build: Callable[[Manifest], None],
        only: Collection[str] | None = None,
    ) -> None:
        self._folder = folder / "bots"
        self._only = only
        self._launcher = launcher
        self._on_build = on_build

    @property
    def launcher(self) -> Launcher:
        """The launcher for builds. Do not use this property if the workshop was created without a launcher."""
        assert self._launcher is not None  # noqa: S101
        return self._launcher

    @property
    def is_limited(self) -> bool:
        """Whether only the bots in `only` may be copied.

        If True, run bots only from copies, because a bot's own folder may change after its content was checked.
        """
        return self._only is not None

    async def copy(
        self,
        source: Path,
        content_hash: str | None = None,
        variant: Variant | None = None,
        *,
        from_copy: bool = False,
        is_kept: bool = True,
    ) -> Copy:
        """Copy a bot's folder and build the bot in the copy, unless the league has an unchanged copy of the same content.

        Return the new copy or that one.
        With a `variant`, the copy has the changed manifest, so the content hash depends on the changes too.
        With `from_copy`, `source` has the files of another copy. Then `.gitignore` files have no effect. They had their effect
        when the other copy was made, and some `.gitignore` files may be missing in that copy.
        With `is_kept` False, as for a game that is not stored, a new copy is temporary. When no call has used it for a day,
        the next call for the same bot removes it, unless this call uses it. Until it is removed, the same content is not
        built again. `keep` makes the copy permanent, and so does a call with `is_kept` True.

        Raises `FolderError` if the folder cannot be copied or its manifest changes meanwhile. Raises `UserError` in these cases:
        the manifest is wrong, the folder is in the folder of the league's copies but is not a copy, that folder cannot be
        written, `content_hash` is given and the content has another hash, or the path of the copy is wrong for `packages_path`.
        Raises `BuildError` if the fetch or the build fails. Raises `VoidGame` and `UserError` as `build` does. Raises `Shortage`
        if the machine lacks a resource, such as space on the disk. After an error no new copy remains.

        A workshop with `only` raises `UserError` for a content hash that is not in `only`.
        """
        manifest = load_manifest(source, variant)
        self._check_source(source)
        folder = self._folder / manifest.name
        with copy_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            async with _lock_when_free(folder):
                with tempfile.TemporaryDirectory(prefix=_NEW, dir=folder) as new:
                    try:
                        taken = take_snapshot(
                            source, Path(new) / FOLDER, manifest, variant, from_copy=from_copy
                        )
                        check_copied(manifest, source, taken.path)
                    except UserError as error:
                        raise FolderError(*error.args) from error
                    if content_hash not in {None, taken.content_hash}:
                        raise UserError(
                            f"{manifest.name}: the content hash is {taken.content_hash} instead of {content_hash}"
                        )
                    self._check_allowed(source, taken.content_hash)
                    home = self._home(manifest.name, taken.content_hash)
                    build_s, is_new = None, False
                    if not self.has_unchanged(manifest.name, taken.content_hash):
                        # a changed copy that was permanent is replaced by a permanent one
                        is_kept |= _is_finished(home) and not (home / _PASSING).exists()
                        _remove_copy(home)
                        home.mkdir()
                        if not is_kept:
                            (home / _PASSING).touch()
                        taken.path.rename(home / FOLDER)
                        build_s, is_new = await self._finish(manifest, home), True
                    if is_kept:
                        (home / _PASSING).unlink(missing_ok=True)
                    else:
                        with suppress(FileNotFoundError):  # the copy is permanent
                            os.utime(home / _PASSING)
                    _remove_unused(folder)
        return Copy(manifest, taken.content_hash, manifest.spec(home / FOLDER), build_s, is_new)

    def pack(self, name: str, content_hash: str) -> bytes:
        """Return the files of a copy as they were before the build, in a tar archive for `unpack` on another machine.

        Raises `UserError` if the copy is missing.
        """
        home = self._find(name, content_hash)
        source = home / _SOURCE
        if source.exists():
            return source.read_bytes()
        data = io.BytesIO()
        write_archive(home / FOLDER, data)
        return data.getvalue()

    async def unpack(self, archive: bytes, content_hash: str, scratch: Path) -> Copy:
        """Copy and build a bot from an archive that `pack` has made.

        Args:
            archive: the archive.
            content_hash: the content hash that the bot must have.
            scratch: the archive is extracted into this folder. The caller removes the folder.

        Raises `UserError` if the archive is damaged or its content does not have this hash, and the errors of `copy`.
        """
        source = extract(io.BytesIO(archive), scratch)
        return await self.copy(source, content_hash, from_copy=True)

    async def copy_variant(self, name: str, content_hash: str, variant: Variant) -> Copy:
        """Copy a bot of the league with a changed manifest, and build the copy. A new copy is temporary.

        Raises `UserError` if the league's copy of the bot is missing or was changed, and the errors of `copy`.
        """
        with self._sources_of_copy(name, content_hash) as source:
            return await self.copy(source, variant=variant, from_copy=True, is_kept=False)

    def hash_folder(self, source: Path, variant: Variant | None) -> str:
        """Return the content hash that the copy of a bot's folder would have.

        Raises `UserError` if the manifest is wrong or the folder cannot be copied.
        """
        return hash_content(source, variant, left_out=self._folder)

    def hash_variant(self, name: str, content_hash: str, variant: Variant) -> str:
        """Return the content hash that the result of `copy_variant` would have.

        Raises `UserError` if the copy is missing or was changed.
        """
        with self._sources_of_copy(name, content_hash) as source:
            return hash_content(source, variant, from_copy=True)

    def has(self, name: str, content_hash: str) -> bool:
        """Return whether there is a finished copy that can be started here.

        If a fetch or a build has run in the copy, it must have run in this place; see `refresh`.
        """
        return _is_finished(self._home(name, content_hash))

    def has_unchanged(self, name: str, content_hash: str) -> bool:
        """Return whether `has` and `is_unchanged` return True for a copy."""
        return self.has(name, content_hash) and is_unchanged(
            self._home(name, content_hash) / FOLDER, content_hash
        )

    def check(self, name: str, content_hash: str) -> None:
        """Raise `UserError` if a copy is missing, or if `is_unchanged` returns False for it."""
        self._find_unchanged(name, content_hash)

    async def refresh(self, name: str, content_hash: str) -> None:
        """Check a copy before it plays. Build it again if it was built only in another place, and make the copy for this place permanent.

        A place is the folder of the league, the kind of machine and the version of Python.

        Raises the errors of `check`, and `UserError` if the copy cannot be built again. Raises `VoidGame` and `Shortage` as `copy` does.
        """
        # Let Ctrl-C cancel the task here: the check below reads all files of the bot without waiting, and a league may have many bots
        await asyncio.sleep(0)
        found = self._find_unchanged(name, content_hash)
        if self.has(name, content_hash) and not (found / _PASSING).exists():
            return
        try:
            with self._sources_of_copy(name, content_hash) as source:
                await self.copy(source, content_hash, from_copy=True)
        except UserError as error:
            if self.has(name, content_hash):
                raise
            failure = UserError(
                f"{found}: this copy was built in another folder, on another kind of machine or with another Python, and it"
                f" cannot be built again here: {error}"
            )
            failure.output = error.output
            raise failure from error

    def spec(self, name: str, content_hash: str) -> BotSpec:
        """Return how to start a bot from its copy. `BotSpec.bot` is the id from the manifest.

        If the copy was built only in another place, the bot cannot be started before `refresh`. Raises `UserError` if the copy
        is missing, or if `packages_path` raises it.
        """
        return self.manifest(name, content_hash).spec(self._home(name, content_hash) / FOLDER)

    def folder(self, name: str, content_hash: str) -> Path:
        """Return the folder with the files of a bot's copy.

        It is the copy for this place. If there is none, it is `bots/NAME/HASH`, which was built in another place. Raises
        `UserError` if both are missing.
        """
        return self._find(name, content_hash) / FOLDER

    def manifest(self, name: str, content_hash: str) -> Manifest:
        """Return the manifest of a copy. Raises `UserError` if the copy is missing."""
        return load_manifest(self.folder(name, content_hash))

    def keep(self, copy: Copy) -> None:
        """Make a temporary copy permanent."""
        home = self._home(copy.manifest.name, copy.content_hash)
        (home / _PASSING).unlink(missing_ok=True)

    def discard(self, copy: Copy, use: AbstractContextManager[bool]) -> None:
        """Remove a copy, unless the league uses it. If the same content is submitted later, `copy` makes and builds a new copy.

        During the removal, the method `copy` waits in other processes. A process that already has the copy finds it
        incomplete or gone.

        Args:
            copy: the copy.
            use: yields True if the league uses the copy. Until its block ends, no other process can add the copy to the league.
        """
        with _lock(self._folder / copy.manifest.name):
            home = self._home(copy.manifest.name, copy.content_hash)
            with use as is_used:
                if is_used:
                    return
                # Remove `ready` first: if the referee is killed during the removal, the rest must not look like a complete
                # copy. Remove it inside the block, because later another process could add the copy to the league.
                (home / _READY).unlink(missing_ok=True)
            remove_folder(home)

    def build_log(self, name: str, content_hash: str) -> str:
        """Return the output of a copy's build; empty if there was no build."""
        for home in (self._home(name, content_hash), self._folder / name / content_hash):
            with suppress(FileNotFoundError):
                return (home / _LOG).read_text(encoding="utf-8")
        return ""

    def _home(self, name: str, content_hash: str) -> Path:
        """Return the folder of the copy to use here.

        It is `bots/NAME/HASH-PLACE` in two cases: if `bots/NAME/HASH` was built in another place, or if `bots/NAME/HASH` is
        gone or unfinished and `bots/NAME/HASH-PLACE` is finished. Otherwise it is `bots/NAME/HASH`.
        The name has the whole content hash. With only a part of it, an attacker could make two different bots that get
        the same folder.
        """
        first, place = self._folder / name / content_hash, self._describe_place()
        other = first.with_name(f"{content_hash}-{hashlib.sha256(place).hexdigest()[:16]}")
        try:
            is_first = (first / _READY).read_bytes() == place or not (first / _SOURCE).exists()
        except FileNotFoundError:  # the first copy was removed, or never finished
            is_first = not _is_finished(other)
        return first if is_first else other

    def _find(self, name: str, content_hash: str) -> Path:
        """Return the folder of the finished copy for this place, or else `bots/NAME/HASH`. Raises `UserError` if neither is finished."""
        first = self._folder / name / content_hash
        for home in (self._home(name, content_hash), first):
            if _is_finished(home):
                return home
        raise UserError(f"{first}: the league's copy of {name} is gone; submit it again")

    def _find_unchanged(self, name: str, content_hash: str) -> Path:
        """Do what `_find` does. Raise `UserError` also if `is_unchanged` returns False for this copy."""
        home = self._find(name, content_hash)
        if not is_unchanged(home / FOLDER, content_hash):
            raise UserError(
                f"{home}: the league's copy of {name} was changed; submit the original folder again"
            )
        return home

    def _describe_place(self) -> bytes:
        """Return what a build depends on besides its sources."""
        folder = self._folder.resolve()
        return os.fsencode(f"{platform.machine()}\n{sys.implementation.cache_tag}\n{folder}\n")

    def _check_allowed(self, source: Path, content_hash: str) -> None:
        """Raise `UserError` about `source` if the workshop has `only` and `content_hash` is not in it."""
        if self._only is not None and content_hash not in self._only:
            raise UserError(
                f"{source}: is not a sample bot any more; only the sample bots play without isolation"
            )

    def _check_source(self, source: Path) -> None:
        """Raise `UserError` if a bot's folder is inside the folder of the league's copies, but is not a copy.

        The workshop removes unfinished copies there, and could mistake a folder of the author for one.
        """
        folder = source.resolve()
        is_copy = (folder.parent / _READY).exists()
        if folder.is_relative_to(self._folder.resolve()) and not is_copy:
            raise UserError(
                f"{source}: the league keeps its copies of bots in {self._folder}; choose another --league, or move the bot"
            )

    @contextmanager
    def _sources_of_copy(self, name: str, content_hash: str) -> Iterator[Path]:
        """Yield a folder with the files of a copy as they were before the build. Do not change it."""
        home = self._find_unchanged(name, content_hash)
        if not (home / _SOURCE).exists():  # nothing was built
            yield home / FOLDER
            return
        with tempfile.TemporaryDirectory() as scratch, (home / _SOURCE).open("rb") as archive:
            yield extract(archive, Path(scratch))

    async def _finish(self, manifest: Manifest, home: Path) -> float | None:
        """Fetch packages and build the bot in its new copy if needed, and mark the copy as ready. Return `Copy.build_s`.

        If there is an error, remove the copy, and raise the error.
        """
        build_s = None
        try:
            command, fetch = (
                (None, None)
                if manifest.build is None
                else (manifest.build.command, manifest.build.fetch)
            )
            if command is not None or plan_fetches(home / FOLDER, None, None):
                self._on_build(manifest)
                with (home / _SOURCE).open("wb") as archive:
                    write_archive(home / FOLDER, archive)
                built = await build(command, home / FOLDER, launcher=self.launcher, fetch=fetch)
                check_build(manifest, built, home / FOLDER)
                (home / _LOG).write_text(built.output, encoding="utf-8")
                build_s = built.elapsed_s
            manifest.spec(home / FOLDER)  # raises if the bot cannot be started from there
            make_read_only(home / FOLDER)
            (home / _READY).write_bytes(self._describe_place())
        except BaseException:
            _remove_copy(home)
            raise
        return build_s


def _is_finished(home: Path) -> bool:
    """Return whether the folder of a copy has a finished copy that still has its manifest."""
    return (home / _READY).exists() and (home / FOLDER / FILE_NAME).exists()


def _remove_copy(home: Path) -> None:
    """Remove the folder of a copy.

    The file `ready` is removed first. If the referee is killed after that, the rest does not look like a complete copy.
    """
    (home / _READY).unlink(missing_ok=True)
    remove_folder(home)


def is_unchanged(copy: Path, content_hash: str) -> bool:
    """Return whether the files of a copy are unchanged. If a fetch or a build has run in the copy, return True without a check.

    Args:
        copy: the folder of the copy, which is `BotSpec.folder`.
        content_hash: the content hash of the bot.
    """
    try:
        return (copy.parent / _SOURCE).exists() or hash_content(
            copy, from_copy=True
        ) == content_hash
    except UserError:  # the copy is no bot any more
        return False


@contextmanager
def _lock(folder: Path, flags: int = 0) -> Iterator[None]:
    """Hold the lock of `folder`, which is `bots/NAME`; wait while another process holds the lock.

    Remove the unfinished copies that killed processes have left in the folder. With `LOCK_NB` in `flags`, do not wait, but
    raise BlockingIOError.
    """
    # no access for other users: whoever can open the file can lock it
    descriptor = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | flags)
        for unfinished in folder.glob(f"{_NEW}*"):
            remove_folder(unfinished)
        yield
    finally:
        os.close(descriptor)


@asynccontextmanager
async def _lock_when_free(folder: Path) -> AsyncIterator[None]:
    """Do what `_lock` does, but without blocking the event loop, because another task of this loop may hold the lock."""
    with ExitStack() as held:
        while True:
            with suppress(BlockingIOError):
                held.enter_context(_lock(folder, fcntl.LOCK_NB))
                break
            await asyncio.sleep(_LOCK_POLL_S)
        yield


def _remove_unused(folder: Path) -> None:
    """Remove each temporary copy of a bot that was not used for a day. The caller must hold the lock of `folder`."""
    before_s = time.time() - _PASSING_S
    for mark in folder.glob(f"*/{_PASSING}"):
        with suppress(FileNotFoundError):  # `keep` has removed the mark
            if mark.stat().st_mtime < before_s:
                _remove_copy(mark.parent)
