"""Start, measure and end processes of the bot under test. `BotUnderTest.run` ends its process even if a step fails."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from referee.bots import BotSpec
from referee.bots.logs import LogSettings
from referee.bots.process import BotProcess
from referee.check import CheckUsage, Latency, StepFailure, fault_text
from referee.clocks import Clocks
from referee.errors import Forfeit
from referee.rules.actions import DecisionKind
from referee.sandbox.launcher import Launcher

_INTERVAL_S = 0.1
"""Seconds between two measurements of a process and its descendants."""
_OUTPUT_BYTES = 4096
"""The message of a failed step shows at most this many bytes from the end of the bot's standard output."""


class Measurements:
    """The latencies and the usage of the bot, collected from all its processes in a check."""

    def __init__(self) -> None:
        self._elapsed_us = defaultdict[DecisionKind, list[int]](list)
        self._cpu_s: dict[tuple[int, float], float] = {}
        """The last measured CPU time of each process, in seconds. A key is the process id and the start time."""
        self._memory_bytes = 0
        """The largest memory use so far of one bot process together with its descendants."""

    def add_decision(self, kind: DecisionKind, elapsed_us: int) -> None:
        """Add the time of one decision.

        Add only decisions of a bot that plays one game. With several games at once, the time could include other decisions.
        """
        self._elapsed_us[kind].append(elapsed_us)

    @asynccontextmanager
    async def watch(self, pid: int) -> AsyncIterator[None]:
        """Measure the process `pid` and its descendants repeatedly while this context is open."""
        watcher = asyncio.ensure_future(self._watch(pid))
        try:
            yield
        finally:
            watcher.cancel()
            await asyncio.to_thread(self._measure, pid)

    @property
    def latencies(self) -> tuple[Latency, ...]:
        """The latency of each kind of decision that was measured."""
        return tuple(
            _latency(kind, sorted(self._elapsed_us[kind]))
            for kind in DecisionKind
            if kind in self._elapsed_us
        )

    @property
    def usage(self) -> CheckUsage | None:
        """The usage of all processes; None if no process was measured."""
        if not self._cpu_s:
            return None
        return CheckUsage(sum(self._cpu_s.values()), self._memory_bytes)

    async def _watch(self, pid: int) -> None:
        while True:
            await asyncio.to_thread(self._measure, pid)
            await asyncio.sleep(_INTERVAL_S)

    def _measure(self, pid: int) -> None:
        memory_bytes = 0
        with suppress(psutil.Error):
            program = psutil.Process(pid)
            for process in (program, *program.children(recursive=True)):
                with suppress(psutil.Error), process.oneshot():
                    times = process.cpu_times()
                    memory_bytes += process.memory_info().rss
                    self._cpu_s[process.pid, process.create_time()] = times.user + times.system
        self._memory_bytes = max(self._memory_bytes, memory_bytes)


def _latency(kind: DecisionKind, sorted_us: Sequence[int]) -> Latency:
    """Return the `Latency` of one kind of decision from the times of all its decisions, in ascending order."""
    count = len(sorted_us)
    p50_us, p95_us = (sorted_us[count * percent // 100] for percent in (50, 95))
    return Latency(kind, count, p50_us, p95_us, sorted_us[-1])


@dataclass(frozen=True, slots=True)
class BotUnderTest:
    """Starts processes of the bot under test."""

    spec: BotSpec
    folder: Path
    """A folder; each process gets a subfolder of its own."""
    clocks: Clocks
    measurements: Measurements
    launcher: Launcher
    logs: LogSettings | None = None
    """Where to write the logs of the processes; None to write no logs."""

    async def start(self) -> BotProcess:
        """Start a process of the bot and wait for its hello. The caller must stop the process.

        Raises `Forfeit` if the program cannot be started, fails before its hello, or sends no valid hello in time. Raises
        `VoidGame` for the same reasons as `BotProcess.start`, for example if the machine lacks resources.
        """
        return await BotProcess.start(
            self.spec,
            launcher=self.launcher,
            folder=self.folder,
            limit_us=self.clocks.start_up_us,
            bots={},
            logs=self.logs,
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[BotProcess]:
        """Start and measure a new process of the bot. The end of the context ends the process tree.

        Raises `StepFailure` if `start` raises `Forfeit`, and `VoidGame` as `start` does. If the body of the context raises a
        `StepFailure`, the end of the bot's standard error replaces the `output` of the failure. If standard error is
        empty, the end of standard output replaces the `output`.
        """
        try:
            process = await self.start()
        except Forfeit as fault:
            raise StepFailure(
                "the bot starts again, as it did before",
                fault_text(fault),
                fault.evidence.stderr_tail,
                symptom=f"start: {fault.cause.value}",
            ) from None
        try:
            async with self.measurements.watch(process.pid):
                yield process
                self.launcher.reap()
        except StepFailure as failure:
            await process.stop(gently=False)
            output = process.stderr_tail() or process.output.tail(_OUTPUT_BYTES)
            raise StepFailure(
                failure.expected, failure.happened, output, symptom=failure.symptom
            ) from None
        finally:
            await process.stop(gently=False)
