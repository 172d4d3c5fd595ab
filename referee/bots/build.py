"""Build a bot: fetch its packages, run its build command with limits, keep the output, and leave no process running.

In a sandbox, a build has no network. So the packages are fetched before the build, on each rung. Package managers fetch
the packages that the bot's files name. If the manifest has a `build.fetch`, this command fetches them instead. `fetch`
plans this. The table shows which folders these programs may write to in a sandbox, and which network they have:

    package manager   a folder with the files that name packages, the home folder   only registries, through a gateway
    `build.fetch`     the bot's folder, the same home folder                        only registries, through a gateway
    build             the bot's folder, the same home folder                        none

All fetches and the build share one new home folder, which is removed after the build. Before the fetches, the package
managers' caches are copied from the user's home folder into the new one. So package managers download only what is new,
and work without a network if the caches have everything. They get only copies, because a build that can write to the
user's caches could tamper with later builds. For a bot with a `build.fetch` command, no caches are copied. The caches
may hold packages that are not public, and the command, a program of the bot, could send them away.

On the rung `none`, fetches and build use the user's own home folder and environment, except `_SECRETS`. There too,
`python3` is the Python of the referee in each fetch, and in a build with Python packages.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from referee.bots import packages_path, python_path
from referee.bots.fetch import (
    PROXY_PORT,
    Fetch,
    PackageManager,
    copy_cache,
    copy_files,
    fetch_environment,
    isolated_environment,
    java_home_option,
    list_caches,
    plan_fetches,
    rustup_folders,
    take_result,
)
from referee.bots.registries import Registries, read_registries
from referee.errors import Forfeit, UserError, VoidGame, describe_shortage
from referee.sandbox import Access, Limits
from referee.sandbox.bubblewrap import find_build_home
from referee.sandbox.folders import ProgramFolder, remove_folder, require_home, run_folder
from referee.sandbox.gateway import Gateway
from referee.sandbox.launcher import (
    DEFAULT_KEPT_BYTES,
    Launcher,
    Output,
    RunningProgram,
    list_left_running,
    signal_name,
)
from referee.sandbox.missing import find_missing_library, find_missing_program, how_to_install
from referee.sandbox.monitor import MONITOR_PERIOD_S

LIMIT_S = 900.0
"""How many seconds a build may take, and each fetch before it."""
LIMITS = Limits(
    memory_mib=4096,
    processes=4096,
    cpus=float(os.cpu_count() or 1),
    scratch_mib=1024,
    open_files=65_536,
)
"""The limits of a build. They are higher than those of a bot, because compilers need more."""
_HEAD_BYTES = DEFAULT_KEPT_BYTES // 4
"""How many bytes from the beginning of the output are kept. The first error of a compiler often explains why a build failed."""
_OUTPUT_LIMIT_S = 0.5
"""How many seconds the referee may wait for the rest of the output after the build has ended."""
_SECRETS = {"REFEREE_DB", "PGPASSWORD"}
"""Environment variables that no build gets, because they may contain passwords of the league's database."""
_OFFLINE_VARIABLES: Mapping[str, str] = {
    "CARGO_NET_OFFLINE": "true",
    "GOPROXY": "off",
    "GOTOOLCHAIN": "local",
    "PIP_NO_INDEX": "1",
    "npm_config_offline": "true",
}
"""Environment variables that tell package managers in an isolated build to use only what has been fetched."""
_SOCKET_PATH_LIMIT = 100
"""The most bytes in the path of the gateway's socket; the limit of operating systems is 104 to 108 bytes."""
_NO_NETWORK = re.compile(
    r"could not resolve|couldn't resolve|name resolution|ENOTFOUND|EAI_AGAIN|ENETUNREACH|dial tcp"
    r"|network is unreachable|no such host|unknown host|could not transfer artifact"
    r"|failed to (?:get|download|fetch)|download of config.json failed|ENOTCACHED"
    r"|module lookup disabled by GOPROXY=off|you may need to run without offline"
    r"|no matching distribution found|Connection refused",
    re.IGNORECASE,
)
"""Matches the error messages of package managers that cannot reach the network, or have been told to be offline."""
_NETWORK_HINT = (
    "; a build has no network: name the packages in a file that a package manager reads, or set build.fetch"
    " (proto/README.md, section 3)"
)


