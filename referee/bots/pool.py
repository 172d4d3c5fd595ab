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
from referee.errors import Forfeit, VoidGame

Key = tuple[int, str]
"""Lane and bot, as `name@version`."""


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
        self._starting = 0
        self._locks: dict[Key, asyncio.Lock] = {}
        """Held while a process is looked for, started or discarded."""
        self._tokens: set[str] = set()

    async def seat(self, lane: int, spec: BotSpec) -> BotProcess:
        """The process of a bot in a lane; a new one if there is none that can be used.

        It is kept for one more game, until `BotPlayer.leave`, or until `BotPlayer.join` fails. May be
        called for several bots at once, which then start at the same time. Raises `Forfeit` when the
        bot does not start and `VoidGame` when the machine has no room.
        """
        key = lane, str(spec.bot)
        async with self._lock(key):
            process = self._processes.get(key)
            if process is not None and (process.dead or not (process.usable or process.games)):
                await self._stop([key], gently=False)
                process = None
            if process is None:
                process = await self._start(spec)
            self._processes.pop(key, None)
            self._processes[key] = process  # now the most recently used
            process.games += 1
            return process

    async def capacity(self, lane: int, spec: BotSpec) -> int:
        """How many games a bot's process in a lane can hold; 1 where none can be started."""
        try:
            process = await self.seat(lane, spec)
        except (Forfeit, VoidGame):
            return 1
        process.games -= 1
        return process.max_games

    async def discard(self, lane: int) -> None:
        """End all processes of a lane, since they have seen a deal that is played again.

        Whoever plays with them gets a `VoidGame`.
        """
        await asyncio.gather(*(self._discard(key) for key in self._locks if key[0] == lane))

    async def close_idle(self) -> None:
        """End the processes that are in no game: others may need the room that they take."""
        idle = [key for key, process in self._processes.items() if not process.games]
        await self._stop(idle, gently=True)

    async def close(self) -> None:
        """End all processes."""
        await self._stop(list(self._processes), gently=True)

    async def _start(self, spec: BotSpec) -> BotProcess:
        self._starting += 1
        try:
            await self._make_room()
            return await BotProcess.start(
                spec,
                launcher=self._launcher,
                folder=self._folder,
                limit_us=self._clocks.start_up_us,
                tokens=self._tokens,
            )
        finally:
            self._starting -= 1

    async def _make_room(self) -> None:
        idle = [key for key, process in self._processes.items() if not process.games]
        excess = len(self._processes) + self._starting - self._max_processes
        await self._stop(idle[: max(0, excess)], gently=True)

    async def _discard(self, key: Key) -> None:
        async with self._lock(key):
            await self._stop([key] if key in self._processes else [], gently=False)

    async def _stop(self, keys: list[Key], *, gently: bool) -> None:
        processes = [self._processes.pop(key) for key in keys]
        await asyncio.gather(*(process.stop(gently=gently) for process in processes))

    def _lock(self, key: Key) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())
