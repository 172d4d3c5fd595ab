"""Runs the build of a bot: with a limit, its output kept, and nothing of it left running."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from referee.bots import build_home
from referee.bots.access import NO_ACCESS, Access
from referee.bots.families import TOKEN
from referee.bots.launcher import Launched, Launcher, left_behind, signal_name
from referee.bots.limits import Limits
from referee.bots.output import KEPT, Output
from referee.bots.toolchains import how_to_install, missed_network, missing_in
from referee.errors import Forfeit

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
    if launcher.trusting:
        return await _run(
            launcher, command, folder, environment=_own_environment(), limit_s=limit_s
        )
    with build_home.build_home(command, folder) as home:
        access = Access(
            home=home,
            writable=(folder,),
            shown=tuple(map(Path, build_home.toolchains().values())),
            network=network,
        )
        known_as = Path.home() if launcher.sandboxed else home
        environment = build_home.environment(known_as, network=network)
        built = await _run(
            launcher, command, folder, environment=environment, access=access, limit_s=limit_s
        )
    no_network = launcher.sandboxed and not network
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
    text = output.tail(KEPT)
    if reason is not None and (missing := missing_in(text)) is not None:
        reason = f"{reason}: {how_to_install(missing)}"
    return Built(reason, text, time.monotonic() - began)


def _own_environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in _SECRETS}


async def _watch(launched: Launched, output: Output, limit_s: float) -> str | None:
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
        if left := await left_behind(launched):
            return f"has left {', '.join(left)} running: a build must end all that it starts"
        return None
    finally:
        await launched.kill()
        await asyncio.wait(drains, timeout=_LAST_WORDS_S)
        for drain in drains:
            drain.cancel()
