"""Compare the strongest isolation with none: `python tests/bench/bench_isolation.py`.

It uses one core, as a worker does, measures both in turn in several rounds, and prints the medians of:

- a start: from the launch of a program that does nothing to its end;
- a start to hello of a bot in Python;
- a round trip: from writing the request to the arrival of the reply, in games of bots that reply at once.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import uvloop

from referee import configure_process

configure_process()  # before anything imports gRPC

from bench_referee import KIT, list_bots, order

from referee.bots.player import BotPool
from referee.clocks import Clocks
from referee.sandbox import NO_ISOLATION, Isolation
from referee.sandbox.ladder import make_launcher, select_isolation
from referee.tournament.assignments import WorkerSettings
from referee.tournament.game_player import GamePlayer

ROUNDS = 11
GAMES = 4


async def start_s(isolation: Isolation) -> float:
    """Return the seconds that a program takes that ends at once."""
    with tempfile.TemporaryDirectory(prefix="b-") as name:
        folder = Path(name)
        os.chmod(folder, 0o755)  # noqa: PTH101, S103 - for the bot's user
        starts = make_launcher(isolation)
        began = time.perf_counter()
        launched = await starts.launch(["true"], folder=folder, environment={"PATH": "/usr/bin"})
        await launched.process.wait()
        elapsed = time.perf_counter() - began
        await launched.kill()
    return elapsed


async def hello_s(isolation: Isolation) -> float:
    """Return the seconds from the start of a bot to its hello."""
    with tempfile.TemporaryDirectory(prefix="b-") as name:
        pool = BotPool(make_launcher(isolation), Clocks(), max_processes=4, folder=Path(name))
        began = time.perf_counter()
        await pool.acquire(0, list_bots(KIT)[0])
        elapsed = time.perf_counter() - began
        await pool.close()
    return elapsed


async def round_trips_us(isolation: Isolation, first: int) -> list[int]:
    """Return the microseconds of every decision of some games, after one game to warm up."""
    with tempfile.TemporaryDirectory(prefix="b-") as name:
        player = GamePlayer(
            WorkerSettings(
                cores=frozenset(),
                clocks=Clocks(),
                max_processes=4,
                isolation=isolation,
                folder=Path(name),
                parent_pid=os.getpid(),
            )
        )
        await player.play_all(0, (order(10_000),))
        records = [
            (await player.play_all(0, (order(first + number),)))[0] for number in range(GAMES)
        ]
        await player.close()
    return [move.elapsed_us for record in records for move in record.moves]


async def measure() -> None:
    strongest = await select_isolation()
    kinds = {strongest.summary: strongest, NO_ISOLATION.summary: NO_ISOLATION}
    starts: dict[str, list[float]] = {name: [] for name in kinds}
    hellos: dict[str, list[float]] = {name: [] for name in kinds}
    trips: dict[str, list[int]] = {name: [] for name in kinds}
    for number in range(ROUNDS):
        for name, isolation in kinds.items():
            starts[name].append(1000 * await start_s(isolation))
            hellos[name].append(1000 * await hello_s(isolation))
            trips[name] += await round_trips_us(isolation, number * GAMES)
    tell("a start (ms)", starts, statistics.median)
    tell("a start to hello (ms)", hellos, statistics.median)
    tell("a round trip (µs)", trips, statistics.median)


def tell(
    what: str, found: dict[str, list[float]] | dict[str, list[int]], figure: Callable[..., float]
) -> None:
    (name, strongest), (_, none) = found.items()
    some, other = figure(strongest), figure(none)
    print(f"{what}: {name} {some:.1f}, none {other:.1f}, difference {some - other:+.1f}")


if __name__ == "__main__":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(measure())