@dataclass(frozen=True, slots=True)
class Built:
    """The result of a build and of the fetches before it."""

    reason: str | None
    """Why the bot cannot be used, in one sentence. None if the build succeeded, even after a failed fetch. Without a build
    command, None if all fetches succeeded."""
    output: str
    """The beginning and the end of standard output and standard error, mixed, with control characters escaped."""
    elapsed_s: float
    """How many seconds everything took."""
    is_fetch: bool = False
    """Whether a fetch failed, so that the build did not run."""

    @property
    def ok(self) -> bool:
        """Whether the bot can be used."""
        return self.reason is None


async def build(
    command: Sequence[str] | None,
    folder: Path,
    *,
    launcher: Launcher,
    fetch: Sequence[str] | None = None,
    limit_s: float = LIMIT_S,
) -> Built:
    """Fetch the packages of a bot, run its build command in its folder, and return the result, also after a failure.

    Isolated programs get a new home folder and few environment variables. Programs that are not isolated get all
    environment variables of the referee except `_SECRETS`.

    After a failed fetch nothing more runs, with two exceptions. Maven may have failed only for lack of the bot's sources.
    And if a fetch could not reach a registry, the copied caches or the build itself may have all packages. In both cases, the
    other fetches and the build still run, unless the files that name packages are refused or there is no build command.

    Args:
        command: the program and its arguments; None if the bot needs no build, but perhaps packages.
        folder: the bot's folder.
        launcher: starts the programs.
        fetch: the command that fetches the packages; empty to fetch nothing; None if the files of the bot decide.
        limit_s: how many seconds the build and each fetch may take.

    Raises `VoidGame` if the disk is full, or if the machine cannot start a program, cannot isolate it, or lacks the
    memory for it. Raises `UserError` if the path of the folder for temporary files is too long, if the user has no home
    folder, and if `packages_path` refuses the path of the bot's folder.
    """
    folder = folder.absolute()  # noqa: ASYNC240 - reads only the working directory
    began_s = time.monotonic()
    fetches = plan_fetches(folder, command, fetch)
    registries = read_registries(PROXY_PORT if launcher.is_sandboxed else None)
    with _build_home(list_caches(command, fetches), registries, folder, launcher) as home:
        run = _Run(launcher, folder, home, registries, limit_s)
        failed: _Failure | None = None
        for each in fetches:
            failed = await run.fetch(each) or failed
            if failed is not None and (failed.is_final or command is None):
                return Built(
                    failed.reason, run.output.text(), time.monotonic() - began_s, is_fetch=True
                )
        reason = None if command is None else await run.build(command)
        if reason is not None:
            if failed is not None:
                reason += f"; before that, {failed.reason}"
            elif launcher.is_sandboxed and _NO_NETWORK.search(run.output.text()):
                reason += _NETWORK_HINT
    return Built(reason, run.output.text(), time.monotonic() - began_s)


@dataclass(frozen=True, slots=True)
class _Failure:
    """A fetch that has failed."""

    reason: str
    is_final: bool
    """False if the build may succeed all the same."""


