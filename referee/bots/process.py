"""Run one bot process from start-up to shutdown.

A `BotProcess` owns the program, its socket, its folder, its outputs and its `Session`. It charges the bot if
the program ends or exceeds a limit. `referee.sandbox` starts and measures the program.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from referee.bots import BotSpec, packages_path, python_path
from referee.bots.attach import AttachLauncher
from referee.bots.clock import Clock
from referee.bots.logs import LogSettings
from referee.bots.outbox import Cores
from referee.bots.server import GRPC_LIMIT, OWN, BotServer, ReachableServer, Sender, Stream
from referee.bots.session import Session
from referee.errors import BotFault, Cause, Evidence, Forfeit, VoidGame
from referee.pb import play_pb2
from referee.protocol import messages
from referee.sandbox import Access, TotalUsage
from referee.sandbox.folders import ProgramFolder
from referee.sandbox.launcher import (
    Launcher,
    Output,
    RunningProgram,
    charge_or_void,
    check_capacity,
    list_left_running,
    signal_name,
)
from referee.sandbox.monitor import wait_for_breach
from referee.sandbox.scheduling import Scheduling

GOODBYE_S = 2.0
"""How many seconds a bot may take to exit after the referee's goodbye."""
TERM_S = 1.0
"""How many seconds a bot may take to exit after SIGTERM. Then it is killed."""
STDERR_TAIL = 4096
"""How many bytes from the end of the standard error are kept with a fault."""
_RELAY_PORT = 50051
"""The port of the referee in the network namespace of a bot that connects by TCP."""
_STATUS_S = 0.5
"""How many seconds to wait for the exit after the end of the stream, or for the end of the stream after the exit."""
_OUTPUT_LIMIT_S = 0.5
"""How many seconds the referee may wait for the rest of the output after the process has ended."""


@dataclass(frozen=True, slots=True)
class Shutdown:
    """How a bot reacted when the referee asked it to exit."""

    exit_code: int | None
    """The exit code, or the negative number of the signal that ended the program; None if it did not end in time."""
    elapsed_s: float
    """Seconds until the program ended, or until the referee stopped waiting."""
    left_running: tuple[str, ...]
    """The names of the bot's processes that still ran after the program had ended; empty if the program did not end."""


# The states of a bot process:
#
#     starting --hello--> alive --shut_down()--> asked to exit ---------------+
#         |                 |                                                 |
#         |                 +-- exit, end of stream,                          |
#         |                 |   exceeded limit, end_soon() --> failed --------+
#         |                 |                                                 |
#         +- failed start --+-------------------------------------------------+--stop()--> stopping --> stopped
#
# `dead` is True in the states failed, stopping and stopped, and after the end of the stream. The caller
# of `start` must call `stop` in the end, because only `stop` frees the resources. If `start` fails, it calls `stop` itself.


