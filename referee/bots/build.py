"""The home folder of a build that must not see its user's: empty but for copies of package caches.

Copies, since a build that could write into the caches themselves could leave a surprise for the next one.

Runs the build of a bot: with a limit, its output kept, and nothing of it left running.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from referee.errors import Forfeit, VoidGame
from referee.sandbox.folders import remove
from referee.sandbox.launcher import Launcher, RunningProgram, list_left_running, signal_name
from referee.sandbox.limits import NO_ACCESS, Access, Limits
from referee.sandbox.missing_programs import find_missing_program, how_to_install
from referee.sandbox.output import DEFAULT_KEPT_BYTES, Output
from referee.sandbox.process_tree import TOKEN

_NO_NETWORK = re.compile(
    r"could not resolve|couldn't resolve|name resolution|ENOTFOUND|EAI_AGAIN|ENETUNREACH|dial tcp"
    r"|network is unreachable|no such host|unknown host|could not transfer artifact"
    r"|failed to (?:get|download|fetch)|download of config.json failed",
    re.IGNORECASE,
)
"""What the tools of several languages say when they cannot reach their registry."""


def missed_network(output: str) -> bool:
    """Whether what a build has printed sounds as if it had wanted to download something."""
    return _NO_NETWORK.search(output) is not None


_CACHES: Mapping[str, tuple[str, ...]] = {
    "cargo": (".cargo/registry", ".cargo/git"),
    "go": ("go/pkg/mod", ".cache/go-build"),
    "gradle": (".gradle/caches/modules-2",),
    "mvn": (".m2/repository",),
    "npm": (".npm/_cacache",),
}
"""What is copied for a build, by the program that it is."""
_KEPT = ("LANG", "LC_ALL", "PATH", "TERM", "TZ")
_KEPT_WITH_NETWORK = (
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *(
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
    ),
    *("GOPROXY", "GOSUMDB", "npm_config_registry", "PIP_INDEX_URL"),
)


@contextmanager
def build_home(command: Sequence[str], beside: Path) -> Iterator[Path]:
    """A home folder for a build, removed with all that it has left there.

    Args:
        command: the build's; whose caches are copied follows from its program.
        beside: the folder that is built, on whose disk it is.

    Raises VoidGame where there is no room.
    """
    try:
        home = Path(tempfile.mkdtemp(prefix="home-", dir=beside.parent))
    except OSError as error:
        raise VoidGame(f"no room for a build: {error}") from error
    try:
        for cache in _CACHES.get(Path(command[0]).name, ()):
            _copy(Path.home() / cache, home / cache)
        yield home
    except OSError as error:
        raise VoidGame(f"no room for a build: {error}") from error
    finally:
        remove(home)


def environment(home: Path, *, network: bool) -> dict[str, str]:
    """What a build is told: of the referee's environment only what is no secret.

    Its home is where the user's is, if it can be: tools take what they find in their caches only there.
    """
    names = (*_KEPT, *_KEPT_WITH_NETWORK) if network else _KEPT
    kept = {name: os.environ[name] for name in names if name in os.environ}
    own = {
        "HOME": str(home),
        "TMPDIR": str(home),
        "JAVA_TOOL_OPTIONS": f"-Duser.home={home}",  # it asks for the user, not for HOME
    }
    return kept | toolchains() | own


def toolchains() -> dict[str, str]:
    """Toolchains that are found by a variable and not by PATH: those of rustup."""
    rustup = Path(os.environ.get("RUSTUP_HOME", Path.home() / ".rustup"))
    return {"RUSTUP_HOME": str(rustup)} if (rustup / "toolchains").is_dir() else {}


def _copy(cache: Path, into: Path) -> None:
    """Copy a folder, where it is there; what vanishes meanwhile was no part of it."""
    if cache.is_dir():
        try:
            shutil.copytree(cache, into, symlinks=True)
        except shutil.Error as errors:
            if any(Path(source).exists() for source, _, _ in errors.args[0]):
                raise


LIMIT_S = 900.0
"""How long a build may take: the first one of a language downloads half of the world."""
LIMITS = Limits(
    memory_mib=4096,
    processes=4096,
    cpus=float(os.cpu_count() or 1),
    scratch_mib=1024,
    open_files=65_536,
)
"""Compilers take more than bots."""
_NETWORK_HINT = "; a build has no network unless that is allowed: --allow-network"
_SECRETS = {"REFEREE_DB", "PGPASSWORD"}
"""What a build is not told: passwords of the league's database."""
_LAST_WORDS_S = 0.5
"""How long after its end the outputs are read at most."""


@dataclass(frozen=True, slots=True)
class Built:
    """How a build went."""

    reason: str | None
    """Why it failed, in a sentence; None where it did not."""
    output: str
    """The end of what it printed, standard output and standard error together; printable."""
    elapsed_s: float

    @property
    def ok(self) -> bool:
        """Whether there is a bot now."""
        return self.reason is None


async def build(
    command: Sequence[str],
    folder: Path,
    *,
    launcher: Launcher,
    network: bool = False,
    limit_s: float = LIMIT_S,
) -> Built:
    """Run a build in a folder.

    Isolated it has a home folder of its own, with copies of the caches of its tool, and no network unless
    that is allowed; else the environment of the referee itself.

    Raises VoidGame when the machine has no room for a process or its isolation cannot be set up.
    """
    folder = folder.absolute()  # noqa: ASYNC240 - it asks for the working directory alone
    if launcher.is_unprotected:
        return await _run(
            launcher, command, folder, environment=_own_environment(), limit_s=limit_s
        )
    with build_home(command, folder) as home:
        access = Access(
            home=home,
            writable=(folder,),
            shown=tuple(map(Path, toolchains().values())),
            network=network,
        )
        known_as = Path.home() if launcher.is_sandboxed else home
        home_environment = environment(known_as, network=network)
        built = await _run(
            launcher, command, folder, environment=home_environment, access=access, limit_s=limit_s
        )
    no_network = launcher.is_sandboxed and not network
    if built.reason is not None and no_network and missed_network(built.output):
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
    began = time.monotonic()
    output = Output()
    try:
        launched = await launcher.launch(
            command,
            folder=folder,
            environment={**environment, TOKEN: secrets.token_hex(16)},
            limits=LIMITS,
            access=access,
        )
    except Forfeit as fault:
        return Built(fault.evidence.detail, "", time.monotonic() - began)
    reason = await _watch(launched, output, limit_s)
    text = output.tail(DEFAULT_KEPT_BYTES)
    if reason is not None and (missing := find_missing_program(text)) is not None:
        reason = f"{reason}: {how_to_install(missing)}"
    return Built(reason, text, time.monotonic() - began)


def _own_environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in _SECRETS}


async def _watch(launched: RunningProgram, output: Output, limit_s: float) -> str | None:
    """Wait for the end of a build and end all that it has left; what was wrong with it."""
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
        await asyncio.wait(drains, timeout=_LAST_WORDS_S)
        for drain in drains:
            drain.cancel()
