"""Let bot processes play games. `BotPool` keeps the processes of a worker, `BotPlayer` plays one seat.

A pool keeps one process for each bot and lane. It starts the process before the first game of the bot in the
lane. Before each later game it starts a new process if the old one cannot play any more. If the pool has
too many processes, it stops processes that play no game, beginning with the least recently used one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from referee.bots import BotSpec
from referee.bots.flood import FloodWatch, GrpcThreads
from referee.bots.logs import LogSettings
from referee.bots.outbox import Cores
from referee.bots.process import BotProcess
from referee.clocks import UNLIMITED_US, Clocks
from referee.errors import BotFault, Cause, Evidence, Forfeit, Strike, VoidGame
from referee.protocol import messages
from referee.protocol.messages import RequestEncoder
from referee.records import Reply, Request, Usage
from referee.sandbox.launcher import Launcher

OUTPUT_DELAY_S = 0.02
"""How many seconds to wait after a reply for the output that the bot printed before the reply."""
Key = tuple[int, str]
"""The number of the lane, and the bot as `name@version`."""


class BotPool:
    """The bot processes of a worker.

    Args:
        launcher: starts the programs.
        clocks: the time limits; the pool uses only the start-up limit.
        max_processes: how many processes the pool keeps; it may keep more if all of them play games.
        folder: the folder in which each bot process gets a folder of its own.
        pondering: whether bots may ponder: compute as they like between the requests of a game.
        cores: how many bots may think at the same time; see `Cores`.
        logs: where to write what the bots print; None for nowhere.
        launchers: the launchers of some bots (`name@version`), instead of `launcher`.
    """

    def __init__(
        self,
        launcher: Launcher,
        clocks: Clocks,
        *,
        max_processes: int,
        folder: Path,
        pondering: bool = False,
        cores: int = 1,
        logs: LogSettings | None = None,
        launchers: Mapping[str, Launcher] = MappingProxyType({}),
    ) -> None:
        self._launcher = launcher
        self._launchers = launchers
        self._clocks = clocks
        self._max_processes = max_processes
        self._folder = folder
        self._pondering = pondering
        self._cores = Cores(cores)
        self._logs = logs
        self._processes: dict[Key, BotProcess] = {}
        """The processes, the least recently used first."""
        self._starting = 0
        """How many processes are being started now."""
        self._locks: dict[Key, asyncio.Lock] = {}
        """The lock of a key is held while the process of this key is looked up, started or discarded."""
        self._running: dict[str, BotProcess] = {}
        """All running processes by their tokens, also those that are being started or stopped."""
        self._start_lock = asyncio.Lock()
        """Held by `FloodWatch` during a search. Meanwhile no process is started."""
        self._flood_watch: asyncio.Task[None] | None = None

    async def acquire(self, lane: int, spec: BotSpec) -> BotProcess:
        """Return the process of a bot in a lane and reserve it for one game; start the process if needed.

        The reservation ends when `BotPlayer.leave` or `abandon` is called, or `BotPlayer.join` raises `Forfeit`. Concurrent
        calls for several bots start the processes of these bots at the same time.

        Raises `Forfeit` if the bot does not start, and `VoidGame` if the machine lacks resources.
        """
        key = lane, str(spec.bot)
        async with self._lock(key):
            process = self._processes.get(key)
            # an unresponsive process stays while it plays other games: its end would make them void
            if process is not None and (process.dead or not (process.usable or process.games)):
                await self._stop([key], gently=False)
                process = None
            if process is None:
                process = await self._start(spec)
            self._processes.pop(key, None)
            self._processes[key] = process  # now the most recently used
            process.change_games(1)
            return process

    async def find_capacity(self, lane: int, spec: BotSpec) -> int:
        """Return how many games a bot's process in a lane can play at once; 0 if the process cannot be started."""
        try:
            process = await self.acquire(lane, spec)
        except (Forfeit, VoidGame):
            return 0
        process.change_games(-1)
        return process.max_games

    def list_failed(self, lane: int) -> set[str]:
        """Return the bots (`name@version`) whose process in a lane has failed by a fault of the bot."""
        return {
            bot
            for (number, bot), process in self._processes.items()
            if number == lane and isinstance(process.session.failure, Forfeit)
        }

    async def discard(self, lane: int) -> None:
        """Kill all processes of a lane, because they have seen a deal that will be played again.

        A `VoidGame` is raised in all callers that await a reply of these processes.
        """
        await asyncio.gather(*(self._discard(key) for key in self._locks if key[0] == lane))

    async def close_idle(self, at_most: int | None = None) -> None:
        """Stop all processes that play no game, or the `at_most` least recently used of them, to free memory and process ids."""
        idle = [key for key, process in self._processes.items() if not process.games]
        await self._stop(idle[:at_most], gently=True)

    async def close(self) -> None:
        """Stop all processes."""
        watch, self._flood_watch = self._flood_watch, None
        if watch is not None:
            watch.cancel()
            await asyncio.wait((watch,))  # at its end, it resumes the bots that it has paused
        await self._stop(list(self._processes), gently=True)

    async def _start(self, spec: BotSpec) -> BotProcess:
        self._start_flood_watch()
        self._starting += 1
        try:
            await self._make_room()
            async with self._start_lock:
                pass  # no search runs now, and none can begin before `start` has added the process to `_running`
            return await BotProcess.start(
                spec,
                launcher=self._launchers.get(str(spec.bot), self._launcher),
                folder=self._folder,
                limit_us=self._clocks.start_up_us,
                bots=self._running,
                cores=self._cores,
                pondering=self._pondering,
                logs=self._logs,
            )
        finally:
            self._starting -= 1

    def _start_flood_watch(self) -> None:
        """Start a `FloodWatch` if none runs. If an error has ended the last one, asyncio logs the error."""
        if GrpcThreads.is_measurable() and (self._flood_watch is None or self._flood_watch.done()):
            watch = FloodWatch(self._running.values, GrpcThreads(), self._start_lock)
            self._flood_watch = asyncio.ensure_future(watch.run())

    async def _make_room(self) -> None:
        """Stop processes that play no game, until the processes that are being started fit into the pool."""
        excess = len(self._processes) + self._starting - self._max_processes
        await self.close_idle(max(0, excess))

    async def _discard(self, key: Key) -> None:
        async with self._lock(key):
            await self._stop([key] if key in self._processes else [], gently=False)

    async def _stop(self, keys: list[Key], *, gently: bool) -> None:
        processes = [self._processes.pop(key) for key in keys]
        await asyncio.gather(*(process.stop(gently=gently) for process in processes))

    def _lock(self, key: Key) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())


