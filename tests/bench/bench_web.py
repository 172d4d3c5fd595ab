"""Measure `referee serve`: `python tests/bench/bench_web.py [pages] [streams] [tournament]`; all three by default.

- pages: the first and the second load of all kinds of pages of a league with 100,000 games (wanted: < 1 s, then < 0.1 s). Each
  first load has a server of its own, which has made no other page;
- streams: memory of the server with 100 open streams, after 20 changes of the league (wanted: flat);
- tournament: the time of a tournament with a server and a visitor beside it, to the time without, in alternating runs
  (wanted: <= 1.03). The visitor loads the page of the tournament at each change, as a browser does.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from statistics import median

import httpx
import psutil

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "store"), str(TESTS / "bench")]

import bench_hundred_thousand
from records import tournament

from referee.store.league import League
from referee.tournament.config import canonical_json
from referee.tournament.config_reader import load_tournament
from referee.tournament.terms import Terms

REFEREE = Path(sys.executable).with_name("referee")
ROUNDS = 5
STREAMS = 100
CHANGES = 20
PAGES = (
    "",
    "tournaments/cup",
    "games",
    "games?page=1000",
    "games?bot=bot01@1.0&other=bot02@1.0",
    "bots/bot01@1.0",
    "pairs/bot01@1.0/bot02@1.0",
    "histories/bot01@1.0",
    "games/cup-1",
)
FILE = """name = "cup"
ruleset = "classic"
seats = 4
matches = {matches}
seed = "{seed}"
isolation = "none"
bots = [{bots}]
"""


def write_file(folder: Path, matches: int) -> Path:
    """Write the file of a tournament of five sample bots."""
    names = ("random", "greedy", "bait", "counter", "final_sprint")
    bots = ", ".join(f'"{TESTS.parent / "sample_bots" / name}"' for name in names)
    path = folder / "cup.toml"
    path.write_text(FILE.format(matches=matches, seed="5eed" * 16, bots=bots))
    return path


def write_large_file(folder: Path, games: int) -> Path:
    """Write the file of the tournament that `bench_hundred_thousand.fill` stores."""
    bots = [f"bot{number:02}@1.0" for number in range(bench_hundred_thousand.BOTS)]
    path = folder / "large.toml"
    path.write_text(
        f'name = "cup"\nruleset = "classic"\nseats = {bench_hundred_thousand.SEATS}\nlanes = 4\n'
        f"matches = {games // 840 + 1}\nbots = {bots}\n"
    )
    return path


@contextmanager
def serving(league: Path):
    """Start a server; give its process and address."""
    command = [REFEREE, "serve", "--port", "0", "--league", league]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield psutil.Process(process.pid), process.stdout.readline().strip()
        finally:
            process.terminate()


def pages(folder: Path, games: int = 100_000) -> None:
    config = canonical_json(load_tournament(write_large_file(folder, games)))
    terms = Terms(
        seed="0" * 64, configuration="0" * 64, bots="0" * 64, schedule="0" * 64
    )  # no page compares these digests
    stored = replace(tournament(), config=config, terms=terms.text, commitment=terms.commitment)
    bench_hundred_thousand.tournament = lambda: stored
    with League.open(folder / "many", create=True) as league:
        bench_hundred_thousand.fill(league, games)
    for page in PAGES:
        with serving(folder / "many") as (_, address), httpx.Client(timeout=600) as client:
            times = []
            for _ in range(2):
                began = time.perf_counter()
                client.get(address + page).raise_for_status()
                times.append(time.perf_counter() - began)
            print(f"/{page}: {times[0]:.2f} s, then {times[1] * 1000:.0f} ms", flush=True)


def streams(folder: Path) -> None:
    path = folder / "few"
    subprocess.run(
        [REFEREE, "tournament", "run", write_file(folder, 1), "--league", path],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    with serving(path) as (process, address), ExitStack() as stack:
        client = stack.enter_context(
            httpx.Client(timeout=60, limits=httpx.Limits(max_connections=None))
        )
        client.get(address)
        before = process.memory_info().rss
        opened = [
            stack.enter_context(client.stream("GET", f"{address}events")).iter_lines()
            for _ in range(STREAMS)
        ]
        for lines in opened:
            next(lines)
        full = process.memory_info().rss
        with League.open(path, create=False) as league:
            for number in range(CHANGES):
                league.keep_checkpoint("bench", b"%d" % number)
                next(line for line in opened[0] if line.startswith("event"))
        after = process.memory_info().rss
    print(
        f"memory of the server: {before / 2**20:.1f} MiB, with {STREAMS} streams {full / 2**20:.1f},"
        f" after {CHANGES} changes {after / 2**20:.1f}; only one visitor reads"
    )


def tournament_beside_a_server(folder: Path) -> None:
    file = write_file(folder, 20)
    times = {False: [], True: []}
    for number in range(2 * ROUNDS):
        is_served = bool(number % 2)
        league = folder / f"league{number}"
        League.open(league, create=True).close()
        with ExitStack() as stack:
            if is_served:
                _, address = stack.enter_context(serving(league))
                threading.Thread(target=visit, args=[address], daemon=True).start()
            began = time.perf_counter()
            subprocess.run(
                [REFEREE, "tournament", "run", file, "--league", league],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            times[is_served].append(time.perf_counter() - began)
            print(
                f"{'with' if is_served else 'without'} a server: {times[is_served][-1]:.2f} s",
                flush=True,
            )
    print(
        f"ratio of the medians: {median(times[True]) / median(times[False]):.3f} (wanted: <= 1.03)"
    )


def visit(address: str) -> None:
    """Load the page of the tournament at each change until the server ends."""
    with (
        suppress(httpx.HTTPError),
        httpx.Client(timeout=60) as client,
        client.stream("GET", f"{address}events") as stream,
    ):
        for line in stream.iter_lines():
            if line.startswith("event"):
                client.get(f"{address}tournaments/cup")


if __name__ == "__main__":
    parts = {"pages": pages, "streams": streams, "tournament": tournament_beside_a_server}
    for name in sys.argv[1:] or parts:
        with tempfile.TemporaryDirectory() as place:
            parts[name](Path(place))
