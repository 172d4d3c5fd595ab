"""Find the bot that floods its server with HTTP/2 frames or connections, and charge it.

gRPC handles pings, settings, unknown frames and new connections in threads of its own, and does not report them. A bot
can keep these threads busy for ever with little CPU time of its own. The threads belong to the worker, which may have
priority over the bots. So they can take CPU time from all bots.

`FloodWatch` measures the CPU time of these threads. If it is much more than the replies of the bots explain,
`FloodWatch` searches for the flooder: it stops all bots, and lets one bot after the other run alone in short trials. A bot
floods if gRPC becomes too busy in each trial of the bot, and quiet again after each. During a search, no other bot is
started, because it would run beside the bot that has a trial.

While gRPC is too busy, the bots get extra time for their pending requests, up to a limit: the deadlines move. During
a search, all clocks stand still.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Protocol

from referee.bots.session import Session
from referee.errors import Cause, Evidence, Forfeit
from referee.sandbox.output_pipe import OUTPUT_THREADS

WATCH_PERIOD_S = 0.025
"""Seconds between two measurements."""
BUSY_SHARE = 0.1
"""gRPC is too busy if its excess CPU time is more than this share of a core. Excess is what it uses beyond `_MESSAGE_NS`
for each reply."""
_MESSAGE_NS = 300_000
"""How much CPU time, in ns, gRPC may use for a request and its reply: five times the usual time."""
_TRIAL_AFTER_NS = 70_000_000
"""A search for the flooder begins when the excess CPU time of gRPC adds up to this many ns. Several bots that start
at once on a busy machine cause only about 20 ms."""
_KEPT_SHARE = 0.9
"""The sum of the excess is multiplied by this number at each measurement that finds gRPC not too busy."""
_CREDIT_NS = 200_000_000
"""Upper limit of the extra time, in ns, that is available for pending requests. All of it is available at first and
after each search. Without a limit, a bot that floods only for short moments could extend its own time."""
_CREDIT_SHARE = 0.02
"""The available extra time grows by this share of the time that passes, up to `_CREDIT_NS`."""
_REST_NS = 2_000_000_000
"""How many ns to wait, at least, from the end of a search to the next search."""
_TRIAL_S = 0.02
"""How many seconds a bot runs alone in a trial."""
_TRIALS = 3
"""How many trials a bot has at most. They end early if gRPC is not too busy in a trial, or does not become quiet after it."""
_QUIET_S = 0.01
"""How many seconds to measure whether gRPC is quiet. It must be quiet before and after each trial, while all bots are stopped."""
_QUIET_LIMIT_S = 0.5
"""How many seconds to wait, at most, until gRPC is quiet. gRPC may still have to read much that a bot
sent before the bot was stopped."""
_EXECUTOR_NAMES = "asyncio_", "uvloop_"
"""The names of an event loop's executor threads begin with one of these."""


class WatchedBot(Protocol):
    """The part of `BotProcess` that `FloodWatch` needs."""

    @property
    def session(self) -> Session:
        """The stream of the bot."""
        ...

    def hold(self) -> None:
        """Stop the bot's processes until `run_alone` or `release`, whatever scheduling the session wants."""
        ...

    def run_alone(self) -> None:
        """Let the processes of a held bot run until the next `hold`, whatever scheduling the session wants."""
        ...

    def release(self) -> None:
        """End `hold`: give the bot's processes the scheduling that the session wants."""
        ...


class GrpcThreads:
    """The threads of gRPC: all threads of this process except a few.

    The exceptions are the thread of the event loop, those of its executor, and those that read the outputs of bots.
    Call the methods only in the thread of the event loop, because they assume that it is the calling thread.
    """

    @staticmethod
    def is_measurable() -> bool:
        """Return whether this system can measure the CPU time of a thread. macOS cannot."""
        return hasattr(time, "pthread_getcpuclockid")

    def cpu_ns(self) -> int:
        """Return the CPU time of the threads in ns."""
        executor_ns = sum(
            time.clock_gettime_ns(time.pthread_getcpuclockid(thread.ident))
            for thread in _executor_threads()
            if thread.ident is not None
        )
        others_ns = time.thread_time_ns() + executor_ns + OUTPUT_THREADS.cpu_ns
        return time.process_time_ns() - others_ns

    def is_any_runnable(self) -> bool:
        """Return whether any of the threads runs or waits for a core. Without /proc, return False."""
        others = {threading.get_native_id(), *(each.native_id for each in _executor_threads())}
        others |= OUTPUT_THREADS.native_ids
        for folder in Path("/proc/self/task").glob("*"):
            if int(folder.name) not in others:
                with suppress(OSError):  # the thread has ended
                    if (folder / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"R":
                        return True
        return False


def _executor_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith(_EXECUTOR_NAMES)]