class BotProcess:
    """A running bot that has said hello. Create one with `start`."""

    def __init__(
        self,
        spec: BotSpec,
        launcher: Launcher,
        folder: Path,
        bots: dict[str, BotProcess],
        *,
        cores: Cores,
        pondering: bool,
        logs: LogSettings | None,
    ) -> None:
        self.spec = spec
        self.log = None if logs is None else logs.open(spec)
        """Where the outputs and messages of the process are written; None for nowhere."""
        self._launcher = launcher
        self._held: Scheduling | None = None
        """The scheduling that `hold` or `run_alone` wants; None if neither is in force. It has no effect before the launch."""
        self._leaving: Scheduling | None = None
        """`NORMAL` after the bot was asked to exit; None before. `_held` overrides it."""
        self.max_games = 1
        """How many games the bot can play at once; the bot says this in its hello."""
        self.games = 0
        """For how many games this process is reserved, also those that the bot plays now. Change it by `change_games`."""
        self._counted_cpu_s = self._cpu_per_game_s = 0.0
        self.has_played = False
        """Whether a game of the process has ended. The bot may have forfeited it."""
        output_bytes = spec.limits.output_kib * 1024
        self.output, self.error_output = (
            Output(output_bytes, on_chunk=None if self.log is None else self.log.make_writer())
            for _ in range(2)
        )
        self._token = secrets.token_hex(16)
        self._bots = bots
        self._clock = Clock.from_loop()
        self.session = Session(
            self._token,
            bots.__contains__,
            self._clock,
            self._busy_ns,
            self._find_sender,
            cores=cores,
            pondering=pondering,
        )
        self._folder = ProgramFolder(folder)
        self._is_relayed = spec.transport == "tcp" and launcher.is_sandboxed
        self._server = BotServer(
            self._folder.socket, self._serve, "unix" if self._is_relayed else spec.transport
        )
        self._drains: list[asyncio.Task[None]] = []
        self._watcher: asyncio.Task[None] | None = None
        self._launched: RunningProgram | None = None
        self._is_launched = asyncio.Event()
        self._reachable: ReachableServer | None = None
        """Finds out who has opened a stream; None before the launch. Also None in a sandbox, and if a person starts the program.
        Then every stream counts as the bot's own."""
        self._stopping: asyncio.Task[None] | None = None
        # This must be the last step. Only `stop` removes the bot from `bots`, but nobody calls `stop` if `__init__` raises an error.
        bots[self._token] = self

    @classmethod
    async def start(
        cls,
        spec: BotSpec,
        *,
        launcher: Launcher,
        folder: Path,
        limit_us: int,
        bots: dict[str, BotProcess],
        cores: Cores | None = None,
        pondering: bool = False,
        logs: LogSettings | None = None,
    ) -> BotProcess:
        """Start a bot and wait for its hello.

        Args:
            spec: the bot.
            launcher: starts the program.
            folder: where the bot's own folder is created, with its socket and scratch space.
            limit_us: how many microseconds the bot has from now until its hello.
            bots: all running bots by their tokens. The new bot is added now and removed by `stop`.
            cores: gives the cores of the worker to its bots in turn; None if this bot shares them with no other.
            pondering: whether the bot may ponder: compute as it likes between the requests of a game.
            logs: where to write what the bot prints; None for nowhere.

        Raises `Forfeit` if the program cannot be started, fails before its hello, or sends no valid hello in time. Raises
        `VoidGame` if the machine lacks resources or does not start the program in time, or if the server or the
        isolation cannot be set up.
        """
        bot = cls(
            spec, launcher, folder, bots, cores=cores or Cores(), pondering=pondering, logs=logs
        )
        began_ns = bot._clock.now_ns()
        try:
            await bot._launch(limit_us)
            bot.max_games = max(1, (await bot._wait_for_hello(limit_us, began_ns)).max_games)
        except Forfeit as fault:
            await bot.stop(gently=False)
            elapsed_us = (bot._clock.now_ns() - began_ns) // 1000
            evidence = replace(bot.add_evidence(fault).evidence, elapsed_us=elapsed_us)
            raise charge_or_void(Forfeit(fault.cause, evidence)) from None
        except BaseException:
            await bot.stop(gently=False)
            raise
        return bot

    async def _launch(self, limit_us: int) -> None:
        check_capacity()
        await self._server.start()
        scratch = str(self._folder.scratch)
        try:
            async with asyncio.timeout(limit_us / 1e6):
                self._launched = launched = await self._launcher.launch(
                    self.spec.command,
                    folder=self.spec.folder,
                    environment={
                        **python_path(),
                        "HOME": scratch,
                        "TMPDIR": scratch,
                        "LANG": "C.UTF-8",
                        "REFEREE_ADDRESS": f"127.0.0.1:{_RELAY_PORT}"
                        if self._is_relayed
                        else self._server.address,
                        "REFEREE_TOKEN": self._token,
                        **packages_path(self.spec.folder),
                    },
                    limits=self.spec.limits,
                    access=Access(
                        scratch=self._folder.scratch,
                        link=self._folder.socket.parent,
                        relay=(self._folder.socket, _RELAY_PORT) if self._is_relayed else None,
                    ),
                )
        except TimeoutError:
            raise VoidGame(
                f"this machine did not start the program within {limit_us / 1e6:g} s"
            ) from None
        self.session.scheduler = launched.scheduler
        self._override_scheduling()
        if not self._launcher.is_sandboxed and not self._is_attached:
            self._reachable = ReachableServer(self._server.address, self.pid, self._charge)
        self._is_launched.set()
        process = launched.process
        assert process.stdout is not None  # noqa: S101 - a launcher makes both pipes
        assert process.stderr is not None  # noqa: S101
        for drain in (self.output.drain(process.stdout), self.error_output.drain(process.stderr)):
            self._drains.append(asyncio.ensure_future(drain))
        self._watcher = asyncio.ensure_future(self._watch(launched))
        self._watcher.add_done_callback(self._on_watcher_done)

    @property
    def _is_attached(self) -> bool:
        """Whether a person starts the program."""
        return isinstance(self._launcher, AttachLauncher)

    async def _serve(self, stream: Stream) -> None:
        """Serve a stream of the bot's server, and log its messages if the log settings ask for this."""
        await self.session.serve(stream if self.log is None else self.log.wrap(stream))
        if self._is_attached and self._launched is not None and self.session.closed.is_set():
            # the process is not known, so the end of its stream counts as the end of the program
            self._launched.terminate()

    async def _wait_for_hello(self, limit_us: int, began_ns: int) -> play_pb2.Hello:
        """Wait for the hello, and meanwhile keep other programs from taking all connections.

        Raises the same errors as `Session.wait_for_hello`.
        """
        guard = None if self._reachable is None else asyncio.ensure_future(self._reachable.guard())
        try:
            return await self.session.wait_for_hello(limit_us, began_ns)
        finally:
            if guard is not None:
                guard.cancel()

    async def _watch(self, launched: RunningProgram) -> None:
        """Wait for an exit, the stream's end or an exceeded limit. Then kill the process tree and fail the session."""
        exited = asyncio.ensure_future(launched.process.wait())
        closed = asyncio.ensure_future(self.session.closed.wait())
        limits = self.spec.limits
        breach = asyncio.ensure_future(
            wait_for_breach(launched, self._folder, limits, is_in_use=lambda: self.games > 0)
        )
        try:
            await asyncio.wait((exited, closed, breach), return_when=asyncio.FIRST_COMPLETED)
            connected = self.session.connected and self.session.failure is None
            if connected and not breach.done():
                # the last reply or the exit status may still be on its way
                await asyncio.wait((exited, closed), timeout=_STATUS_S)
        finally:
            exited.cancel()
            closed.cancel()
            breach.cancel()
        fault = breach.result() if breach.done() else await launched.breach()
        code = launched.process.returncode
        await launched.kill()
        await asyncio.wait(self._drains, timeout=_OUTPUT_LIMIT_S)
        self.session.fail(fault or self._describe_exit(code))

    def _on_watcher_done(self, watcher: asyncio.Task[None]) -> None:
        """If `_watch` raised an error, raise this error in all callers that await a reply of the bot."""
        if not watcher.cancelled() and (error := watcher.exception()) is not None:
            assert isinstance(error, Exception)  # noqa: S101 - other exceptions end the event loop
            self.session.fail(error)

    def _describe_exit(self, code: int | None) -> Forfeit | VoidGame:
        """Return the fault of a bot whose program or stream has ended.

        `code` is the `returncode` of the program. It is None if only the stream has ended: the bot has closed the stream, or
        gRPC has closed it because a message was above `GRPC_LIMIT`.
        If the machine lacks resources, return a `VoidGame`, because the shortage may have ended the bot.
        """
        name = None
        if code is None:
            detail = "the bot closed its stream"
            if self.session.said_hello:
                detail += f", or sent a message of more than {GRPC_LIMIT >> 20} MiB"
        elif code < 0:
            name = signal_name(-code)
            detail, code = f"the bot was ended by {name}", None
        else:
            detail = f"the bot exited with {code}"
        if self.session.said_hello:
            cause = Cause.CRASH
        else:
            cause = Cause.HANDSHAKE if code is None and name is None else Cause.EXITED_EARLY
            detail += " before its hello"
        return charge_or_void(Forfeit(cause, Evidence(detail=detail, exit_code=code, signal=name)))

    def add_evidence(self, fault: BotFault) -> BotFault:
        """Return a copy of a fault, with the end of the process's standard error in its evidence."""
        return type(fault)(fault.cause, replace(fault.evidence, stderr_tail=self.stderr_tail()))

    def stderr_tail(self) -> str:
        """Return the end of the standard error, with control characters escaped."""
        return self.error_output.tail(STDERR_TAIL)

    @property
    def dead(self) -> bool:
        """Whether the bot can send nothing more: its stream has ended, or the process is being stopped."""
        return self.session.closed.is_set() or self._stopping is not None

    @property
    def usable(self) -> bool:
        """Whether the bot can start another game: it is neither dead nor unresponsive."""
        return not (self.dead or self.session.unresponsive)

    def usage(self) -> TotalUsage:
        """Return the CPU time and memory of the process tree since its start."""
        assert self._launched is not None  # noqa: S101 - `start` has launched it
        return self._launched.usage()

    def change_games(self, by: int) -> None:
        """Add `by` to `games`. `usage_per_game` divides earlier CPU time by the old number, and later CPU time by the new one."""
        if max(1, self.games) != max(1, self.games + by):
            self.usage_per_game()
        self.games += by

    def usage_per_game(self) -> TotalUsage:
        """Return the usage, but divide each second of CPU time by `games` as it was at that time, or by 1 if it was 0."""
        usage = self.usage()
        self._cpu_per_game_s += (usage.cpu_s - self._counted_cpu_s) / max(1, self.games)
        self._counted_cpu_s = usage.cpu_s
        return replace(usage, cpu_s=self._cpu_per_game_s)

    def _busy_ns(self) -> int | None:
        """See `RunningProgram.busy_ns`; None also before the program is launched."""
        return None if self._launched is None else self._launched.busy_ns()

    @property
    def exit_code(self) -> int | None:
        """The exit code, or the negative number of the signal that ended the program; None while it runs."""
        return None if self._launched is None else self._launched.process.returncode

    @property
    def pid(self) -> int:
        """The program's process id."""
        assert self._launched is not None  # noqa: S101 - `start` has launched it
        return self._launched.process.pid

    async def _find_sender(self, stream: Stream) -> Sender:
        """Return who has opened a stream of the bot's server."""
        await self._is_launched.wait()  # a quick program can connect before `launch` returns
        return OWN if self._reachable is None else self._reachable.find_sender(stream)

    def _charge(self, pid: int, fault: Forfeit, token: str) -> None:
        """Charge a bot with a fault; see `server.Charge`."""
        for own, bot in self._bots.items():
            if bot._launched is not None and bot.pid == pid and own != token:  # noqa: SLF001 - the same class
                bot.session.fail(fault)

    def hold(self) -> None:
        """See `WatchedBot.hold`. If the program is not launched yet, its processes are stopped right after the launch."""
        self._held = Scheduling.STOPPED
        self._override_scheduling()

    def run_alone(self) -> None:
        """See `WatchedBot.run_alone`."""
        self._held = Scheduling.NORMAL
        self._override_scheduling()

    def release(self) -> None:
        """End `hold`: give the processes the scheduling that the session wants, or `NORMAL` if the bot was asked to exit."""
        self._held = None
        self._override_scheduling()

    def _override_scheduling(self) -> None:
        if self._launched is not None:
            self._launched.scheduler.override(self._held or self._leaving)

    async def shut_down(self, *, goodbye: bool) -> Shutdown:
        """Ask the process to exit, and return how it reacted. This method kills nothing, so call `stop` afterwards.

        Args:
            goodbye: True to send the goodbye and wait for at most `GOODBYE_S`, False to send SIGTERM and wait for
                at most `TERM_S`.
        """
        assert self._launched is not None  # noqa: S101 - `start` has launched it
        if self._watcher is not None:
            self._watcher.cancel()  # the watcher would kill the processes that are listed below
        began_ns = self._clock.now_ns()
        await self._request_exit(self._launched, goodbye=goodbye)
        elapsed_s = (self._clock.now_ns() - began_ns) / 1e9
        code = self.exit_code
        left_running = () if code is None else tuple(await list_left_running(self._launched))
        return Shutdown(code, elapsed_s, left_running)

    def end_soon(self) -> None:
        """Fail the session, and return at once. If `_watch` still runs, it kills the process soon."""
        self.session.fail(VoidGame("the referee has ended the bot's process"))

    async def stop(self, *, gently: bool = True) -> None:
        """End the process tree and remove the bot's socket and folder.

        A `VoidGame` is raised in all callers that await a reply of the bot.

        Args:
            gently: True to ask a usable bot to exit before it is killed; False to kill the bot at once.
        """
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop(gently=gently and self.usable))
        await asyncio.shield(self._stopping)

    async def _stop(self, *, gently: bool) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
        try:
            if self._launched is not None and gently:
                for goodbye in (True, False):
                    if self.exit_code is None:
                        await self._request_exit(self._launched, goodbye=goodbye)
        finally:
            self.end_soon()
            if self._launched is not None:
                await self._launched.kill()
            await self._server.stop()
            if self._drains:
                await asyncio.wait(self._drains, timeout=_OUTPUT_LIMIT_S)
            for task in self._drains:
                task.cancel()
            if self.log is not None:
                self.log.close()
            await asyncio.to_thread(self._folder.remove)
            del self._bots[self._token]

    async def _request_exit(self, launched: RunningProgram, *, goodbye: bool) -> None:
        """Ask the program to exit, and wait for its end: at most `GOODBYE_S` after a goodbye, or `TERM_S` after SIGTERM."""
        self._leaving = Scheduling.NORMAL  # a stopped bot cannot obey
        self._override_scheduling()
        with suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_S if goodbye else TERM_S):
                if goodbye:
                    self.session.say_goodbye(messages.goodbye())
                else:
                    launched.terminate()
                await launched.process.wait()
