"""Measure the start of a bot in each language: `python tests/bench/bench_start_up.py`.

It builds the sample bots and prints:

- the time of each from its start to its hello, and its memory at the end of a tournament of short games;
- the time of ten bots that start one after the other, and at once. First ten real bots share the cores, then ten
  bots only wait for a second, as for a disk;
- the number of processes that this tournament started: one for each bot and lane.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import psutil
import uvloop

from referee import configure_process

configure_process()  # before anything imports gRPC
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from orders import game_order

from referee.bots import BotSpec
from referee.bots.player import BotPool
from referee.clocks import Clocks
from referee.records import BotId
from referee.roster.workshop import Workshop
from referee.rules.ruleset import RULESETS
from referee.sandbox import DEFAULT_LIMITS, NO_ACCESS, NO_ISOLATION, Access, Limits
from referee.sandbox.launcher import RunningProgram
from referee.sandbox.process_group import ProcessGroupLauncher
from referee.schedule import Stage
from referee.schedule.round_robin import round_robin
from referee.tournament.assignments import WorkerSettings
from referee.tournament.game_player import GamePlayer

BENCH = Path(__file__).resolve().parent
SAMPLE_BOTS = BENCH.parents[1] / "sample_bots"
LANGUAGES = ["", "_go", "_rust", "_java", "_typescript", "_cpp"]
BOTS = [f"greedy{each}" for each in LANGUAGES] + ["random", "bait", "counter", "small_beasts"]
STARTS = 9
LANES = 4
STAGE = Stage(RULESETS["basic"].with_options(max_turns=4), seats=3, matches=1)
MAX_PROCESSES = 64
WAITING = ("sh", "-c", "sleep 1; exec python3 echo_bot.py")


async def build(league: Path) -> list[BotSpec]:
    workshop = Workshop(
        league, ProcessGroupLauncher(), on_build=lambda bot: print("building", bot.name)
    )
    return [(await workshop.copy(SAMPLE_BOTS / name)).spec for name in BOTS]


async def start_s(specs: Sequence[BotSpec]) -> float:
    """Start all these bots at once; return the seconds until each of them has said hello."""
    with tempfile.TemporaryDirectory(prefix="b-") as folder:
        pool = BotPool(
            ProcessGroupLauncher(), Clocks(), max_processes=MAX_PROCESSES, folder=Path(folder)
        )
        began = time.perf_counter()
        await asyncio.gather(*(pool.acquire(0, spec) for spec in specs))
        elapsed = time.perf_counter() - began
        await pool.close()
    return elapsed


async def compare(what: str, specs: Sequence[BotSpec]) -> None:
    alone = [await start_s([spec]) for spec in specs]
    together = await start_s(specs)
    print(
        f"{len(specs)} {what}: one after the other {sum(alone):.2f} s, the slowest {max(alone):.2f} s,"
        f" at once {together:.2f} s"
    )


class CountingLauncher(ProcessGroupLauncher):
    """A launcher that remembers the process ids of what it has started."""

    def __init__(self) -> None:
        self.pids: dict[Path, list[int]] = defaultdict(list)
        """Process ids by the folder of the bot."""

    async def launch(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        limits: Limits = DEFAULT_LIMITS,
        access: Access = NO_ACCESS,
    ) -> RunningProgram:
        launched = await super().launch(
            command, folder=folder, environment=environment, limits=limits, access=access
        )
        self.pids[folder].append(launched.process.pid)
        return launched


@contextlib.asynccontextmanager
async def player(launchers: Mapping[str, CountingLauncher]) -> AsyncIterator[GamePlayer]:
    with tempfile.TemporaryDirectory(prefix="b-") as folder:
        settings = WorkerSettings(
            cores=frozenset(),
            clocks=Clocks(),
            max_processes=MAX_PROCESSES,
            isolation=NO_ISOLATION,
            folder=Path(folder),
            parent_pid=os.getpid(),
        )
        games = GamePlayer(settings, launchers)
        yield games
        await games.close()


def memory(pid: int) -> float:
    """Return the MiB of a process and its children."""
    program = psutil.Process(pid)
    family = [program, *program.children(recursive=True)]
    return sum(process.memory_info().rss for process in family) / 2**20


async def play(specs: Sequence[BotSpec]) -> dict[Path, list[float]]:
    """Play a tournament; return the MiB of each process that it started, by the folder of the bot."""
    by_name = {str(spec.bot): spec for spec in specs}
    schedule = round_robin("bench", list(by_name), [STAGE], lanes=LANES)
    launcher = CountingLauncher()
    began = time.perf_counter()
    async with player(dict.fromkeys(by_name, launcher)) as games:
        for game in schedule:
            seated = tuple(by_name[name] for name in game.bots)
            order = game_order(
                game.game_id,
                STAGE.ruleset,
                seated,
                clocks=Clocks(),
                max_strikes=3,
                deal=game.deal_id,
            )
            (record,) = await games.play_all(game.lane, (order,))
            assert not record.faults
        elapsed = time.perf_counter() - began
        used = {folder: list(map(memory, pids)) for folder, pids in launcher.pids.items()}
    starts = sum(map(len, used.values()))
    print(
        f"a tournament of {len(specs)} bots: {len(schedule)} games in {elapsed:.1f} s,"
        f" {len(schedule) * STAGE.seats} seats taken, {starts} processes started"
        f" ({len(specs)} bots x {LANES} lanes = {len(specs) * LANES})"
    )
    return used


async def main() -> None:
    with tempfile.TemporaryDirectory() as league:
        specs = await build(Path(league))
        used = await play(specs)
        print(f"{'':18}{'start to hello, ms':>24}{'MiB':>8}")
        for spec in specs:
            times = [await start_s([spec]) * 1000 for _ in range(STARTS)]
            middle, worst = statistics.median(times), max(times)
            mib = statistics.median(used[spec.folder])
            print(f"{spec.bot.name:18}{middle:>14.0f} ({worst:.0f} max){mib:>8.0f}")
        await compare("sample bots", specs)
    waiting = [BotSpec(BotId(f"waits{number}", "1"), BENCH, WAITING) for number in range(10)]
    await compare("bots that wait for a second", waiting)


if __name__ == "__main__":
    uvloop.run(main())
