"""Measures a bot: how long it takes to answer, what it takes of the machine."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import psutil

from referee.check.report import Latency, Usage
from referee.rules.actions import DecisionKind

_EVERY_S = 0.1


class Meter:
    """Everything that is measured during a check."""

    def __init__(self) -> None:
        self._answers_us = defaultdict[DecisionKind, list[int]](list)
        self._cpu_s: dict[tuple[int, float], float] = {}
        """By pid and start of each process, as last seen."""
        self._memory_bytes = 0

    def answered(self, kind: DecisionKind, elapsed_us: int) -> None:
        """A decision took so long, with nothing else to do beside it."""
        self._answers_us[kind].append(elapsed_us)

    @asynccontextmanager
    async def watching(self, pid: int) -> AsyncIterator[None]:
        """Measure a process and all that it starts, meanwhile."""
        watching = asyncio.ensure_future(self._watch(pid))
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.to_thread(self._look, pid)

    @property
    def latencies(self) -> tuple[Latency, ...]:
        """One for each kind that was answered."""
        return tuple(
            _latency(kind, sorted(self._answers_us[kind]))
            for kind in DecisionKind
            if kind in self._answers_us
        )

    @property
    def usage(self) -> Usage | None:
        """None where nothing was seen."""
        if not self._cpu_s:
            return None
        return Usage(sum(self._cpu_s.values()), self._memory_bytes)

    async def _watch(self, pid: int) -> None:
        while True:
            await asyncio.to_thread(self._look, pid)
            await asyncio.sleep(_EVERY_S)

    def _look(self, pid: int) -> None:
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
    count = len(sorted_us)
    p50_us, p95_us = (sorted_us[min(count - 1, count * percent // 100)] for percent in (50, 95))
    return Latency(kind, count, p50_us, p95_us, sorted_us[-1])
