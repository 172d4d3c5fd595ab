"""Plan how to fetch the packages of a bot: by which package manager, with which files, in which environment.

A build has no network in a sandbox. So its packages are fetched before it. A package manager runs in a new folder. It
has only the files that `copy_files` puts there, such as copies of those that name packages. A `build.fetch` is a command
of the bot, and runs in the bot's folder. What package managers fetch is in the home folder of the build, or is moved into
the bot's folder. `build` in `bots/build.py` runs the plan.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import stat
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.request import getproxies_environment

from referee.bots import PYTHON_PACKAGES, python_path
from referee.bots.dependencies import CHECKS
from referee.bots.registries import Registries, bare_url
from referee.errors import UserError, copy_errors
from referee.sandbox.folders import find_home, require_home
from referee.sandbox.gateway import Address

PROXY_PORT = 3128
"""The port on 127.0.0.1 at which a fetch in a sandbox reaches its gateway, which is its HTTP proxy."""
_VARIABLES = ("LANG", "LC_ALL", "PATH", "TERM", "TZ")
"""The environment variables that are copied from the referee to every isolated fetch and build."""
_FETCH_VARIABLES: Mapping[str, str] = {
    "GOFLAGS": "-mod=mod",
    "GOTOOLCHAIN": "local",
    "GOVCS": "*:off",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "npm_config_fetch_retries": "1",
    "npm_config_fetch_retry_mintimeout": "1000",
    "npm_config_update_notifier": "false",
}
"""Environment variables of an isolated fetch. Go fetches no other toolchain and uses no version control system. npm retries
once, after a second. pip and npm do not look for new versions of themselves."""
_MAX_BYTES = 2 << 20
"""The largest size of a file that names packages."""
_MAVEN_EXTENSIONS = ".mvn/extensions.xml"
_ONLY_WHEELS = ("--only-binary=:all:", "--no-input", "--no-warn-script-location")
_NO_SCRIPTS = ("--ignore-scripts", "--include=dev", "--prefer-offline", "--no-audit", "--no-fund")


@dataclass(frozen=True, slots=True)
class PackageManager:
    """A package manager, and how it fetches the packages of a bot."""

    files: tuple[str, ...]
    """The files that it reads. It is used for bots that have the first one."""
    command: tuple[str, ...]
    vendored: str | None = None
    """A path in the bot's folder. If it exists, the bot brings its packages along, and none are fetched."""
    result: str | None = None
    """The folder that is moved into the bot's folder; None if what is fetched stays in the home folder."""
    sources: str | None = None
    """A file name ending. For each file of the bot with this ending, the fetch gets an empty file of the same name, because
    Cargo only checks that the sources exist."""
    schemas: str | None = None
    """The ending of further files that are copied. Plugins read these files to find out which tools they need."""
    is_decisive: bool = True
    """Whether a failed fetch prevents the build, provided that the registries could be reached. False for Maven: in a fetch, its
    plugins may fail only because the bot's sources are not there."""
    rule: str = ""
    """A rule of the fetch that explains many failures, to be appended to the reason."""
    needs_build: bool = True
    """Whether the packages are of use only for a build."""


_CARGO_TARGET = (
    ("--target", f"{platform.machine()}-unknown-linux-gnu")
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
    else ()
)
"""Without this, Cargo also fetches the packages for other operating systems."""
MANAGERS: Mapping[str, PackageManager] = {
    "go": PackageManager(("go.mod", "go.sum"), ("go", "mod", "download"), "vendor/modules.txt"),
    "cargo": PackageManager(
        ("Cargo.lock", "Cargo.toml"), ("cargo", "fetch", "--locked", *_CARGO_TARGET), sources=".rs"
    ),
    "npm": PackageManager(
        ("package-lock.json", "package.json"),
        ("npm", "ci", *_NO_SCRIPTS),
        vendored="node_modules",
        result="node_modules",
        needs_build=False,
    ),
    "mvn": PackageManager(
        ("pom.xml",), ("mvn", "-B", "package"), schemas=".proto", is_decisive=False
    ),
    "pip": PackageManager(
        ("requirements.txt",),
        (
            *("python3", "-m", "pip", "install", *_ONLY_WHEELS),
            *("--target", PYTHON_PACKAGES, "--requirement", "requirements.txt"),
        ),
        vendored=PYTHON_PACKAGES,
        result=PYTHON_PACKAGES,
        rule="only wheels are fetched, no source distributions",
        needs_build=False,
    ),
}
"""The package managers by the names of their programs."""


