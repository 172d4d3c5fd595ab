"""Measure how a tournament grows with the workers of a cluster: `python tests/bench/bench_growth.py [most [seconds]]`.

The first part shows how many games one driver can store and rate in a second: its workers are objects in the same process, which return records of
games that were played before.

The second part plays with bots that sleep for 50 ms in each decision, so that many workers can share the cores of this machine. For
1, 2, 4 … workers (at most 64) on a Dask cluster it prints the games per second, the ratio to linear growth from one worker (wanted: at least
0.9), and how much of the cores the driver, the scheduler, and everything together take. If less than a sixth of the cores is
free, the cores are saturated: more workers would only wait for each other, and the bench ends.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psutil
from bench_cluster import cluster, cpu_s, play, write_file

from referee.cli.progress import LiveTable
from referee.records import GameRecord
from referee.roster.roster import Roster
from referee.roster.workshop import Workshop
from referee.sandbox import NO_ISOLATION
from referee.sandbox.process_group import ProcessGroupLauncher
from referee.store import HostFigures, StoredGame
from referee.store.league import League
from referee.tournament.assignments import Assignment, AssignmentResult
from referee.tournament.conduct import Conductor
from referee.tournament.config_reader import load_tournament
from referee.tournament.create import create_tournament, enter_bots

CORES = len(os.sched_getaffinity(0))
SLEEP_S = 0.05
SLEEPERS = 2
GAMES_A_SECOND = 1.2
"""About the games per second of one worker with the sleeping bots, to choose the number of games."""
PLAYED_MATCHES, DRIVER_MATCHES = 30, 2_500
FULL = 5 / 6
BOT = f"""import time
from referee.sdk import run

def decide(request):
    time.sleep({SLEEP_S})
    return request.game.random.choice(request.legal)

run(decide)
"""


def write_sleepers(folder: Path, workers: int, seconds: int) -> Path:
    """Write a tournament file for `workers` workers that play for about `seconds` seconds."""
    for number in range(SLEEPERS):
        bot = folder / f"sleeper{number}"
        bot.mkdir(exist_ok=True)
        (bot / "bot.py").write_text(BOT)
        (bot / "bot.toml").write_text(
            f'name = "sleeper{number}"\nversion = "1"\nauthor = "x"\nlanguage = "python"\n'
            '[run]\ncommand = ["python3", "bot.py"]\n'
        )
    bots = ", ".join(f'"./sleeper{number}"' for number in range(SLEEPERS))
    path = folder / "growth.toml"
    matches = max(2, round(workers * seconds * GAMES_A_SECOND / 2))
    path.write_text(
        f'name = "growth"\nruleset = "classic"\nseats = 2\nmatches = {matches}\nlanes = {2 * workers}\n'
        f'max_turns = 10\nisolation = "none"\nbots = [{bots}]\n'
    )
    return path


def measure_growth(folder: Path, most: int, seconds: int) -> None:
    workers, first = 1, 0.0
    while workers <= most:
        with cluster(str(folder), workers=workers) as (address, scheduler):
            file = write_sleepers(folder, workers, seconds)
            before, begin, scheduler_s = psutil.cpu_times(), time.monotonic(), cpu_s(scheduler)
            games, driver_s = play(file, folder / f"growth-{workers}", "--cluster", address)
            available_s = (time.monotonic() - begin) * CORES
            after = psutil.cpu_times()
            used_s = sum(after) - sum(before) - (after.idle - before.idle)
            scheduler_s = cpu_s(scheduler) - scheduler_s
        speed = steady_speed(games)
        first = first or speed
        shares = {"driver": driver_s * len(games), "scheduler": scheduler_s, "all": used_s}
        text = ", ".join(f"{name} {each / available_s:.0%}" for name, each in shares.items())
        is_full = used_s > FULL * available_s
        saturated = "; the cores are saturated" if is_full else ""
        print(
            f"{workers:2} workers: {speed:5.1f} games/s, {speed / first / workers:.2f} of linear growth"
            f" (wanted >= 0.9); of {CORES} cores: {text}{saturated}",
            flush=True,
        )
        if is_full:
            break
        workers *= 2


def steady_speed(games: list[StoredGame]) -> float:
    """Return the games per second in the second half of a tournament, when all workers play, without the last tenth."""
    ends = sorted(game.started_at_us + game.duration_us for game in games)
    begin, end = len(ends) // 2, len(ends) * 9 // 10
    return (end - begin) / (ends[end] - ends[begin]) * 1e6


class StoredGames:
    """A group of workers that returns the records of games that were played before."""

    stretch_s = 1.0

    def __init__(self, records: list[GameRecord]) -> None:
        self._records = records

    def __len__(self) -> int:
        return 64

    async def submit(self, number: int, assignment: Assignment) -> AssignmentResult:
        await asyncio.sleep(0)
        setups = [task.setup for bundle in assignment.bundles for task in bundle]
        found = [
            replace(
                self._records[(number + each) % len(self._records)],
                game_id=setup.game_id,
                seating=setup.seating,
            )
            for each, setup in enumerate(setups)
        ]
        return AssignmentResult(pickle.loads(pickle.dumps(found)))  # noqa: S301 - as they come from a cluster

    def list_hosts(self) -> list[HostFigures]:
        return []

    def drain(self) -> None:
        """Do nothing: no game waits for a worker."""

    def kill(self) -> None:
        """End nothing: there are no processes."""


@asynccontextmanager
async def open_stored(records: list[GameRecord]) -> AsyncIterator[StoredGames]:
    yield StoredGames(records)


async def measure_driver(folder: Path) -> None:
    """Measure how many games per second one driver stores and rates."""
    file = write_file(folder, PLAYED_MATCHES)
    play(file, folder / "played")
    with League.open_read_only(folder / "played") as store:
        records = [store.record(game.game_id) for game in store.results()]
    config = load_tournament(write_file(folder, DRIVER_MATCHES))
    with League.open(folder / "driver", create=True) as league, league.lock():
        roster = Roster(league, Workshop(league.folder, ProcessGroupLauncher(), on_build=print))
        bots = await enter_bots(config, roster, now_us=0)
        cup = create_tournament(league, config, bots, seed=bytes(32), now_us=0)
        table = LiveTable(league, cup)
        conductor = Conductor(
            league,
            cup,
            roster,
            NO_ISOLATION,
            open_stored(records),
            on_game_stored=table.add,
            say=print,
        )
        begin, cpu = time.monotonic(), time.process_time()
        assert await conductor.play_missing_games()
        elapsed, cpu = time.monotonic() - begin, time.process_time() - cpu
        games = len(cup.schedule)
    print(
        f"one driver stores and rates {games / elapsed:.0f} games/s ({games} games of four seats);"
        f" {1000 * cpu / games:.2f} ms CPU for a game"
    )


def main(most: int = 64, seconds: int = 40) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure_driver(Path(folder)))
        measure_growth(Path(folder), most, seconds)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
