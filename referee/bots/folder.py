"""The folder of a bot process, and how nothing of it is left, whatever the bot has put there."""

from __future__ import annotations

import itertools
import tempfile
from contextlib import suppress
from pathlib import Path

from referee.errors import VoidGame


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
