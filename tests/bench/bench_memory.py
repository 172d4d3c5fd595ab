"""Measure the memory of the referee over 2,000 games: `python tests/bench/bench_memory.py [GAMES]`.

It runs a tournament of duels between bots that reply at once. At every progress line it prints the resident
memory of the driver and its workers, without the bots. At the end it prints the growth in the second half.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

BENCH = Path(__file__).resolve().parent
BOTS = 2
MANIFEST = """name = "echo{number}"
version = "1"
author = "bench"
language = "python"
[run]
command = ["python3", "{program}"]
"""
TOURNAMENT = """name = "memory"
ruleset = "duel"
seats = 2
matches = {matches}
bots = [{bots}]
"""


def memory(driver: psutil.Process) -> float:
    """Return the MiB of the driver and its workers, which `multiprocessing` starts, unlike bots."""
    family = [driver]
    family += [child for child in driver.children() if "spawn_main" in " ".join(child.cmdline())]
    return sum(process.memory_info().rss for process in family) / 2**20


def main(games: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for number in range(BOTS):
            bot = Path(folder) / f"echo{number}"
            bot.mkdir()
            text = MANIFEST.format(number=number, program=BENCH / "echo_bot.py")
            (bot / "bot.toml").write_text(text)
            names.append(f'"./{bot.name}"')
        file = Path(folder) / "memory.toml"
        file.write_text(TOURNAMENT.format(matches=games // 2, bots=", ".join(names)))
        command = [Path(sys.executable).parent / "referee", "tournament", "run", file]
        run = subprocess.Popen(
            [*command, "--league", Path(folder) / "league"], stdout=subprocess.PIPE, text=True
        )
        driver = psutil.Process(run.pid)
        readings = []
        for line in run.stdout:
            done = re.search(r"(\d+) of (\d+) games", line)
            if done and done[1] != done[2]:  # at the end the workers are gone
                readings.append(memory(driver))
                print(f"{line.split(',')[0]:30} {readings[-1]:7.1f} MiB", flush=True)
        run.wait()
    middle, end = readings[len(readings) // 2], readings[-1]
    print(f"growth in the second half: {end - middle:+.1f} MiB ({(end - middle) / middle:+.1%})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
