"""Measure the cost of monitoring the resources of bots: `python tests/bench/bench_monitor.py`.

It prints the CPU time of the referee's process for a look (two each second of a game) and for a measurement
(two for each game), once for a bot with threads and once for a bot with three children.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import uvloop

from referee import configure_process

configure_process()  # before anything imports gRPC

from referee.bots import BotSpec
from referee.bots.process import BotProcess
from referee.records import BotId
from referee.sandbox.process_group import ProcessGroupLauncher

FOLDER = Path(__file__).parents[1] / "misbehaving"
TIMES = 500


async def measure(name: str) -> None:
    with tempfile.TemporaryDirectory(prefix="b-") as folder:
        bot = await BotProcess.start(
            BotSpec(BotId(name, "1"), FOLDER, (sys.executable, "bot.py", name)),
            launcher=ProcessGroupLauncher(),
            folder=Path(folder),
            limit_us=60_000_000,
            bots={},
        )
        launched = bot._launched
        threads = psutil.Process(bot.pid).num_threads()
        began_s = time.process_time()  # a thread of its own may read the memory
        for _ in range(TIMES):
            await launched.breach()
        look_us = (time.process_time() - began_s) / TIMES * 1e6
        usage_us = cost_us(launched.usage)
        scratch_us = cost_us(lambda: bot._folder.scratch_kib(1 << 16))
        print(
            f"{name}, {1 + len(launched.list_others())} processes, {threads} threads in the first:"
            f" a look {look_us:.0f} + {scratch_us:.0f} µs (scratch folder), a measurement"
            f" {usage_us:.0f} µs"
        )
        await bot.stop(gently=False)


def cost_us(act: Callable[[], object]) -> float:
    began_s = time.thread_time()
    for _ in range(TIMES):
        act()
    return (time.thread_time() - began_s) / TIMES * 1e6


async def main() -> None:
    for name in ("fair", "shares_memory_with_children"):
        await measure(name)


if __name__ == "__main__":
    uvloop.run(main())