_CACHES: Mapping[str, tuple[str, ...]] = {
    "cargo": (".cargo/registry",),
    "go": ("go/pkg/mod", ".cache/go-build"),
    "gradle": (".gradle/caches/modules-2",),
    "mvn": (".m2/repository",),
    "npm": (".npm/_cacache",),
    "pip": (".cache/pip",),
}
"""Maps the program of a command to the cache folders to copy, relative to the user's home folder.

Folders with repositories of version control systems are not copied, because packages come from registries only.
"""
_GO_REPOSITORIES = "go/pkg/mod/cache/vcs"
"""The folder with such repositories in Go's cache, relative to the user's home folder."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """One command that fetches packages."""

    command: tuple[str, ...]
    manager: PackageManager | None
    """None for the `build.fetch` of a manifest: it runs in the bot's folder, and what it makes stays there."""


def plan_fetches(
    folder: Path, build: Sequence[str] | None, custom: Sequence[str] | None
) -> list[Fetch]:
    """Return the commands that fetch the packages of a bot.

    Args:
        folder: the bot's folder.
        build: the `build.command` of the manifest; None if the bot needs no build.
        custom: the `build.fetch` of the manifest; None if the files of the bot's folder decide.
    """
    if custom is not None:
        return [Fetch(tuple(custom), None)] if custom else []
    return [
        Fetch(_command(manager, build), manager)
        for manager in MANAGERS.values()
        if os.path.lexists(folder / manager.files[0])
        and not (manager.vendored and os.path.lexists(folder / manager.vendored))
        and (build is not None or not manager.needs_build)
    ]


def _command(manager: PackageManager, build: Sequence[str] | None) -> tuple[str, ...]:
    """Return the command of a package manager.

    For Maven it has the goals of the build command, because only the plugins of these goals know which packages they need.
    If the build command is not `mvn`, the goal is `package`.
    """
    if manager is MANAGERS["mvn"]:
        goals = build[1:] if build and Path(build[0]).name == "mvn" else manager.command[1:]
        return ("mvn", "-Dmaven.main.skip=true", "-Dmaven.test.skip=true", *goals)
    return manager.command


def copy_files(
    manager: PackageManager, folder: Path, target: Path, addresses: Collection[Address]
) -> None:
    """Check and copy the files of a bot that a package manager reads, see `PackageManager`. Copy nothing else of the bot.

    For each file with the ending `sources`, create an empty file of the same name.

    Args:
        manager: the package manager.
        folder: the bot's folder.
        target: an empty folder.
        addresses: the addresses of the registries.

    Raises `UserError` if a file is wrong, or names a package that is not from a registry.
    """
    hosts = {address.host for address in addresses}
    if manager is MANAGERS["mvn"] and os.path.lexists(folder / _MAVEN_EXTENSIONS):
        raise UserError(
            f"{_MAVEN_EXTENSIONS}: extensions are code that runs inside Maven; remove the file,"
            " or set build.fetch in bot.toml (proto/README.md, section 3)"
        )
    for name in manager.files:
        if os.path.lexists(folder / name):
            try:
                content = CHECKS[name](name, _read(folder, name), hosts)
            except RecursionError:
                raise UserError(f"{name}: nested too deeply") from None
            (target / name).write_bytes(content)
    for path in _list_files(folder, manager.sources):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).touch()
    for path in _list_files(folder, manager.schemas):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_bytes(_read(folder, str(path)))


def _list_files(folder: Path, ending: str | None) -> Iterator[Path]:
    """Yield the files below a folder with this ending, relative to the folder. Follow no link."""
    if ending is None:
        return
    for here, _, names in os.walk(folder):
        for name in names:
            file = Path(here, name)
            if name.endswith(ending) and not file.is_symlink():
                yield file.relative_to(folder)


def _read(folder: Path, name: str) -> bytes:
    """Return the content of a file. Raises `UserError` if it is a link, is not a regular file, or is too large."""
    status = (folder / name).lstat()
    if not stat.S_ISREG(status.st_mode):
        raise UserError(f"{name}: must be a regular file, not a link")
    if status.st_size > _MAX_BYTES:
        raise UserError(f"{name}: larger than {_MAX_BYTES >> 20} MiB")
    return (folder / name).read_bytes()


