"""The bot processes of one worker: one for each bot and lane, started when needed and kept.

A process that can no longer be used is replaced when its bot is wanted next; when there are too many,
the idle one that was used least recently is closed.

A seat of a game with a bot process behind it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from referee.bots.manifest import BotSpec
from referee.bots.process import BotProcess
from referee.clocks import Clocks
from referee.errors import BotFault, Cause, Evidence, Forfeit, Strike, VoidGame
from referee.protocol import decode
from referee.protocol.encode import RequestEncoder
from referee.records import Reply, Request
from referee.sandbox.launcher import Launcher, Usage

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


@dataclass(frozen=True, slots=True)
class GameOpening:
    """What a bot is told at the start of a game."""

    game_id: str
    """As the bots know it."""
    start: bytes
    """The game start for this seat."""
    encoder: RequestEncoder
    """Shared by all seats of the game."""


class BotPlayer:
    """Plays one seat of one game through a bot's stream."""

    def __init__(self, process: BotProcess, opening: GameOpening) -> None:
        self._process = process
        self._game_id = opening.game_id
        self._encoder = opening.encoder
        self._cpu_before_s = process.usage().cpu_s
        self._dropped_before = process.session.dropped

    @classmethod
    async def join(cls, process: BotProcess, opening: GameOpening, limit_us: int) -> BotPlayer:
        """Start a game with a bot that `BotPool.seat` gave for it.

        Raises `Forfeit` when it does not get ready in time.
        """
        player = cls(process, opening)
        try:
            await process.session.start_game(opening.game_id, opening.start, limit_us)
        except BotFault as fault:
            process.games -= 1
            if process.session.silent and not process.games:
                process.end_soon()
            raise process.testify(fault) from None
        return player

    async def decide(self, request: Request) -> Reply:
        """See `Player.decide`."""
        try:
            written, elapsed_us, lag_us = await self._process.session.ask(
                self._game_id,
                request.number,
                self._encoder.encode(request),
                request.budget.limit_us,
            )
        except BotFault as fault:
            if fault.cause is Cause.TIMEOUT and request.budget.ends_the_bank:
                fault = Forfeit(Cause.OUT_OF_TIME, fault.evidence)
            raise self._process.testify(fault) from None
        try:
            action = decode.action(written, request)
        except ValueError as error:
            evidence = Evidence(detail=str(error), elapsed_us=elapsed_us)
            raise self._process.testify(Strike(Cause.MALFORMED, evidence)) from error
        return Reply(action, elapsed_us, lag_us)

    async def leave(self, end: bytes) -> None:
        """Tell the bot that the game is over."""
        self._process.games -= 1
        self._process.played = True
        if not self._process.dead:
            self._process.session.end_game(self._game_id, end)

    def forfeited(self) -> None:
        """The seat is lost: a bot that owes an answer and plays no other game is ended.

        It would burn the core of the others.
        """
        if self._process.session.silent and self._process.games == 1:
            self._process.end_soon()

    def usage(self) -> Usage:
        """What the process has taken since it joined the game, for other games as well."""
        usage = self._process.usage()
        return Usage(round(usage.cpu_s - self._cpu_before_s, 6), usage.peak_memory_kib)

    @property
    def dropped(self) -> int:
        """How many messages of the bot nobody had asked for since it joined the game."""
        return self._process.session.dropped - self._dropped_before

    def stderr_tail(self) -> str:
        """The end of what the process wrote to standard error, printable."""
        return self._process.stderr_tail()
