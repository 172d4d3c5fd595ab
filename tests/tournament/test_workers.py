"""Lost workers are replaced, results do not depend on the number of workers, and no process meets a deal twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from concurrent.futures.process import BrokenProcessPool
from contextlib import aclosing
from pathlib import Path

import psutil
import pytest
from real_runs import THREE, place, read_until, workers

from referee.bots.manifest import load_manifest
from referee.clocks import Clocks
from referee.roster.roster import Roster
from referee.roster.workshop import Workshop
from referee.sandbox import NO_ISOLATION
from referee.sandbox.process_group import ProcessGroupLauncher
from referee.store.league import League
from referee.tournament import worker
from referee.tournament.assignments import WorkerSettings
from referee.tournament.config_reader import load_tournament
from referee.tournament.create import create_tournament, enter_bots
from referee.tournament.workers import WorkerLostError, Workers

pytestmark = [pytest.mark.unmeasured, pytest.mark.extended("plays further tournaments")]
BOTS = Path(__file__).parent / "bots"
MET_A_DEAL_AGAIN = 77


@pytest.fixture
def here(tmp_path):
    with place(tmp_path) as made:
        yield made


def make_settings(folder):
    return WorkerSettings(
        cores=frozenset(),
        clocks=Clocks(),
        max_processes=1,
        isolation=NO_ISOLATION,
        folder=folder,
        parent_pid=os.getpid(),
    )


def test_a_killed_worker_is_replaced_and_its_games_are_played_again(here):
    file = here.tournament(matches=12, more="workers = 2\ngames_in_flight = 1\n")
    assert here.referee("tournament", "run", file, "--league", "whole").returncode == 0
    with here.started("tournament", "run", file, "--league", "league") as process:
        read_until(process, 1)
        victim, other = workers(process)
        bots = victim.children()
        victim.kill()
        said, _ = process.communicate()
    assert process.returncode == 0, said
    assert said.count("died; a new one plays its unfinished games again") == 1
    assert "Traceback" not in said
    assert psutil.wait_procs([*bots, other], timeout=10)[1] == []
    assert here.processes() == []
    assert here.run_folders() == []
    assert here.records("league") == here.records("whole")


async def test_loss_of_a_worker_is_charged_to_the_assignment_that_it_played(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "play_games", time.sleep)  # runs in the process of the worker
    lost = []
    async with aclosing(Workers([make_settings(tmp_path)], on_worker_lost=lost.append)) as group:
        await group.submit(0, 0)
        playing, waiting = (asyncio.ensure_future(group.submit(0, 1000)) for _ in range(2))
        await asyncio.sleep(0)
        group._processes[0].kill()
        results = await asyncio.gather(playing, waiting, return_exceptions=True)
        assert [each.was_waiting for each in results] == [False, True]
        assert len(lost) == 1
        await group.submit(0, 0)
        ending = asyncio.get_running_loop().run_in_executor(group._executors[0], os._exit, 1)
        await asyncio.wait([ending])
        with pytest.raises(WorkerLostError) as idle:
            await group.submit(0, 0)
        assert idle.value.was_waiting
        assert isinstance(ending.exception(), BrokenProcessPool)


async def test_workers_are_closed_although_one_dies_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "play_games", time.sleep)  # runs in the process of the worker
    group = Workers([make_settings(tmp_path)], on_worker_lost=print)
    playing = asyncio.ensure_future(group.submit(0, 1000))
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(group.aclose())
    await asyncio.sleep(0)
    group.kill()
    await closing
    with pytest.raises(WorkerLostError):
        await playing


def test_a_bots_socket_does_not_tell_which_worker_plays(here):
    teller = here.bot("teller", "import os, sys; sys.exit(os.environ['REFEREE_ADDRESS'])")
    file = here.tournament(bots=(teller, "greedy"), matches=1, more="workers = 1\n")
    assert here.referee("tournament", "run", file).returncode == 0
    [*_, record] = here.records("league")
    *_, folder, bot, link, socket = record.faults[0].evidence.stderr_tail.strip().split("/")
    assert (bot[:4], link, socket) == ("bot-", "link", "socket")
    assert len(folder) == 8


def test_a_game_that_kills_its_worker_three_times_stops_the_run(here):
    killer = here.bot("killer", KILLS_ITS_WORKER)
    file = here.tournament(bots=(killer, "greedy"), matches=1, more="workers = 1\nlanes = 2\n")
    done = here.referee("tournament", "run", file)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "referee: the worker was lost 3 times in a row while it played cup-"
    )
    assert done.stderr.endswith("; the last time: worker 0 died\n")
    assert done.stderr.count("\n") == 1
    assert "To try again: referee tournament resume cup" in done.stdout
    assert here.left_alone()
    assert here.run_folders() == []


def test_ratings_do_not_depend_on_the_number_of_workers(here):
    tables = set()
    for number in (1, 2, 3):
        file = here.tournament(bots=THREE, matches=2, more=f"workers = {number}\nlanes = 3\n")
        league = f"league{number}"
        assert here.referee("tournament", "run", file, "--league", league).returncode == 0
        done = here.referee("tournament", "standings", "cup", "--json", "--league", league)
        tables.add(done.stdout)
    (table,) = tables
    rows = json.loads(table)
    assert len(rows) == 3
    assert all(row["games"] == 8 for row in rows)


def has_bots(worker):
    return len(worker.children(recursive=True)) >= 2


def test_a_worker_and_its_bots_run_on_the_core_of_the_worker(here):
    cores = sorted(os.sched_getaffinity(0))
    file = here.tournament(matches=50, more="workers = 2\n")
    with here.started("tournament", "run", file) as process:
        while [has_bots(worker) for worker in workers(process)] != [True, True]:
            time.sleep(0.01)
        process.send_signal(signal.SIGSTOP)  # the driver starts no further game, so all bots stay
        seen = workers(process)
        trees = [[worker, *worker.children(recursive=True)] for worker in seen]
        assert len(trees) == 2
        for number, tree in enumerate(trees):
            assert len(tree) >= 1 + 2
            own = {cores[number % len(cores)]}
            assert all(set(each.cpu_affinity()) == own for each in tree)
        process.kill()
        process.wait()
        assert here.left_alone()


# Lanes


def remembering(here):
    return [
        here.bot(name, (BOTS / "remembers.py").read_text(), command=("python3", "bot.py"))
        for name in ("ann", "bob", "cy")
    ]


def test_no_process_meets_a_deal_twice(here):
    file = here.tournament(bots=remembering(here), matches=8, more="workers = 2\n")
    done = here.referee("tournament", "run", file)
    assert done.returncode == 0, done.stderr
    records = here.records("league")
    assert len(records) == 48
    assert [fault for record in records for fault in record.faults] == []


async def test_a_process_that_meets_a_deal_twice_is_detected(here):
    """Check the bots of the test above: play all games in one lane, which no tournament file can ask for."""
    config = load_tournament(here.tournament(bots=remembering(here), matches=2))
    with League.open(here.folder / "league", create=True) as league:
        workshop = Workshop(league.folder, ProcessGroupLauncher(), on_build=print)
        bots = await enter_bots(config, Roster(league, workshop), now_us=0)
        create_tournament(league, config, bots, seed=config.seed, now_us=0)
    with here.database() as database:
        database.execute("UPDATE games SET lane = 0")
    assert here.referee("tournament", "resume").returncode == 0
    faults = [fault for record in here.records("league") for fault in record.faults]
    assert faults
    assert {fault.evidence.exit_code for fault in faults} == {MET_A_DEAL_AGAIN}
    assert all("met this deal before" in fault.evidence.stderr_tail for fault in faults)


def test_a_bot_that_ends_between_games_is_restarted_without_a_fault(here):
    tired = here.bot("tired", TIRED)
    file = here.tournament(bots=(tired, "greedy"), matches=8, more="lanes = 2\nworkers = 2\n")
    assert here.referee("tournament", "run", file).returncode == 0
    assert [record.faults for record in here.records("league")] == [()] * 16


# Several games at once


def test_games_in_flight_have_the_results_of_games_played_one_by_one(here):
    runs = {}
    for capacity in (1, 4):
        bots = []
        for name in ("ann", "bob"):
            program = BATCHES.replace("CAPACITY", str(capacity))
            folder = here.folder / f"{name}{capacity}"
            here.bot(folder.name, program)
            manifest = folder / "bot.toml"
            manifest.write_text(manifest.read_text().replace(folder.name, name, 1))
            assert load_manifest(folder).bot.name == name
            bots.append(folder)
        league = f"league{capacity}"
        file = here.tournament(bots=bots, matches=12, more="games_in_flight = 8\n")
        done = here.referee("tournament", "run", file, "--league", league)
        assert done.returncode == 0, done.stderr
        files = (here.folder / league / "bots").rglob("sizes")
        sizes = [int(size) for file in files for size in file.read_text().split()]
        runs[capacity] = here.records(league), max(sizes)
    records, most_at_once = runs[1]
    assert most_at_once == 1
    assert len(records) == 24
    assert runs[4][0] == records
    assert 2 <= runs[4][1] <= 4


KILLS_ITS_WORKER = """
import os, signal
from referee.sdk import run

def decide(request):
    os.kill(os.getppid(), signal.SIGKILL)
    return request.legal[0]

run(decide)
"""

TIRED = """
import os
from referee.sdk import Bot, run

class Tired(Bot):
    def decide(self, request):
        return request.legal[0]

    def end(self, result):
        os._exit(0)

run(Tired)
"""

BATCHES = """
from referee.sdk import Bot, run

class Batches(Bot):
    def decide(self, request):
        return request.game.random.choice(request.legal)

    def start(self, game):
        self.game = game

    @classmethod
    def decide_batch(cls, requests):
        with open("sizes", "a") as sizes:
            sizes.write(f"{len(requests)}\\n")
        return super().decide_batch(requests)

run(Batches, max_games=CAPACITY)
"""
