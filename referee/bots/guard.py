"""Holds a bot to its limits while it runs: looks from time to time at what it takes."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

from referee.bots.folder import BotFolder
from referee.bots.launcher import Launched
from referee.bots.limits import Limits
from referee.errors import Cause, Evidence, Forfeit

LOOK_S = 0.5
"""How often a bot in a game is looked at."""
_IDLE_LOOKS = 10
"""One that is in none, only at each look of so many."""


async def breach(
    launched: Launched, folder: BotFolder, limits: Limits, *, playing: Callable[[], bool]
) -> Forfeit:
    """Wait until a bot breaks a limit, for ever if it never does; returns what to charge it with.

    Args:
        launched: the bot's program.
        folder: its own.
        limits: its own.
        playing: whether it is in a game.
    """
    enough_kib = limits.scratch_mib * 1024 + 1
    for look in itertools.count():
        await asyncio.sleep(LOOK_S)
        if look % _IDLE_LOOKS and not playing():
            continue
        if (fault := launched.breach()) is not None:
            return fault
        if await asyncio.to_thread(folder.scratch_kib, enough_kib) >= enough_kib:
            break
    what = f"has more than {limits.scratch_mib} MiB, its limit, in its scratch folder"
    return Forfeit(Cause.SCRATCH_FULL, Evidence(detail=what))
