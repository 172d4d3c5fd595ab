"""The bots of a league, for the commands that let them play."""

from __future__ import annotations

import time
from pathlib import Path

from referee.bots import Launcher
from referee.bots.manifest import Manifest
from referee.cli.output import notes
from referee.roster import Roster, Workshop
from referee.store import League


def workshop_at(
    folder: Path, launcher: Launcher | None = None, *, network: bool = False
) -> Workshop:
    """Where the bots of a league are copied and built; says so when it builds.

    Without a launcher nothing can be built there. Builds may use the `network` or not.
    """
    return Workshop(folder, launcher, network=network, on_build=_announce)


def roster_of(league: League, launcher: Launcher | None = None, *, network: bool = False) -> Roster:
    """The bots of a league; what else is said as for `workshop_at`."""
    return Roster(league, workshop_at(league.folder, launcher, network=network))


def now_us() -> int:
    """The time, in microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1000


def _announce(manifest: Manifest) -> None:
    command = " ".join(manifest.build.command) if manifest.build else ""
    notes.print(f"Building {manifest.name}: {command}", soft_wrap=True)