class FloodWatch:
    """Watches the bots of a worker; see the text of the module.

    Args:
        list_bots: returns the bots that run now, also those that are being started or stopped.
        threads: the threads of gRPC.
        start_lock: held during a search. While it is held, no bot may join those that `list_bots` returns.
        now_ns: returns monotonic time in ns.
        sleep: waits for some seconds.
    """

    def __init__(
        self,
        list_bots: Callable[[], Collection[WatchedBot]],
        threads: GrpcThreads,
        start_lock: asyncio.Lock,
        now_ns: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._list_bots = list_bots
        self._threads = threads
        self._start_lock = start_lock
        self._now_ns = now_ns
        self._sleep = sleep
        self._last_ns = (0, 0, 0)
        """The last measurement, in ns: monotonic time, CPU time of gRPC, and the CPU time that all replies explain."""
        self._excess_sum_ns = 0.0
        """The sum of the excess CPU time in ns. Each measurement that finds gRPC not too busy multiplies it by
        `_KEPT_SHARE`."""
        self._next_trial_ns = 0
        """The time before which no search begins."""
        self._credit_ns = _CREDIT_NS
        """How much extra time can still be given."""

    async def run(self) -> None:
        """Watch until this task is cancelled."""
        with suppress(OSError):
            self._measure()
        while True:
            await self._sleep(WATCH_PERIOD_S)
            with suppress(OSError):  # such as "too many open files": try again in the next period
                await self._check()

    async def _check(self) -> None:
        """Give the bots extra time if gRPC is too busy, and search for flooders if the excess adds up to `_TRIAL_AFTER_NS`."""
        elapsed_ns, excess_ns = self._measure()
        self._credit_ns = min(_CREDIT_NS, self._credit_ns + int(_CREDIT_SHARE * elapsed_ns))
        if excess_ns <= BUSY_SHARE * elapsed_ns:
            self._excess_sum_ns *= _KEPT_SHARE
            return
        self._excess_sum_ns += excess_ns
        given_ns = min(excess_ns, self._credit_ns)
        self._credit_ns -= given_ns
        for bot in self._list_bots():
            bot.session.pending_requests.credit(given_ns)
        if self._excess_sum_ns >= _TRIAL_AFTER_NS and self._now_ns() >= self._next_trial_ns:
            try:
                async with self._start_lock:
                    await self._try_bots()
            finally:
                self._excess_sum_ns = 0
                self._next_trial_ns = self._now_ns() + _REST_NS
                self._credit_ns = _CREDIT_NS

    def _measure(self) -> tuple[int, int]:
        """Return the time since the last measurement, and the excess CPU time of gRPC since then, both in ns."""
        replies = sum(bot.session.accepted for bot in self._list_bots())
        new = self._now_ns(), self._threads.cpu_ns(), replies * _MESSAGE_NS
        elapsed_ns, cpu_ns, explained_ns = (b - a for a, b in zip(self._last_ns, new, strict=True))
        self._last_ns = new
        # `explained_ns` is negative if a bot with many replies has left the list
        return elapsed_ns, cpu_ns - max(0, explained_ns)

    async def _is_busy(self, seconds: float) -> bool:
        self._measure()
        await self._sleep(seconds)
        elapsed_ns, excess_ns = self._measure()
        return excess_ns > BUSY_SHARE * elapsed_ns

    async def _try_bots(self) -> None:
        """Search for flooders: stop all bots, let one after the other run alone, and charge those that flood.

        If gRPC does not become quiet, end the search. Then the remaining bots have no trial. A bot that is not needed now
        (`Session.is_needed`) has no trial either: such a bot is stopped even without a search. It runs only if it was asked
        to exit or is being killed.
        """
        flooders = []
        with ExitStack() as stack:
            bots = list(self._list_bots())
            for bot in bots:
                bot.session.pending_requests.pause()
                stack.callback(bot.session.pending_requests.resume)
                stack.callback(bot.release)
                bot.hold()
            for bot in bots:
                if not bot.session.is_needed:
                    continue
                if not await self._wait_until_quiet():
                    break
                if await self._floods(bot):
                    flooders.append(bot)
        for bot in flooders:
            detail = "the bot kept its server busy with HTTP/2 frames or connections that carry no replies"
            bot.session.fail(Forfeit(Cause.FLOOD, Evidence(detail=detail)))

    async def _floods(self, bot: WatchedBot) -> bool:
        """Let a stopped bot run in trials. Return whether gRPC gets too busy in each trial, and quiet again after it.

        Call this while gRPC is quiet.
        """
        for _ in range(_TRIALS):
            bot.run_alone()
            try:
                is_busy = await self._is_busy(_TRIAL_S)
            finally:
                bot.hold()
            if not is_busy or not await self._wait_until_quiet():
                return False
        return True

    async def _wait_until_quiet(self) -> bool:
        """Wait until gRPC is quiet, while all bots are stopped. Return False if it stays busy for `_QUIET_LIMIT_S`."""
        end_ns = self._now_ns() + int(_QUIET_LIMIT_S * 1e9)
        while self._now_ns() < end_ns:
            # on a busy machine, a thread may have work left but get no core, and so use no CPU time
            if not await self._is_busy(_QUIET_S) and not self._threads.is_any_runnable():
                return True
        return False
