"""The folder of a bot process, and how nothing of it is left, whatever the bot has put there."""

from __future__ import annotations

import itertools
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from referee.errors import VoidGame

_BLOCK_KIB = 4


class BotFolder:
    """A fresh folder, for the referee and one bot process alone.

    Raises `VoidGame` when there is no room for it.
    """

    def __init__(self, parent: Path) -> None:
        try:
            self.path = Path(tempfile.mkdtemp(prefix="bot-", dir=parent))
            self.scratch = self.path / "scratch"
            """What is the bot's own: HOME and TMPDIR."""
            self.scratch.mkdir(mode=0o700)
            link = self.path / "link"
            link.mkdir(mode=0o700)
        except OSError as error:
            raise VoidGame(f"no room for a bot's folder: {error}") from error
        self.socket = link / "socket"
        """In a folder of its own, so that the bot can be given that one and read only."""

    def scratch_kib(self, enough_kib: int) -> int:
        """How much of the disk the scratch folder takes; counting ends at `enough_kib`.

        Each name in it counts as one block at least. No link is followed; what cannot be read counts
        nothing.
        """
        size_kib = 0
        folders = [str(self.scratch)]
        while folders and size_kib < enough_kib:
            with suppress(OSError), os.scandir(folders.pop()) as entries:
                for entry in entries:
                    size_kib += _BLOCK_KIB
                    with suppress(OSError):
                        blocks = entry.stat(follow_symlinks=False).st_blocks
                        size_kib += max(0, blocks // 2 - _BLOCK_KIB)  # these are of 512 bytes
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                    if size_kib >= enough_kib:
                        break
        return size_kib

    def remove(self) -> None:
        """Remove it, as far as it can be."""
        remove(self.path)


def remove(path: Path) -> None:
    """Remove a folder that a bot could write to, as far as it can be. No link is followed, no pipe opened.

    A folder within is moved up before it is emptied: so it does not matter how deep they lie, how long
    their path is, and that they are locked.
    """
    names = (path.with_name(f"{path.name}-{n}") for n in itertools.count())
    folders = [path]
    while folders:
        with suppress(OSError):
            folder = folders.pop()
            for entry in list(folder.iterdir()):
                with suppress(OSError):
                    if entry.is_dir() and not entry.is_symlink():
                        entry.chmod(0o700)
                        folders.append(entry.rename(next(names)))
                    else:
                        entry.unlink()
            folder.rmdir()
