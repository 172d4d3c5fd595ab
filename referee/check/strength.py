"""How the bot fares against chance: informative, and many more games in which something may go wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev

from referee.check.bench import Bench
from referee.check.games import Table, plans, play
from referee.check.report import Strength

GAMES = 100
AT_ONCE = 4
BUDGET_S = 4.0
"""No game is begun after that."""
_FEWEST = 2
_NORMAL_95 = 1.96


async def strength(bench: Bench, tables: Sequence[Table], at_once: int) -> Strength | None:
    """Let the bot play against chance for a while: duels, if it plays them, else at its first table.

    Args:
        bench: starts it.
        tables: what it can play; at least one.
        at_once: how many games it can hold.

    None where there was not time for two games. Raises `Trouble`.
    """
    table = next((each for each in tables if each.ruleset.name == "duel"), tables[0])
    waiting = plans("strength", [table], GAMES)[::-1]
    margins: list[float] = []
    until = time.monotonic() + BUDGET_S
    async with bench.bot() as process:

        async def keep_playing() -> None:
            while waiting and time.monotonic() < until:
                margins.append((await play(bench, process, waiting.pop())).margin)

        results = await asyncio.gather(
            *(keep_playing() for _ in range(min(at_once, AT_ONCE))), return_exceptions=True
        )
        for error in filter(None, results):
            raise error
    if len(margins) < _FEWEST:
        return None
    interval = _NORMAL_95 * stdev(margins) / sqrt(len(margins))
    return Strength(table.ruleset.name, table.players, len(margins), fmean(margins), interval)
