"""Build a bot: run its build command with limits, keep the output, and leave no process running.

A build that is isolated from the user's files gets a new home folder, which is removed after the build. Before the
build, the user's caches of the package manager are copied into the new folder, so that the package manager can
work without a network. The build gets only copies, because a build that can write to the user's caches could
tamper with later builds.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from referee.errors import Forfeit, VoidGame
from referee.sandbox import NO_ACCESS, Access, Limits
from referee.sandbox.folders import remove_folder
from referee.sandbox.launcher import (
    DEFAULT_KEPT_BYTES,
    Launcher,
    Output,
    RunningProgram,
    list_left_running,
    signal_name,
)
from referee.sandbox.start import how_to_install

LIMIT_S = 900.0
"""How many seconds a build may take. The first build of a language may download many packages."""
LIMITS = Limits(
    memory_mib=4096,
    processes=4096,
    cpus=float(os.cpu_count() or 1),
    scratch_mib=1024,
    open_files=65_536,
)
"""The limits of a build. They are higher than those of a bot, because compilers need more."""
_OUTPUT_LIMIT_S = 0.5
"""How many seconds the referee may wait for the rest of the output after the build has ended."""
_SECRETS = {"REFEREE_DB", "PGPASSWORD"}
"""Environment variables that no build gets, because they may contain passwords of the league's database."""
_VARIABLES = ("LANG", "LC_ALL", "PATH", "TERM", "TZ")
"""The environment variables that are copied from the referee to every isolated build."""
_NETWORK_VARIABLES = (
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
    *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("GOPROXY", "GOSUMDB", "npm_config_registry", "PIP_INDEX_URL"),
)
"""The environment variables that are also copied if an isolated build may use the network."""
_CACHES: Mapping[str, tuple[str, ...]] = {
    "cargo": (".cargo/registry", ".cargo/git"),
    "go": ("go/pkg/mod", ".cache/go-build"),
    "gradle": (".gradle/caches/modules-2",),
    "mvn": (".m2/repository",),
    "npm": (".npm/_cacache",),
}
"""Maps the program of a build command to the cache folders to copy, relative to the user's home folder."""
_NO_NETWORK = re.compile(
    r"could not resolve|couldn't resolve|name resolution|ENOTFOUND|EAI_AGAIN|ENETUNREACH|dial tcp"
    r"|network is unreachable|no such host|unknown host|could not transfer artifact"
    r"|failed to (?:get|download|fetch)|download of config.json failed",
    re.IGNORECASE,
)
"""Matches the error messages of package managers that cannot reach the network."""
_NETWORK_HINT = "; builds have no network access unless you allow it with --allow-network"
_NOT_FOUND = re.compile(
    r"\b(?:sh|bash|dash|env): (?:\d+: |line \d+: )?'?([\w.+-]+)'?: (?:(?:command )?not found|No such file)"
)
"""Matches the message of a shell or of `env` that a program cannot be found."""


@dataclass(frozen=True, slots=True)
class Built:
    """The result of a build."""

    reason: str | None
    """Why the build failed, in one sentence; None if it succeeded."""
    output: str
    """The end of standard output and standard error, mixed, with control characters escaped."""
    elapsed_s: float
    """How many seconds the build took."""

    @property
    def ok(self) -> bool:
        """Whether the build succeeded."""
        return self.reason is None


async def build(
    command: Sequence[str],
    folder: Path,
    *,
    launcher: Launcher,
    network: bool = False,
    limit_s: float = LIMIT_S,
) -> Built:
    """Run a build command in a bot's folder and return the result, also if the build fails.

    An isolated build gets a new home folder and few environment variables. A build that is not isolated gets all
    environment variables of the referee except `_SECRETS`.

    Args:
        command: the program and its arguments.
        folder: the bot's folder.
        launcher: starts the program.
        network: True if an isolated build may use the network.
        limit_s: how many seconds the build may take.

    Raises `VoidGame` if the disk is full, or if the machine cannot start or isolate the build.
    """
    folder = folder.absolute()  # noqa: ASYNC240 - reads only the working directory
    if launcher.is_unprotected:
        own = {key: value for key, value in os.environ.items() if key not in _SECRETS}
        return await _run(launcher, command, folder, environment=own, limit_s=limit_s)
    with _build_home(command, folder) as home:
        access = Access(
            home=home,
            writable=(folder,),
            readable=tuple(map(Path, _rustup_variables().values())),
            network=network,
        )
        # a sandbox shows the new home folder at the path of the user's home folder
        visible_home = Path.home() if launcher.is_sandboxed else home
        environment = _isolated_environment(visible_home, network=network)
        built = await _run(
            launcher, command, folder, environment=environment, access=access, limit_s=limit_s
        )
    lacked_network = launcher.is_sandboxed and not network and _NO_NETWORK.search(built.output)
    if built.reason is not None and lacked_network:
        return replace(built, reason=built.reason + _NETWORK_HINT)
    return built


