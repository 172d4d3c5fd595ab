"""Where the referee may make cgroups, in version 1 and 2 of them.

Nothing is known by version: where a cgroup can be made and limits be written is found by doing it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

CONTROLLERS = ("memory", "pids", "cpu")
"""Those that a full isolation needs."""
PREFIX = "referee-"
"""Of the names of all cgroups that referees make."""
_V1 = (*CONTROLLERS, "cpuacct")


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A folder in which the referee may make cgroups."""

    folder: Path
    controllers: frozenset[str]
    version: int


def usable(proc: Path) -> Iterator[Hierarchy]:
    """Where the referee may make cgroups.

    Args:
        proc: the folder of a process in /proc: it says which cgroups it is in, and where they are.
    """
    mounts = _mounts(proc)
    left = set(_V1)
    for line in lines(proc / "cgroup"):
        number, names, path = line.split(":", 2)
        its = left.intersection(names.split(","))
        for mount in mounts.get(frozenset(its), ()) if its or number == "0" else ():
            own = mount.folder(path)
            if own is None:
                continue
            if number == "0":
                found, its = _delegated(own, left.intersection(CONTROLLERS))
            else:
                found = own if _may_make(own) else None
            if found is not None and its:
                left -= its
                yield Hierarchy(found, frozenset(its), 2 if number == "0" else 1)
                break


@dataclass(frozen=True, slots=True)
class _Mount:
    root: str
    point: Path

    def folder(self, path: str) -> Path | None:
        """Where a cgroup of the hierarchy is, if it can be seen."""
        below = os.path.relpath(path, self.root)
        folder = self.point if below.startswith("..") else self.point / below
        return folder if folder.is_dir() else None


def _mounts(proc: Path) -> dict[frozenset[str], list[_Mount]]:
    """By those of our controllers that they have; version 2 has none here."""
    found: dict[frozenset[str], list[_Mount]] = {}
    for line in lines(proc / "mountinfo"):
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        fields = before.split()
        if kind in {"cgroup", "cgroup2"}:
            names = frozenset(options.split(",") if kind == "cgroup" else ()).intersection(_V1)
            if names or kind == "cgroup2":
                found.setdefault(names, []).append(_Mount(fields[3], Path(fields[4])))
    return found


def lines(file: Path) -> list[str]:
    """The lines of a file; none where it cannot be read."""
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def _may_make(folder: Path) -> bool:
    trial = folder / f"{PREFIX}trial-{os.getpid()}"
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError:
        return False
    return True


def _delegated(own: Path, wanted: set[str]) -> tuple[Path | None, set[str]]:
    """Where in version 2 cgroups with controllers can be made: below the referee's own, or beside it.

    A cgroup with processes in it has no controllers for those below (but for the root), so it is mostly
    beside it, in what a service manager has delegated.
    """
    for folder in (own, own.parent):
        trial = folder / f"{PREFIX}trial-{os.getpid()}"
        with suppress(OSError):
            trial.mkdir()
            try:
                for controller in wanted:
                    with suppress(OSError):
                        (folder / "cgroup.subtree_control").write_text(f"+{controller}")
                there = {each for each in wanted if (trial / f"{each}.max").exists()}
            finally:
                trial.rmdir()
            if there and os.access(folder / "cgroup.procs", os.W_OK):
                return folder, there
    return None, set()
