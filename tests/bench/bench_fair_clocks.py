"""Measure whether bots get the time that they are given: `python tests/bench/bench_fair_clocks.py [EARLY [LATE]]`.

The first part measures the clocks while every core is busy. Two programs burn CPU on each core. Beside them, one pinned
worker on each core plays games with a decision limit of 50 ms. In EARLY decisions (10,000), the bots reply after 1 ms and
must never be charged. In LATE decisions (2,000), they reply 5 ms after the limit and must always be charged. The bench
prints how many were charged, how long the replies took by the referee's clock, and how late the referee itself was.

The second part measures thinking time on one core, for each rung that the machine gives. A bot computes for 20 ms in each decision, beside
three bots that are quiet, that ponder (each has a child process that computes all the time), or that ponder with the
permission of the tournament. The bench prints the CPU time that the first bot has had, as a share of the real time, and
compares it with the share beside quiet bots in the same round. Then it prints the CPU time of the referee
and the real time for a decision of bots that reply at once, without and with the key `pondering`, which turns
the stopping of seated bots off. Last it prints the share of CPU time that four bots get that all compute, with one game and
with 64 games at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import psutil
import uvloop

from referee import configure_process

configure_process()  # before anything imports gRPC

from referee import deals
from referee.bots import BotSpec
from referee.clocks import Clocks
from referee.errors import Cause, UserError
from referee.match.play import GameSetup
from referee.records import BotId, Fault, GameRecord
from referee.rules.ruleset import RULESETS, Ruleset
from referee.sandbox import NO_ISOLATION, Isolation, Rung
from referee.sandbox.ladder import select_isolation
from referee.tournament.assignments import Assignment, GameTask, WorkerSettings
from referee.tournament.game_player import GamePlayer
from referee.tournament.workers import Workers

RULES = RULESETS["basic"]
CLOCKS = Clocks(decision_us=50_000, game_start_us=60_000_000, start_up_us=60_000_000)
BURNERS_A_CORE = 2
SEATS = 2
FOLDER = Path(__file__).resolve().parent
BURN = "while True: pass"
UNLIMITED = 1 << 30
QUIET = ("quiet", "quiet", "quiet")
PONDERERS = ("ponderer", "ponderer", "disguised_ponderer")
SHARE_ROUNDS, SHARE_GAMES = 3, 2
COST_ROUNDS, COST_GAMES = 5, 4
SHORT_RULES, MANY_GAMES = RULES.with_options(max_turns=4), 64


def order(number: int, when: str, clocks: Clocks) -> GameTask:
    return task(
        number,
        *(
            BotSpec(
                BotId(f"timely{when}-{seat}", "1"), FOLDER, (sys.executable, "timely_bot.py", when)
            )
            for seat in range(SEATS)
        ),
        clocks=clocks,
    )


def task(number: int, *bots: BotSpec, clocks: Clocks = CLOCKS, rules: Ruleset = RULES) -> GameTask:
    name = f"bench-{number}"
    setup = GameSetup(
        game_id=name,
        ruleset=rules,
        seating=tuple(spec.bot for spec in bots),
        deck=deals.deck(bytes(32), name, rules),
        clocks=clocks,
        max_strikes=UNLIMITED,
        isolation="none",
    )
    return GameTask(
        setup=setup,
        bots=bots,
        opaque_id=name,
        seeds=(0,) * len(bots),
        names=(),
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


async def games(
    workers: Workers, worker: int, when: str, wanted: int, clocks: Clocks
) -> AsyncIterator[GameRecord]:
    """Play games on a worker until they have as many decisions as wanted."""
    number = 0
    while wanted > 0:
        number += 1
        ordered = order(number, when, clocks)
        result = await workers.submit(worker, Assignment(worker, ((ordered,),)))
        (record,) = result.records
        wanted -= len(record.moves)
        yield record


async def played(
    cores: Sequence[int], when: str, wanted: int, clocks: Clocks = CLOCKS
) -> list[GameRecord]:
    async def of(worker: int) -> list[GameRecord]:
        return [each async for each in games(workers, worker, when, wanted // len(cores), clocks)]

    with tempfile.TemporaryDirectory() as folder:
        settings = [
            WorkerSettings(
                isolation=NO_ISOLATION,
                cores=frozenset({core}),
                clocks=clocks,
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


async def play_pondering(
    kinds: Sequence[str],
    isolation: Isolation,
    games: int,
    *,
    pondering: bool = False,
    in_flight: int = 1,
    rules: Ruleset = RULES,
) -> tuple[float, float, float]:
    """Play games with bots of `pondering_bot.py` in this process, after one game to warm up.

    Returns the searcher's CPU time as a share of the real time in its decisions, and for a decision of any bot the CPU time
    of this process and the real time, both in µs. Without a searcher the share is 0.
    """
    bots = [
        BotSpec(BotId(f"{kind}-{seat}", "1"), FOLDER, (sys.executable, "pondering_bot.py", kind))
        for seat, kind in enumerate(kinds)
    ]
    with tempfile.TemporaryDirectory(prefix="b-") as folder:
        player = GamePlayer(
            WorkerSettings(
                isolation=isolation,
                cores=frozenset(),
                clocks=Clocks(),
                max_processes=len(bots),
                folder=Path(folder),
                parent_pid=os.getpid(),
                pondering=pondering,
            )
        )
        tasks = [task(number, *bots, clocks=Clocks(), rules=rules) for number in range(games + 1)]
        await player.play_all(0, tasks[:1])
        cpu_s, wall_s, decisions = time.process_time(), time.perf_counter(), 0
        for first in range(1, games + 1, in_flight):
            for record in await player.play_all(0, tasks[first : first + in_flight]):
                assert not record.faults, record.faults
                decisions += len(record.moves)
        cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
        first = player._pool._processes[0, str(bots[0].bot)]
        await player.close()
    searched_ns, passed_ns = map(int, first.output.last_bytes().split())
    share = searched_ns / passed_ns if passed_ns else 0.0
    return share, 1e6 * cpu_s / decisions, 1e6 * wall_s / decisions


def tell_thinking_time(isolation: Isolation) -> None:
    shares: dict[str, list[float]] = {"quiet": [], "ponder": [], "may ponder": []}
    for _ in range(SHARE_ROUNDS):
        for name, others, pondering in (
            ("quiet", QUIET, False),
            ("ponder", PONDERERS, False),
            ("may ponder", PONDERERS, True),
        ):
            share, _, _ = uvloop.run(
                play_pondering(("searcher", *others), isolation, SHARE_GAMES, pondering=pondering)
            )
            shares[name].append(share)
    print(f"{isolation.summary}: CPU of 20 ms that a bot gets beside three bots that")
    for name, each in shares.items():
        kept = statistics.median(
            one / other for one, other in zip(each, shares["quiet"], strict=True)
        )
        wanted = " (wanted: at least 98 %)" if name == "ponder" else ""
        print(
            f"  {name}: {statistics.median(each):.1%}, {kept:.1%} of that beside quiet bots{wanted}"
        )
    cpu_us: dict[bool, list[float]] = {False: [], True: []}
    wall_us: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(COST_ROUNDS):
        for pondering in (True, False):
            _, cpu, wall = uvloop.run(
                play_pondering(("quiet", *QUIET), isolation, COST_GAMES, pondering=pondering)
            )
            cpu_us[pondering].append(cpu)
            wall_us[pondering].append(wall)
    for what, figures in (("the referee's CPU", cpu_us), ("real time", wall_us)):
        cost = statistics.median(
            one - other for one, other in zip(figures[False], figures[True], strict=True)
        )
        wanted = " (wanted: at most 40)" if figures is cpu_us else ""
        print(
            f"  {what} for a decision, in us: {statistics.median(figures[False]):.0f},"
            f" while bots may ponder {statistics.median(figures[True]):.0f}: {cost:+.1f}{wanted}",
            flush=True,
        )


def tell_many_games(isolation: Isolation) -> None:
    """Print how much CPU time four searchers get in their decisions with one game and with many games at once."""
    searchers = ("searcher",) * 4
    alone, many = [], []
    for _ in range(SHARE_ROUNDS):
        for shares, in_flight in ((alone, 1), (many, MANY_GAMES)):
            share, _, _ = uvloop.run(
                play_pondering(
                    searchers, isolation, MANY_GAMES, in_flight=in_flight, rules=SHORT_RULES
                )
            )
            shares.append(share)
    kept = statistics.median(one / other for one, other in zip(many, alone, strict=True))
    print(
        f"  beside three bots that compute as well, with one game: {statistics.median(alone):.1%}; with"
        f" {MANY_GAMES} games at once: {statistics.median(many):.1%}, {kept:.1%} of that (wanted: at least 98 %)",
        flush=True,
    )


def list_isolations() -> Iterator[Isolation]:
    """Yield the isolation on each rung that this machine gives."""
    for rung in Rung:
        with contextlib.suppress(UserError):
            yield asyncio.run(select_isolation(rung))


def main(early: int, late: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    before = psutil.cpu_times()
    with busy(cores):
        tell("answered after 1 ms (wanted: none)", asyncio.run(played(cores, "1", early)))
        tell("answered 5 ms late (wanted: all)", asyncio.run(played(cores, "+5", late)))
    after = psutil.cpu_times()
    share = (after.steal - before.steal) / (sum(after[:8]) - sum(before[:8]))
    print(f"the whole machine stood still for {share:.1%} of the time", flush=True)
    os.sched_setaffinity(0, cores[:1])
    for isolation in list_isolations():
        tell_thinking_time(isolation)
        tell_many_games(isolation)


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    main(*words, *(10_000, 2_000)[len(words) :])
