"""Runs the build of a bot: with a limit, its output kept, and nothing of it left running."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from referee.bots.families import TOKEN
from referee.bots.launcher import Launched, Launcher, left_behind, signal_name
from referee.bots.output import KEPT, Output
from referee.bots.toolchains import how_to_install, missing_in
from referee.errors import Forfeit

LIMIT_S = 900.0
"""How long a build may take: the first one of a language downloads half of the world."""
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
    command: Sequence[str], folder: Path, *, launcher: Launcher, limit_s: float = LIMIT_S
) -> Built:
    """Run a build in a folder, with the environment of the referee itself: tools find their caches.

    Raises VoidGame when the machine has no room for a process.
    """
    began = time.monotonic()
    output = Output()
    try:
        launched = await launcher.launch(command, folder=folder, environment=_environment())
    except Forfeit as fault:
        return Built(fault.evidence.detail, "", time.monotonic() - began)
    reason = await _watch(launched, output, limit_s)
    text = output.tail(KEPT)
    if reason is not None and (missing := missing_in(text)) is not None:
        reason = f"{reason}: {how_to_install(missing)}"
    return Built(reason, text, time.monotonic() - began)


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in _SECRETS}
    return kept | {TOKEN: secrets.token_hex(16)}


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