class _Run:
    """Runs the fetches and the build of one bot, one after the other.

    Args:
        launcher: starts the programs.
        folder: the bot's folder.
        home: the new home folder; None if programs use that of the user.
        registries: the registries that a fetch may reach, and the settings for them.
        limit_s: how many seconds each program may take.
    """

    def __init__(
        self,
        launcher: Launcher,
        folder: Path,
        home: Path | None,
        registries: Registries,
        limit_s: float,
    ) -> None:
        self.output = Output(DEFAULT_KEPT_BYTES - _HEAD_BYTES, _HEAD_BYTES)
        """The output of all programs."""
        self._launcher = launcher
        self._folder = folder
        self._home = home
        self._registries = registries
        self._limit_s = limit_s
        self._visible_home = home if home and not launcher.is_sandboxed else find_build_home()

    async def fetch(self, fetch: Fetch) -> _Failure | None:
        """Fetch packages. Return why that failed; None if it succeeded."""
        self.output.add(f"$ {' '.join(fetch.command)}\n".encode())
        manager = fetch.manager
        if manager is None:
            return await self._fetch_in(self._folder, fetch)
        with _needs_room():
            work = Path(tempfile.mkdtemp(prefix="fetch-", dir=self._folder.parent))
        try:
            failure = self._copy_files(manager, work) or await self._fetch_in(work, fetch)
            if failure is None:
                with _needs_room():
                    take_result(manager, work, self._folder)
        finally:
            remove_folder(work)
        return failure

    def _copy_files(self, manager: PackageManager, work: Path) -> _Failure | None:
        """Copy the files that a package manager reads. Return what is wrong with them; None if nothing is."""
        try:
            copy_files(manager, self._folder, work, self._registries.addresses)
        except UserError as error:
            return _Failure(str(error), is_final=True)
        except OSError as error:
            if describe_shortage(error) is not None:
                raise _no_room(error) from error
            reason = f"the bot's files cannot be copied for {manager.command[0]}: {error.strerror}"
            return _Failure(reason, is_final=True)
        return None

    async def _fetch_in(self, folder: Path, fetch: Fetch) -> _Failure | None:
        async with _open_gateway(self._launcher, self._registries) as (gateway, socket):
            # `os.path.exists` is also False for a path that cannot be looked up
            certificates = filter(os.path.exists, self._registries.certificates)
            access = Access(
                home=self._home,
                writable=(folder,),
                readable=(*certificates, *rustup_folders()),
                link=None if socket is None else socket.parent,
                relay=None if socket is None else (socket, PROXY_PORT),
            )
            before = self.output.total
            environment = (
                _own_environment() | python_path()
                if self._home is None
                else fetch_environment(
                    self._visible_home, self._registries, sandboxed=self._launcher.is_sandboxed
                )
            )
            reason = await self._start(fetch.command, folder, environment, access)
        if reason is None:
            return None
        label = "build.fetch" if fetch.manager is None else " ".join(fetch.command[:3])
        reason = f"{label}: {reason}"
        if gateway is None:
            printed = self.output.tail(self.output.total - before)
            lacks_network = _NO_NETWORK.search(printed) is not None
        else:
            lacks_network = bool(gateway.unreachable)
            if gateway.unreachable:
                reason += f"; cannot be reached: {', '.join(sorted(gateway.unreachable))}"
            if gateway.refused:
                reason += f"; refused, because a fetch reaches only package registries that this machine uses, and nothing on this machine itself: {', '.join(sorted(gateway.refused))}"
        if fetch.manager is not None and fetch.manager.rule and not lacks_network:
            reason += f"; {fetch.manager.rule}"
        is_decisive = fetch.manager is None or fetch.manager.is_decisive
        return _Failure(reason, is_final=is_decisive and not lacks_network)

    async def build(self, command: Sequence[str]) -> str | None:
        """Run the build command. Return why it failed; None if it succeeded."""
        if self.output.total:
            self.output.add(f"$ {' '.join(command)}\n".encode())
        access = Access(home=self._home, writable=(self._folder,), readable=rustup_folders())
        return await self._start(command, self._folder, self._build_environment(), access)

    async def _start(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        access: Access,
    ) -> str | None:
        """Run a program to its end. Return why it failed; None if it succeeded."""
        before = self.output.total
        try:
            launched = await self._launcher.launch(
                command, folder=folder, environment=environment, limits=LIMITS, access=access
            )
        except Forfeit as fault:
            return fault.evidence.detail
        reason = await _wait(launched, self.output, self._limit_s)
        if reason is None:
            return None
        printed = self.output.tail(self.output.total - before)
        if (missing := find_missing_program(printed)) is not None:
            return f"{reason}: {how_to_install(missing)}"
        if (library := find_missing_library(printed)) is not None:
            return f"{reason}: {library}"
        return reason

    def _build_environment(self) -> dict[str, str]:
        packages = packages_path(self._folder)
        python = packages | python_path() if packages else {}
        if self._home is None:
            return _own_environment() | python
        return {
            **isolated_environment(self._visible_home),
            **_OFFLINE_VARIABLES,
            **python,
            "JAVA_TOOL_OPTIONS": java_home_option(self._visible_home),
        }


