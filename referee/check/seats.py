"""Measures a bot: how long it takes to answer, what it takes of the machine.

Who sits at the tables of a check: the bot, watched at every answer, and chance.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import psutil

from referee.bots import BotPlayer, BotProcess
from referee.check.report import (
    Latency,
    StepFailure,
    Usage,
    action_words,
    enum_name,
    fault_words,
    kind_name,
    legal_words,
)
from referee.errors import BotFault, Cause, Evidence, Forfeit
from referee.records import Reply, Request
from referee.rules.actions import Action, DecisionKind

_EVERY_S = 0.1


class UsageMonitor:
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


class Chance:
    """Does anything that is legal; the same with the same seed."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret

    async def decide(self, request: Request) -> Reply:
        """See `Player.decide`."""
        return Reply(self._random.choice(request.decision.legal), 0, 0)


class TimedReply(NamedTuple):
    """A good answer of the bot."""

    kind: DecisionKind
    action: Action
    elapsed_us: int


class BotSeat:
    """The bot in one game. What is wrong with an answer is kept, told for its author.

    Args:
        process: the bot's.
        player: its seat.
        where: the game, for people.
    """

    def __init__(self, process: BotProcess, player: BotPlayer, where: str) -> None:
        self._process = process
        self._player = player
        self._where = where
        self.trouble: StepFailure | None = None
        """The last thing that was wrong."""
        self.answers: list[TimedReply] = []

    async def decide(self, request: Request) -> Reply:
        """See `Player.decide`. Raises a `BotFault`, too, for an answer that is not legal."""
        dropped = self._process.session.dropped
        try:
            answer = await self._player.decide(request)
        except BotFault as fault:
            came = fault_words(fault)
            if fault.cause is Cause.TIMEOUT and self._process.session.dropped > dropped:
                came += (
                    "; but replies came that nothing waits for: their game_id and decision_id are"
                    " not those of an open request"
                )
            self.trouble = self._trouble(request, _expected(request, fault), came)
            raise
        if answer.action not in request.decision.legal:
            came = action_words(answer.action)
            self.trouble = self._trouble(request, legal_words(request.decision), came)
            raise Forfeit(Cause.ILLEGAL, Evidence(detail=came, elapsed_us=answer.elapsed_us))
        self.answers.append(TimedReply(request.decision.kind, answer.action, answer.elapsed_us))
        return answer

    def _trouble(self, request: Request, expected: str, came: str) -> StepFailure:
        what = f"{kind_name(request.decision.kind)} ({enum_name(request.decision.kind)})"
        where = f"{self._where}, seat {request.decision.seat}, turn {request.view.turn}"
        return StepFailure(f"{what}: {expected}", f"{came}\n{where}, decision_id {request.number}")


def _expected(request: Request, fault: BotFault) -> str:
    if fault.cause is Cause.MALFORMED:
        return legal_words(request.decision)
    return f"a reply within {request.budget.limit_us / 1e6:g} s"
