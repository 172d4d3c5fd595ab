"""The steps at the end of a bot's life: whether it goes when it is told to, and what it leaves behind."""

from __future__ import annotations

import signal

from referee.bots import Parting
from referee.bots.launcher import signal_name
from referee.bots.process import GOODBYE_S, TERM_S
from referee.check.bench import Bench
from referee.check.games import Plan, play
from referee.check.report import Finding, Trouble, passed, skipped

_BY_SIGTERM = {0, -signal.SIGTERM, 128 + signal.SIGTERM}
"""Of a program that has a handler, of one that has none, and of a shell or a JVM."""


class Endings:
    """Ends the bot in every way that the referee does.

    Args:
        bench: starts it.
        plan: a game that it plays before; None where it cannot.
    """

    def __init__(self, bench: Bench, plan: Plan | None) -> None:
        self._bench = bench
        self._plan = plan
        self._left: dict[str, tuple[str, ...]] = {}
        """What was left running, after what."""

    async def goodbye(self) -> Finding:
        """A goodbye. Raises `Trouble`."""
        return await self._end(
            "the goodbye",
            f"it closes its stream and exits with 0 within {GOODBYE_S:g} s of the goodbye",
            {0},
        )

    async def sigterm(self) -> Finding:
        """SIGTERM, which comes where a goodbye has not helped. Raises `Trouble`."""
        return await self._end(
            "SIGTERM",
            f"it ends within {TERM_S:g} s of SIGTERM, by the signal or with exit code 0",
            _BY_SIGTERM,
        )

    async def nothing_left(self) -> Finding:
        """What was seen after both. Raises `Trouble`."""
        if not self._left:
            return skipped("the bot never ended by itself: see the steps before")
        left = [f"after {what}: {', '.join(names)}" for what, names in self._left.items() if names]
        if left:
            raise Trouble(
                "when the bot has ended, so has every process that it started",
                "\n".join(("still running a second later,", *left)),
            )
        return passed(f"no process after {' and '.join(self._left)}")

    async def _end(self, what: str, expected: str, good: set[int]) -> Finding:
        async with self._bench.bot() as process:
            if self._plan is not None:
                await play(self._bench, process, self._plan)
            parting = await process.part(goodbye=what != "SIGTERM")
            if parting.exit_code is not None:
                self._left[what] = parting.left
            if parting.exit_code not in good:
                raise Trouble(expected, _words(parting))
        return passed(f"{_words(parting)} after {parting.elapsed_s:.2f} s")


def _words(parting: Parting) -> str:
    code = parting.exit_code
    if code is None:
        return f"it still ran after {parting.elapsed_s:.1f} s"
    return f"ended by {signal_name(-code)}" if code < 0 else f"exited with {code}"
