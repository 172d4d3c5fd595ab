"""Find the toolchains outside of /usr that a sandbox shows to a program.

These are the toolchains in the folders of PATH, and the interpreter that runs the referee. So the toolchains are chosen
by the person who runs the referee, not by the author of a bot. A home folder is never shown whole, because it may
contain private files.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from referee.sandbox.folders import find_home

SYSTEM = Path("/usr")
"""The folder of the system. Sandboxes show it whole."""
_INSTALLATION_FOLDERS = ("lib", "lib64", "libexec", "share")
"""If one of these folders lies beside a folder `bin` or `sbin`, the parent of both is an installation. A sandbox shows it
whole, unless it may contain private files."""
_MAX_LINKS = 20
"""The largest number of links and script interpreters that are followed from one program."""
_PACKAGE = Path(__file__).resolve().parents[1]
"""The package `referee`, which bots import for its SDK."""


def find_toolchains(program: str, path: str) -> list[Path]:
    """Return the toolchains that a sandbox shows to a program, as folders and files outside of /usr.

    Args:
        program: the name or path of the program. A name is looked up in PATH. `_follow_links` then finds the files
            behind this name, and their folders are searched for toolchains too, like the folders of PATH. For a path
            (with a slash), only the folders of PATH are searched.
        path: the value of PATH in the program's environment.
    """
    folders = [Path(folder) for folder in path.split(os.pathsep) if folder.startswith("/")]
    if "/" not in program:
        for folder in folders:
            if os.access(folder / program, os.X_OK):
                folders += [file.parent for file in _follow_links(folder / program, folders)]
                break
    return _outermost(
        [*_interpreter(), *(root for folder in folders for root in _installations(folder))]
    )


def _outermost(folders: Sequence[Path]) -> list[Path]:
    """Return the folders and files that exist, are not part of the system, and do not lie in another returned folder."""
    known = {folder for folder in folders if folder.exists() and not _is_system(folder)}
    return sorted(folder for folder in known if known.isdisjoint(folder.parents))


@cache
def _interpreter() -> tuple[Path, ...]:
    """Return the folders and files of the interpreter that runs the referee, of its virtual environment, and of the SDK."""
    prefixes = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.base_exec_prefix)}
    return (*(path for prefix in sorted(prefixes) for path in _python_files(prefix)), _PACKAGE)


def find_interpreter() -> list[Path]:
    """Return the folders and files that `init.py`, process 1 of a sandbox, needs: the referee's interpreter without a virtual environment."""
    prefixes = {Path(sys.base_prefix), Path(sys.base_exec_prefix)}
    return _outermost([path for prefix in prefixes for path in _python_files(prefix)])


def _python_files(prefix: Path) -> Iterator[Path]:
    """Yield `prefix`, the folder where Python is installed. If it may contain private files, yield only its `bin` and the files of Python."""
    if not _is_private(prefix):
        yield prefix
        return
    yield from (prefix / "bin", prefix / "pyvenv.cfg")
    for library in {(prefix / "lib").resolve(), (prefix / "lib64").resolve()}:
        yield library / f"python{sys.version_info.major}.{sys.version_info.minor}"
        yield from library.glob("libpython*")


def _follow_links(program: Path, folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the target of a program that is a link, or the interpreter of a script; then do the same with that file."""
    for _ in range(_MAX_LINKS):
        if program.is_symlink():
            program = program.parent / program.readlink()
            yield program
        elif (words := _read_shebang(program)) is not None:
            name = Path(words[0]).name
            wanted = words[1] if name == "env" and len(words) > 1 else words[0]
            # `folder / wanted` is `wanted` itself if that is an absolute path
            candidates = [folder / wanted for folder in folders]
            found = next((each for each in candidates if os.access(each, os.X_OK)), None)
            if found is None:
                return
            program = found
            yield program
        else:
            return


def _read_shebang(program: Path) -> list[str] | None:
    try:
        with program.open("rb") as file:
            first = file.readline(256)
    except OSError:
        return None
    return first[2:].decode(errors="replace").split() or None if first[:2] == b"#!" else None


def _installations(folder: Path) -> Iterator[Path]:
    """Yield what `_installation` yields for `folder` and, if its path contains links, for the resolved path.

    Yield nothing if this process may not enter `folder`, or if the path is a loop of links.
    """
    if not os.access(folder, os.X_OK):
        return
    yield from _installation(folder)
    if (resolved := folder.resolve()) != folder:
        yield from _installation(resolved)


def _installation(folder: Path) -> Iterator[Path]:
    """Yield the installation that contains `folder`. If there is none, or if it is private, yield `folder` itself.

    For a virtual environment, also yield the installation of its interpreter. Never yield a private folder; see
    `_is_private`.
    """
    prefix = folder.parent
    if folder.name == "shims" and not _is_private(prefix):
        # the scripts in the `shims` of pyenv and similar tools run programs of the parent folder
        yield prefix
    elif folder.name in {"bin", "sbin"} and not _is_private(prefix) and _is_prefix(prefix):
        yield prefix
        if (home := _base_of_virtual_environment(prefix)) is not None:
            yield from _installations(home)
    elif not _is_private(folder):
        yield folder


def _is_prefix(folder: Path) -> bool:
    return any((folder / name).is_dir() for name in _INSTALLATION_FOLDERS)


def _base_of_virtual_environment(folder: Path) -> Path | None:
    """Return the folder of a virtual environment's interpreter; None if `folder` is no virtual environment."""
    try:
        lines = (folder / "pyvenv.cfg").read_text(errors="replace").splitlines()
    except OSError:
        return None
    pairs = (line.partition("=") for line in lines)
    return next((Path(value.strip()) for key, _, value in pairs if key.strip() == "home"), None)


def _is_private(folder: Path) -> bool:
    """Return whether a folder may contain private files: a home folder, a parent of one, or any folder `.local`."""
    resolved = folder.resolve()
    return resolved.name == ".local" or resolved in _home_folders(find_home() or Path("/"))


@cache
def _home_folders(home: Path) -> frozenset[Path]:
    """Return the home folders of all accounts, their parents, and the target of `~/.local` if it is a link.

    PATH can name folders in a home folder other than HOME, for example after sudo. Some systems do not list
    all accounts. So the accounts of the referee's user and of the caller of sudo are also looked up one by one.

    Args:
        home: the home folder of the referee's user.
    """
    accounts = pwd.getpwall()
    with suppress(KeyError):
        accounts.append(pwd.getpwuid(os.getuid()))
    with suppress(KeyError):
        accounts.append(pwd.getpwnam(os.environ["SUDO_USER"]))
    paths = {home, *(Path(each.pw_dir) for each in accounts if each.pw_dir.startswith("/"))}
    homes = paths | {Path(os.path.realpath(each)) for each in paths}
    parents = {Path(os.path.realpath(parent)) for each in homes for parent in each.parents}
    return frozenset({*homes, *parents, (home / ".local").resolve()})


def _is_system(folder: Path) -> bool:
    return SYSTEM in (folder, *folder.parents) or folder.resolve().is_relative_to(SYSTEM)