async def _run(
    launcher: Launcher,
    command: Sequence[str],
    folder: Path,
    *,
    environment: Mapping[str, str],
    access: Access = NO_ACCESS,
    limit_s: float,
) -> Built:
    began_s = time.monotonic()
    output = Output()
    try:
        launched = await launcher.launch(
            command,
            folder=folder,
            environment=environment,
            limits=LIMITS,
            access=access,
        )
    except Forfeit as fault:
        return Built(fault.evidence.detail, "", time.monotonic() - began_s)
    reason = await _wait(launched, output, limit_s)
    text = output.tail(DEFAULT_KEPT_BYTES)
    if reason is not None and (missing := find_missing_program(text)) is not None:
        reason = f"{reason}: {how_to_install(missing)}"
    return Built(reason, text, time.monotonic() - began_s)


def find_missing_program(output: str) -> str | None:
    """Return the program that a shell last reported as missing in `output`; None if no message reports one."""
    found = _NOT_FOUND.findall(output)
    return found[-1] if found else None


async def _wait(launched: RunningProgram, output: Output, limit_s: float) -> str | None:
    """Wait for the end of a build, kill all its processes that still run, and return `Built.reason`."""
    pipes = [
        pipe for pipe in (launched.process.stdout, launched.process.stderr) if pipe is not None
    ]
    drains = [asyncio.ensure_future(output.drain(pipe)) for pipe in pipes]
    try:
        try:
            code = await asyncio.wait_for(launched.process.wait(), limit_s)
        except TimeoutError:
            return f"not finished after {limit_s:g} s"
        if code < 0:
            return f"ended by {signal_name(-code)}"
        if code > 0:
            return f"exited with {code}"
        if left := await list_left_running(launched):
            return f"has left {', '.join(left)} running: a build must end all that it starts"
        return None
    finally:
        await launched.kill()
        await asyncio.wait(drains, timeout=_OUTPUT_LIMIT_S)
        for drain in drains:
            drain.cancel()


@contextmanager
def _build_home(command: Sequence[str], folder: Path) -> Iterator[Path]:
    """Create a home folder for a build, copy caches into it, and remove it after the build.

    The home folder is next to the bot's folder, so that both are on the same disk. Raises `VoidGame` if a folder
    cannot be written, for example because the disk is full.
    """
    try:
        home = Path(tempfile.mkdtemp(prefix="home-", dir=folder.parent))
    except OSError as error:
        raise VoidGame(f"no room for a build: {error}") from error
    try:
        for cache in _CACHES.get(Path(command[0]).name, ()):
            _copy_cache(Path.home() / cache, home / cache)
        yield home
    except OSError as error:
        raise VoidGame(f"no room for a build: {error}") from error
    finally:
        remove_folder(home)


def _copy_cache(cache: Path, target: Path) -> None:
    """Copy a cache folder, if it exists.

    A file that the user's package manager removes during the copy is left out.
    """
    if cache.is_dir():
        try:
            shutil.copytree(cache, target, symlinks=True)
        except shutil.Error as errors:
            if any(Path(source).exists() for source, _, _ in errors.args[0]):
                raise


def _isolated_environment(home: Path, *, network: bool) -> dict[str, str]:
    """Return the environment variables of an isolated build: harmless ones of the referee, and the home folder.

    Args:
        home: the path at which the build sees its home folder. A sandbox uses the path of the user's home folder,
            because some tools accept a copied cache only at the path of the original.
        network: True if the build may use the network.
    """
    names = (*_VARIABLES, *_NETWORK_VARIABLES) if network else _VARIABLES
    inherited = {name: os.environ[name] for name in names if name in os.environ}
    own = {
        "HOME": str(home),
        "TMPDIR": str(home),
        "JAVA_TOOL_OPTIONS": f"-Duser.home={home}",  # Java ignores HOME
    }
    return inherited | _rustup_variables() | own


def _rustup_variables() -> dict[str, str]:
    """Return the environment variable that names the folder of rustup's toolchains; empty without rustup."""
    rustup = Path(os.environ.get("RUSTUP_HOME", Path.home() / ".rustup"))
    return {"RUSTUP_HOME": str(rustup)} if (rustup / "toolchains").is_dir() else {}