@dataclass(frozen=True, slots=True)
class SeatStart:
    """What a `BotPlayer` needs to start a game at its seat: the first message to the bot, and an encoder for the requests."""

    game_id: str
    """The opaque id that the bots see."""
    message: bytes
    """The serialised message that tells the bot that the game starts."""
    encoder: RequestEncoder
    """Turns requests into messages. All seats of the game share one encoder."""
    is_timed: bool = True
    """False if the bot may take any time for its decisions. The bot is still told the limits."""
    log_name: str = ""
    """The name of the game in the logs, such as its id in the league. If it is empty, the logs use the opaque id."""


class BotPlayer:
    """Play one seat of one game through a bot's stream; implements `Player`."""

    def __init__(self, process: BotProcess, start: SeatStart) -> None:
        self._process = process
        self._game_id = start.game_id
        self._encoder = start.encoder
        self._is_timed = start.is_timed
        self._cpu_before_s = process.usage_per_game().cpu_s
        self._dropped_before = process.session.dropped

    @classmethod
    async def join(cls, process: BotProcess, start: SeatStart, limit_us: int) -> BotPlayer:
        """Send the game start to a bot, wait until it is ready, and return the player of its seat.

        Args:
            process: the process of the bot, which `BotPool.acquire` has reserved for this game.
            start: the game start for the seat.
            limit_us: how many microseconds the bot has until it says that it is ready.

        Raises `Forfeit` if the bot fails or is not ready in time. Raises `VoidGame` if the referee ends the process, or if a
        failure of the bot is charged in another game of the process.
        """
        player = cls(process, start)
        if process.log is not None:
            process.log.begin(start.game_id, start.log_name or start.game_id)
        try:
            await process.session.start_game(start.game_id, start.message, limit_us)
        except BotFault as fault:
            player._end_reservation()
            if process.session.unresponsive and not process.games:
                process.end_soon()
            raise process.add_evidence(fault) from None
        return player

    async def decide(self, request: Request) -> Reply:
        """See `Player.decide`. If `SeatStart.is_timed` is False, the referee waits beyond the limit, and the time after it is a lag."""
        limit_us = request.time.limit_us
        try:
            reply = await self._process.session.request(
                self._game_id,
                request.number,
                self._encoder.encode(request),
                limit_us if self._is_timed else UNLIMITED_US,
            )
        except BotFault as fault:
            if fault.cause is Cause.TIMEOUT and request.time.ends_the_bank:
                fault = Forfeit(Cause.OUT_OF_TIME, fault.evidence)
            raise self._process.add_evidence(fault) from None
        try:
            action = messages.parse_action(reply.action, request)
        except ValueError as error:
            evidence = Evidence(
                detail=str(error),
                elapsed_us=reply.elapsed_us + reply.lag_us,
                wall_us=reply.wall_us,
                batch_size=reply.batch_size,
            )
            raise self._process.add_evidence(Strike(Cause.MALFORMED, evidence)) from error
        beyond_us = max(0, reply.elapsed_us - limit_us)
        return Reply(action, reply.elapsed_us - beyond_us, reply.lag_us + beyond_us, *reply[3:])

    async def leave(self, end: bytes) -> None:
        """Send `end`, the serialised end of the game, to the bot, and end the reservation of the bot's process."""
        self._end_reservation()
        self._process.has_played = True
        if not self._process.dead:
            self._process.session.end_game(self._game_id, end)

    def abandon(self) -> BotFault | None:
        """Leave a game that is void. The process may go on with its other games.

        The process is not reserved for this game any more. If it has failed, and this game is charged with the failure,
        return the failure.
        """
        self._end_reservation()
        failure = self._process.session.abandon_game(self._game_id)
        return None if failure is None else self._process.add_evidence(failure)

    def _end_reservation(self) -> None:
        if self._process.log is not None:
            self._process.log.end(self._game_id)
        self._process.change_games(-1)

    def on_forfeit(self) -> None:
        """End the bot's process if it is unresponsive and plays no other game.

        An unresponsive process may go on computing for ever on the core that the other bots need.
        """
        if self._process.session.unresponsive and self._process.games == 1:
            self._process.end_soon()

    def usage(self) -> Usage:
        """Return the CPU time of the process since it joined the game, and its peak memory since the process was started.

        If the process plays several games at the same time, each game gets an equal part of the CPU time.
        """
        usage = self._process.usage_per_game()
        return Usage(round(usage.cpu_s - self._cpu_before_s, 6), usage.peak_memory_kib)

    @property
    def dropped(self) -> int:
        """How many messages of the bot were dropped since it joined the game, also messages for its other games; see `Inbox.dropped`."""
        return self._process.session.dropped - self._dropped_before

    def stderr_tail(self) -> str:
        """Return the end of the process's standard error, with control characters escaped."""
        return self._process.stderr_tail()
