"""Where bots are copied and built: once for each content, in a folder of the league.

bots/NAME/HASH/bot       the copy, in which it was built and from which it is run
bots/NAME/HASH/build.log what the build printed
bots/NAME/HASH/ready     there when all of that is complete
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from referee.bots import snapshot as snapshots
from referee.bots.build import Built, build
from referee.bots.manifest import FILE_NAME, BotSpec, Manifest, load_manifest
from referee.errors import UserError
from referee.sandbox.launcher import Launcher

_HASH_LENGTH = 16
_BOT = "bot"
_LOG = "build.log"
_READY = "ready"
_NEW = "new-"
_LAST_LINES = 40


class BuildError(UserError):
    """A bot that cannot be built."""

    def __init__(self, bot: str, reason: str, output: str) -> None:
        super().__init__(f"{bot}: {FILE_NAME}: build.command: {reason}")
        self.reason = reason
        self.output = output
        """The end of what the build printed; printable, of many lines."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A bot, copied and built."""

    manifest: Manifest
    content_hash: str
    spec: BotSpec
    """How it is started from its copy; its version is the manifest's."""
    build_s: float | None
    """How long it took to build; None where there was nothing to do."""


class Workshop:
    """The copies of a league's bots.

    Args:
        folder: of the league; what is made is below its folder `bots`.
        launcher: how builds are started; None where nothing is going to be built.
        on_build: is told the manifest of a bot that is about to be built.
        network: builds may use it.
    """

    def __init__(
        self,
        folder: Path,
        launcher: Launcher | None,
        *,
        on_build: Callable[[Manifest], None],
        network: bool = False,
    ) -> None:
        self._folder = folder / "bots"
        self._launcher = launcher
        self._network = network
        self._on_build = on_build

    @property
    def launcher(self) -> Launcher:
        """How builds are started; who lets something be built has given one."""
        assert self._launcher is not None  # noqa: S101
        return self._launcher

    async def copy(self, source: Path) -> Copy:
        """Copy a bot's folder and build it there, unless the same content was before.

        Raises UserError for a bad manifest and for a folder that cannot be copied, BuildError when
        the build fails, and VoidGame when the machine has no room for a process. Then nothing is left.
        """
        manifest = load_manifest(source)
        folder = self._folder / manifest.name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with _alone(folder), tempfile.TemporaryDirectory(prefix=_NEW, dir=folder) as new:
                taken = snapshots.take(source, Path(new) / _BOT, built=manifest.build is not None)
                home = self._home(manifest.name, taken.content_hash)
                build_s = None
                if not (home / _READY).exists():
                    shutil.rmtree(home, ignore_errors=True)
                    home.mkdir()
                    taken.path.rename(home / _BOT)
                    build_s = await self._finish(manifest, home)
        except OSError as error:
            raise UserError(f"{folder}: {error.strerror}") from error
        return Copy(manifest, taken.content_hash, manifest.spec(home / _BOT), build_s)

    def spec(self, name: str, content_hash: str) -> BotSpec:
        """How a bot is started that was copied before; its version is the manifest's.

        Raises UserError as `manifest` does.
        """
        return self.manifest(name, content_hash).spec(self._home(name, content_hash) / _BOT)

    def manifest(self, name: str, content_hash: str) -> Manifest:
        """What a bot says about itself that was copied before.

        Raises UserError when the copy is gone.
        """
        home = self._home(name, content_hash)
        if not (home / _READY).exists():
            raise UserError(f"{home}: the league's copy of {name} is gone; submit it again")
        return load_manifest(home / _BOT)

    def discard(self, copy: Copy) -> None:
        """Forget a copy that nobody is going to play, so that the next one is built anew."""
        with _alone(self._folder / copy.manifest.name):
            shutil.rmtree(self._home(copy.manifest.name, copy.content_hash), ignore_errors=True)

    def build_log(self, name: str, content_hash: str) -> str:
        """What the build of a copy printed; empty where there was none."""
        try:
            return (self._home(name, content_hash) / _LOG).read_text()
        except FileNotFoundError:
            return ""

    def _home(self, name: str, content_hash: str) -> Path:
        return self._folder / name / content_hash[:_HASH_LENGTH]

    async def _finish(self, manifest: Manifest, home: Path) -> float | None:
        """Build in a fresh copy, and mark it complete; or leave nothing of it. Returns `Copy.build_s`."""
        build_s = None
        try:
            if manifest.build is not None:
                self._on_build(manifest)
                built = await build(
                    manifest.build.command,
                    home / _BOT,
                    launcher=self.launcher,
                    network=self._network,
                )
                _check(manifest, built, home / _BOT)
                (home / _LOG).write_text(built.output)
                build_s = built.elapsed_s
            _make_read_only(home / _BOT)
            (home / _READY).touch()
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        return build_s


def _check(manifest: Manifest, built: Built, folder: Path) -> None:
    reason = built.reason
    if reason is None:
        try:
            if load_manifest(folder) != manifest:
                reason = f"it has changed {FILE_NAME}"
        except UserError as error:
            reason = f"it has spoilt {FILE_NAME}: {error}"
    if reason is not None:
        raise BuildError(manifest.name, reason, last_lines(built.output))


def last_lines(output: str) -> str:
    """The end of what a build printed, as much as one wants to read."""
    lines = output.splitlines()
    left_out = len(lines) - _LAST_LINES
    head = [f"… {left_out} lines before"] if left_out > 0 else []
    return "\n".join(head + lines[-_LAST_LINES:])


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Be the only one who makes copies in a folder; wait for whoever is at it.

    What others have left half done, whom somebody has killed, is removed.
    """
    descriptor = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        for unfinished in folder.glob(f"{_NEW}*"):
            shutil.rmtree(unfinished, ignore_errors=True)
        yield
    finally:
        os.close(descriptor)


def _make_read_only(folder: Path) -> None:
    """Take the right to write its files from everybody: what was checked is what is played.

    And let everybody read them: where the referee is root, the bot is another user.
    """
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        mode = stat.S_IMODE(path.lstat().st_mode)
        if path.is_symlink():
            continue
        if path.is_dir():
            path.chmod(mode | 0o755)
        elif path.is_file():
            path.chmod(mode & ~0o222 | (0o555 if mode & stat.S_IXUSR else 0o444))
