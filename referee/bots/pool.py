"""The bot processes of one worker: one for each bot and lane, started when needed and kept.

A process that can no longer be used is replaced when its bot is wanted next; when there are too many,
the idle one that was used least recently is closed.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from referee.bots.launcher import Launcher
from referee.bots.manifest import BotSpec
from referee.bots.process import BotProcess
from referee.clocks import Clocks

Key = tuple[int, str]
"""Lane and bot name."""


class BotPool:
    """All bot processes of a worker.

    Args:
        launcher: how they are started.
        clocks: for the start-up limit.
        max_processes: how many are kept alive; those in a game are never closed.
        folder: where their folders go.
    """

    def __init__(
        self, launcher: Launcher, clocks: Clocks, *, max_processes: int, folder: Path
    ) -> None:
        self._launcher = launcher
        self._clocks = clocks
        self._max_processes = max_processes
        self._folder = folder
        self._processes: dict[Key, BotProcess] = {}
        """The least recently used first."""
        self._starting: dict[Key, asyncio.Lock] = {}

    async def seat(self, lane: int, spec: BotSpec) -> BotProcess:
        """The process of a bot in a lane; a new one if there is none that can be used.

        May be called for several bots at once, which then start at the same time. Raises `Forfeit`
        when the bot does not start and `VoidGame` when the machine has no room.
        """
        key = lane, spec.bot.name
        async with self._starting.setdefault(key, asyncio.Lock()):
            process = self._processes.pop(key, None)
            if process is not None and not process.usable and not process.games:
                await process.stop(gently=False)
                process = None
            if process is None:
                await self._make_room()
                process = await BotProcess.start(
                    spec,
                    launcher=self._launcher,
                    folder=self._folder,
                    limit_us=self._clocks.start_up_us,
                    is_foreign=lambda token: self._owns(token, key),
                )
            self._processes[key] = process
            return process

    async def discard(self, lane: int) -> None:
        """End all processes of a lane, since they have seen a deal that is played again."""
        keys = [key for key in self._processes if key[0] == lane]
        await self._stop(keys, gently=False)

    async def close(self) -> None:
        """End all processes."""
        await self._stop(list(self._processes), gently=True)

    async def _make_room(self) -> None:
        idle = [key for key, process in self._processes.items() if not process.games]
        excess = len(self._processes) + 1 - self._max_processes
        await self._stop(idle[: max(0, excess)], gently=True)

    async def _stop(self, keys: list[Key], *, gently: bool) -> None:
        processes = [self._processes.pop(key) for key in keys]
        await asyncio.gather(*(process.stop(gently=gently) for process in processes))

    def _owns(self, token: str, key: Key) -> bool:
        """Whether a token belongs to another bot than that of the key."""
        return any(
            process.token == token for other, process in self._processes.items() if other != key
        )
