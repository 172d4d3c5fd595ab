"""Run a long tournament with bots that go wrong at random: `python tests/bench/bench_soak.py [GAMES]`.

Six bots play 5,000 duels. Two of them crash, hang, flood, leave daemons and so on in three games of ten. For each
quarter of the run the bench prints what the referee holds (driver and workers, without the bots): memory,
descriptors, sockets and threads, and the number of all processes. At the end every game must be stored, and no
process and no folder may be left.
"""

from __future__ import annotations

import collections
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from referee.store.league import League

TESTS = Path(__file__).resolve().parents[1]
REFEREE = Path(sys.executable).parent / "referee"
FAIR, WRONG = 4, 2
EVERY_S = 1.0
QUARTERS = 4
MANIFEST = """name = "{name}"
version = "1"
author = "bench"
language = "python"
[run]
command = ["python3", "bot.py", {words}]
"""
TOURNAMENT = """name = "soak"
ruleset = "duel"
seats = 2
matches = {matches}
bots = [{bots}]
[clocks]
start_up = 20
game_start = 10
decision = 0.5
[faults]
suspend_after = 0
"""


class Reading(NamedTuple):
    """What a run holds at one moment."""

    driver_mib: float
    workers_mib: float
    descriptors: int
    sockets: int
    threads: int
    processes: int


def reading(driver: psutil.Process) -> Reading:
    family = driver.children(recursive=True)
    referee = [driver]
    for child in family:
        with suppress(psutil.Error):
            if "spawn_main" in " ".join(child.cmdline()):
                referee.append(child)
    memory_mib, *workers_mib = (each.memory_info().rss / 2**20 for each in referee)
    return Reading(
        memory_mib,
        sum(workers_mib),
        sum(each.num_fds() for each in referee),
        sum(len(each.net_connections("all")) for each in referee),
        sum(each.num_threads() for each in referee),
        1 + len(family),
    )


class Watch:
    """Take readings during a run and print them by quarters of its games."""

    def __init__(self, run: subprocess.Popen[str]) -> None:
        self._driver = psutil.Process(run.pid)
        self._over = threading.Event()
        self._quarters: list[list[Reading]] = [[] for _ in range(QUARTERS)]
        self.share = 0.0
        """Share of the games that are played, from 0 to 1."""
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(EVERY_S):
            with suppress(psutil.Error):  # a process that has just ended
                quarter = min(QUARTERS - 1, int(QUARTERS * self.share))
                self._quarters[quarter].append(reading(self._driver))

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def tell(self) -> None:
        print(f"{'median (most)':16}" + "".join(f"{name:>16}" for name in Reading._fields))
        for number, readings in enumerate(self._quarters, 1):
            columns = zip(*readings, strict=True)
            cells = (f"{statistics.median(each):.0f} ({max(each):.0f})" for each in columns)
            print(f"quarter {number:<8}" + "".join(f"{cell:>16}" for cell in cells))


def bots(folder: Path) -> Iterator[str]:
    program = TESTS / "misbehaving" / "bot.py"
    for number in range(FAIR + WRONG):
        fair = number < FAIR
        name = f"{'fair' if fair else 'wrong'}{number}"
        words = '"fair"' if fair else f'"at_random", "{number}"'
        (folder / name).mkdir()
        (folder / name / "bot.toml").write_text(MANIFEST.format(name=name, words=words))
        shutil.copy(program, folder / name)  # a bot sees no other folder than its own
        yield f'"./{name}"'


def main(games: int) -> None:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(prefix="s") as temp:
        pairs = (FAIR + WRONG) * (FAIR + WRONG - 1) // 2
        matches = -(-games // (2 * pairs))
        file = Path(folder) / "soak.toml"
        file.write_text(TOURNAMENT.format(matches=matches, bots=", ".join(bots(Path(folder)))))
        league = Path(folder) / "league"
        run = subprocess.Popen(
            [REFEREE, "tournament", "run", file, "--league", league],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": temp},
        )
        watch = Watch(run)
        for line in run.stdout or ():
            if done := re.search(r"(\d+) of (\d+) games", line):
                watch.share = int(done[1]) / int(done[2])
        code = run.wait()
        watch.end()
        watch.tell()
        account(league, 2 * pairs * matches, code)
        left = [each for each in psutil.process_iter() if is_of(each, temp)]
        print(f"left: {len(left)} processes, {len(list(Path(temp).iterdir()))} folders")


def account(league: Path, wanted: int, code: int) -> None:
    with League.open(league, create=False) as store:
        stored = [store.record(row.game_id) for row in store.results(tournament="soak")]
    faults = [(record, fault) for record in stored for fault in record.faults]
    causes = collections.Counter(fault.cause.value for _, fault in faults)
    fair = sum(record.seating[fault.seat].name.startswith("fair") for record, fault in faults)
    print(f"exit code {code}; {len(stored)} of {wanted} games stored")
    print("faults:", ", ".join(f"{cause} {count}" for cause, count in causes.most_common()))
    print(f"faults of bots that do nothing wrong: {fair}")


def is_of(process: psutil.Process, temp: str) -> bool:
    try:
        return temp in process.environ().get("TMPDIR", "")
    except (psutil.Error, OSError):
        return False


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000)
