"""What a program may reach: said by who starts it, seen to by a launcher that isolates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a program may reach beside the system, its own folder and what it is made of."""

    scratch: Path | None = None
    """An empty folder that is its own: HOME and TMPDIR."""
    link: Path | None = None
    """The folder of the socket by which it reaches the referee."""
    home: Path | None = None
    """A folder that is its own, which a sandbox shows in the place of its user's home folder."""
    writable: tuple[Path, ...] = ()
    """Folders in which it may change everything; its own folder may be one of them."""
    shown: tuple[Path, ...] = ()
    """Further files and folders that it may read."""
    network: bool = False
    """All that the machine reaches."""
    relay: tuple[Path, int] | None = None
    """A UNIX socket that it is to reach by this port of its loopback address."""


NO_ACCESS = Access()
"""Nothing of that."""
