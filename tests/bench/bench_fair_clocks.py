"""Measure the clocks while every core is busy: `python tests/bench/bench_fair_clocks.py [EARLY [LATE]]`.

Two programs burn CPU on each core. Beside them, one pinned worker on each core plays games with a decision limit
of 50 ms. First the bots reply after 1 ms and must never be charged, for EARLY decisions (10,000). Then they reply
5 ms after the limit and must always be charged, for LATE decisions (2,000). The bench prints how many were
charged, how long the replies took by the referee's clock, and how late the referee itself was.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import psutil

from referee import configure_process

configure_process()  # before anything imports gRPC

from referee import deals
from referee.bots.manifest import BotSpec
from referee.clocks import Clocks
from referee.errors import Cause
from referee.match.play import GameSetup
from referee.records import BotId, Fault, GameRecord
from referee.rules.ruleset import RULESETS
from referee.sandbox.rungs import NO_ISOLATION
from referee.tournament.assignments import Assignment, GameTask, WorkerSettings
from referee.tournament.workers import Workers

RULES = RULESETS["basic"]
CLOCKS = Clocks(decision_us=50_000, game_start_us=60_000_000, start_up_us=60_000_000)
BURNERS_A_CORE = 2
SEATS = 2
FOLDER = Path(__file__).resolve().parent
BURN = "while True: pass"
UNLIMITED = 1 << 30


def order(number: int, when: str) -> GameTask:
    bots = tuple(
        BotSpec(BotId(f"timely{when}-{seat}", "1"), FOLDER, (sys.executable, "timely_bot.py", when))
        for seat in range(SEATS)
    )
    name = f"bench-{number}"
    setup = GameSetup(
        game_id=name,
        ruleset=RULES,
        seating=tuple(spec.bot for spec in bots),
        deck=deals.deck(bytes(32), name, RULES),
        clocks=CLOCKS,
        max_strikes=UNLIMITED,
        isolation="none",
    )
    return GameTask(
        setup=setup,
        bots=bots,
        opaque_id=name,
        seeds=(0,) * SEATS,
        names=(),
        suspended=frozenset(),
    )


@contextlib.contextmanager
def busy(cores: Sequence[int]) -> Iterator[None]:
    """Run programs on every core that use all of its CPU time."""
    with contextlib.ExitStack() as burners:
        for core in cores * BURNERS_A_CORE:
            burner = burners.enter_context(subprocess.Popen([sys.executable, "-c", BURN]))
            burners.callback(burner.kill)
            os.sched_setaffinity(burner.pid, {core})
        yield


async def games(workers: Workers, worker: int, when: str, wanted: int) -> AsyncIterator[GameRecord]:
    """Play games on a worker until they have as many decisions as wanted."""
    number = 0
    while wanted > 0:
        number += 1
        (record,) = await workers.submit(worker, Assignment(worker, (order(number, when),)))
        wanted -= len(record.moves)
        yield record


async def played(cores: Sequence[int], when: str, wanted: int) -> list[GameRecord]:
    async def of(worker: int) -> list[GameRecord]:
        return [each async for each in games(workers, worker, when, wanted // len(cores))]

    with tempfile.TemporaryDirectory() as folder:
        settings = [
            WorkerSettings(
                isolation=NO_ISOLATION,
                cores=frozenset({core}),
                clocks=CLOCKS,
                max_processes=2 * SEATS,
                folder=Path(folder),
                parent_pid=os.getpid(),
            )
            for core in cores
        ]
        workers = Workers(settings, on_worker_lost=print)
        async with contextlib.aclosing(workers):
            every = await asyncio.gather(*(of(worker) for worker in range(len(cores))))
    return [record for records in every for record in records]


def timeouts(records: Sequence[GameRecord]) -> list[Fault]:
    return [each for record in records for each in record.faults if each.cause is Cause.TIMEOUT]


def tell(what: str, records: Sequence[GameRecord]) -> None:
    moves = [move for record in records for move in record.moves]
    charged = timeouts(records)
    print(f"{what}: {len(charged)} of {len(moves)} decisions charged")
    if others := [fault for each in records for fault in each.faults if fault not in charged]:
        print(f"  and {len(others)} other faults, such as {others[0]}")
    print(f"  {spread('taken', [move.elapsed_us for move in moves])}")
    print(f"  {spread('until charged', [fault.evidence.elapsed_us for fault in charged])}")
    print(f"  {spread('lag of the referee', [move.lag_us for move in moves])}", flush=True)


def spread(what: str, values: list[int]) -> str:
    if not values:
        return f"{what}: none"
    values = sorted(values)
    at = {"median": 0.5, "99 %": 0.99, "99.9 %": 0.999, "most": 1}
    shown = (
        f"{name} {values[min(len(values) - 1, int(share * len(values)))] / 1000:.1f}"
        for name, share in at.items()
    )
    return f"{what}, ms: {'  '.join(shown)}"


def main(early: int, late: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    before = psutil.cpu_times()
    with busy(cores):
        tell("answered after 1 ms (wanted: none)", asyncio.run(played(cores, "1", early)))
        tell("answered 5 ms late (wanted: all)", asyncio.run(played(cores, "+5", late)))
    after = psutil.cpu_times()
    share = (after.steal - before.steal) / (sum(after[:8]) - sum(before[:8]))
    print(f"the whole machine stood still for {share:.1%} of the time")


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    main(*words, *(10_000, 2_000)[len(words) :])