@asynccontextmanager
async def _open_gateway(
    launcher: Launcher, registries: Registries
) -> AsyncIterator[tuple[Gateway, Path] | tuple[None, None]]:
    """Open the gateway of a fetch, and yield it with its socket. Without a sandbox there is none.

    Raises `UserError` if the path of the socket is too long.
    """
    if not launcher.is_sandboxed:
        yield None, None
        return
    async with AsyncExitStack() as stack:
        with _needs_room():
            socket = ProgramFolder(stack.enter_context(run_folder())).socket
        if len(os.fsencode(socket)) > _SOCKET_PATH_LIMIT:
            raise UserError(
                f"{tempfile.gettempdir()}: the path of this folder for temporary files is too long for a socket;"
                " set TMPDIR to a shorter one"
            )
        with _needs_room():
            gateway = await stack.enter_async_context(Gateway(socket, registries.addresses))
        yield gateway, socket


async def _wait(launched: RunningProgram, output: Output, limit_s: float) -> str | None:
    """Wait for the end of a fetch or build, and kill all its processes that still run. Return why it failed; None if it succeeded.

    Raises `VoidGame` if the program fails and the machine lacked memory for it, or lacks a thread to measure it.
    """
    pipes = [
        pipe for pipe in (launched.process.stdout, launched.process.stderr) if pipe is not None
    ]
    drains = [asyncio.ensure_future(output.drain(pipe)) for pipe in pipes]
    try:
        try:
            async with asyncio.timeout(limit_s):
                end = await _wait_for_end(launched)
        except TimeoutError:
            return f"not finished after {limit_s:g} s"
        if isinstance(end, Forfeit):
            return end.evidence.detail
        if end:
            ended = f"exited with {end}" if end > 0 else f"ended by {signal_name(-end)}"
            fault = await launched.breach()
            if isinstance(fault, VoidGame):
                raise fault
            return ended if fault is None else f"{ended}: {fault.evidence.detail}"
        if left := await list_left_running(launched):
            return f"has left {', '.join(left)} running: it must end every process that it starts"
        return None
    finally:
        await launched.kill()
        await asyncio.wait(drains, timeout=_OUTPUT_LIMIT_S)
        for drain in drains:
            drain.cancel()


async def _wait_for_end(launched: RunningProgram) -> int | Forfeit:
    """Wait until a program ends, and return its exit code. If it exceeds a limit before that, return the fault.

    The limits are checked here, because without a cgroup the kernel does not enforce them.
    """
    waiting = asyncio.ensure_future(launched.process.wait())
    try:
        while not (await asyncio.wait((waiting,), timeout=MONITOR_PERIOD_S))[0]:
            # ignore a `VoidGame` here, because a shortage matters only if the program fails; see `_wait`
            if isinstance(fault := await launched.breach(), Forfeit):
                return fault
        return waiting.result()
    finally:
        waiting.cancel()


@contextmanager
def _build_home(
    caches: Iterable[str], registries: Registries, folder: Path, launcher: Launcher
) -> Iterator[Path | None]:
    """Create a home folder for a build, copy caches and write settings into it, and remove it after the build.

    The home folder is next to the bot's folder, so that both are on the same disk. Without isolation there is none.
    Raises `VoidGame` if it cannot be written, for example because the disk is full.
    """
    if launcher.is_unprotected:
        yield None
        return
    with _needs_room():
        home = Path(tempfile.mkdtemp(prefix="home-", dir=folder.parent))
    try:
        with _needs_room():
            for cache in caches:
                copy_cache(require_home() / cache, home / cache)
            registries.write_files(home)
        yield home
    finally:
        remove_folder(home)


@contextmanager
def _needs_room() -> Iterator[None]:
    """Raise `VoidGame` if a folder of the referee cannot be written."""
    try:
        yield
    except OSError as error:
        raise _no_room(error) from error


def _no_room(error: OSError) -> VoidGame:
    return VoidGame(f"the referee cannot write the folders of a build: {error}")


def _own_environment() -> dict[str, str]:
    """Return the environment of programs without isolation: that of the referee, without passwords."""
    return {key: value for key, value in os.environ.items() if key not in _SECRETS}
