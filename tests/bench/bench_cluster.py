"""Compare a tournament on a Dask cluster with local workers on the same cores: `python tests/bench/bench_cluster.py [matches] [pairs]`.

Prints the games per second of alternating runs with the CPU time of the driver and the scheduler for each game, and at the end the
ratio of the medians (wanted: >= 0.95). The games per second are counted from the start of the first game to the end of the last one, so that the start of the cluster does not count.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import psutil
from distributed import Client

from referee.store import StoredGame
from referee.store.league import League

REFEREE = Path(sys.executable).with_name("referee")
SAMPLE_BOTS = Path(__file__).parents[2] / "sample_bots"
BOTS = ("bait", "greedy", "random", "counter")
WORKERS = len(os.sched_getaffinity(0))


def write_file(folder: Path, matches: int) -> Path:
    bots = ", ".join(f'"{SAMPLE_BOTS / bot}"' for bot in BOTS)
    path = folder / "cup.toml"
    path.write_text(
        f'name = "cup"\nruleset = "classic"\nseats = 4\nmatches = {matches}\nlanes = {4 * WORKERS}\n'
        f"workers = {WORKERS}\nbots = [{bots}]\n"
    )
    return path


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def play(file: Path, league: Path, *where: object) -> tuple[list[StoredGame], float]:
    """Play the tournament; return the games, and the CPU seconds of the driver for each game."""
    command = [REFEREE, "tournament", "run", file, "--league", league, *map(str, where)]
    driver_s = 0.0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            driver_s = cpu_s(psutil.Process(process.pid))
            time.sleep(0.1)
    assert process.returncode == 0
    with League.open_read_only(league) as store:
        games = store.games()
    return games, driver_s / len(games)


def games_per_s(games: list[StoredGame]) -> float:
    begin = min(game.started_at_us for game in games)
    end = max(game.started_at_us + game.duration_us for game in games)
    return len(games) / (end - begin) * 1e6


def main(matches: int = 150, pairs: int = 3) -> None:
    speeds: dict[str, list[float]] = {"local workers": [], "cluster": []}
    with tempfile.TemporaryDirectory() as folder, cluster(folder) as (address, scheduler):
        file = write_file(Path(folder), matches)
        for number in range(pairs):
            for name, where in (("local workers", ()), ("cluster", ("--cluster", address))):
                before_s = cpu_s(scheduler)
                games, driver_s = play(file, Path(folder) / f"{name[0]}{number}", *where)
                speed = games_per_s(games)
                speeds[name].append(speed)
                text = (
                    f"{name}: {speed:.1f} games/s; CPU for a game: driver {1000 * driver_s:.1f} ms"
                )
                if where:
                    scheduler_s = (cpu_s(scheduler) - before_s) / len(games)
                    text += f", scheduler {1000 * scheduler_s:.1f} ms"
                print(text, flush=True)
    ratio = median(speeds["cluster"]) / median(speeds["local workers"])
    print(f"games/s on the cluster to local workers: {ratio:.3f} (wanted >= 0.95)")


@contextmanager
def cluster(folder: str, workers: int = WORKERS) -> Iterator[tuple[str, psutil.Process]]:
    """Start a scheduler and workers; give the address and the process of the scheduler."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    port = address.rpartition(":")[2]
    words = ["scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"]
    with ExitStack() as stack:
        scheduler = stack.enter_context(
            subprocess.Popen([REFEREE.with_name("dask"), *words], **quiet)
        )
        stack.callback(scheduler.terminate)
        host = None
        while host is None or host.poll() is not None:  # until the scheduler listens
            time.sleep(1)
            host = subprocess.Popen([REFEREE, "worker", address, "--cores", str(workers)], **quiet)
            time.sleep(3)
        stack.enter_context(host)
        stack.callback(host.terminate)
        with Client(address) as client:
            client.wait_for_workers(workers, timeout=600)
        yield address, psutil.Process(scheduler.pid)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