def take_result(manager: PackageManager, work: Path, folder: Path) -> None:
    """Move the fetched folder, if there is one, from the folder of the fetch into the bot's folder."""
    if manager.result is not None:
        result = work / manager.result
        if result.is_dir() and not result.is_symlink():
            shutil.move(result, folder / manager.result)


def fetch_environment(home: Path, registries: Registries, *, sandboxed: bool) -> dict[str, str]:
    """Return the environment variables of an isolated fetch.

    Args:
        home: the home folder, as the fetch sees it.
        registries: the settings of this machine.
        sandboxed: whether the fetch runs in a sandbox, where the gateway is its proxy. Without a sandbox it uses the
            operator's proxy, without a password.
    """
    java = [java_home_option(home)]
    if sandboxed:
        names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
        proxies = dict.fromkeys(names, f"http://127.0.0.1:{PROXY_PORT}") | {"no_proxy": ""}
        java += [
            f"-D{scheme}.proxy{key}={value}"
            for scheme in ("http", "https")
            for key, value in (("Host", "127.0.0.1"), ("Port", PROXY_PORT))
        ]
    else:
        found = getproxies_environment()
        proxies = {
            f"{scheme}_proxy": bare
            for scheme in ("http", "https")
            if (value := found.get(scheme))
            and (bare := bare_url(value if "://" in value else f"http://{value}"))
        }
        if "no" in found:
            proxies["no_proxy"] = found["no"]
    return {
        **isolated_environment(home),
        **python_path(),
        **_FETCH_VARIABLES,
        **registries.variables,
        **proxies,
        "JAVA_TOOL_OPTIONS": " ".join(java),
    }


def java_home_option(home: Path) -> str:
    """Return the option for `JAVA_TOOL_OPTIONS` with the home folder, since Java ignores HOME.

    Java splits the variable at spaces, and understands quotes as a shell does, but no backslash.
    """
    return shlex.quote(f"-Duser.home={home}")


def isolated_environment(home: Path) -> dict[str, str]:
    """Return the environment variables of every isolated fetch and build: harmless ones, and the home folder.

    Args:
        home: the home folder, as the program sees it; see `find_build_home`.
    """
    own = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    if rustup := rustup_folders():
        own["RUSTUP_HOME"] = str(rustup[0])
    return own | {"HOME": str(home), "TMPDIR": str(home)}


def rustup_folders() -> tuple[Path, ...]:
    """Return the folder of rustup's toolchains; empty without rustup."""
    home = find_home()
    place = os.environ.get("RUSTUP_HOME") or (home and home / ".rustup")
    return (Path(place),) if place and Path(place, "toolchains").is_dir() else ()


def list_caches(command: Sequence[str] | None, fetches: Sequence[Fetch]) -> list[str]:
    """Return the caches of the build command and of the package managers; none with a `build.fetch`."""
    managers = [fetch.manager for fetch in fetches]
    if None in managers:
        return []
    programs = [name for name, manager in MANAGERS.items() if manager in managers]
    if command is not None:
        programs.append(Path(command[0]).name)
    return [cache for name in dict.fromkeys(programs) for cache in _CACHES.get(name, ())]


def copy_cache(cache: Path, target: Path) -> None:
    """Copy a cache folder, if it exists.

    Leave out what cannot be copied, such as a file that the referee may not read, or that the user's package manager
    removes during the copy. This does no harm, because package managers fetch what their cache does not have. Raises
    `Shortage` if the disk is full or the machine lacks another resource.
    """
    left_out = require_home() / _GO_REPOSITORIES
    with suppress(UserError), copy_errors(target):
        if cache.is_dir():
            shutil.copytree(
                cache,
                target,
                symlinks=True,
                ignore=lambda here, _: [left_out.name] if here == str(left_out.parent) else [],
                copy_function=_copy_cached_file,
            )


def _copy_cached_file(source: str, target: str) -> None:
    """Copy a file of a cache, or leave it out; see `copy_cache`.

    A `Shortage` ends the whole copy at once. The OSError behind it would not: `copytree` goes on after an OSError.
    """
    try:
        with copy_errors(Path(target)):
            shutil.copy2(source, target)
    except UserError:
        Path(target).unlink(missing_ok=True)  # the copy may be incomplete
