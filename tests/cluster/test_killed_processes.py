"""Whatever is killed during a tournament on a cluster, each game is stored once, and the results are those of one machine."""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import ExitStack, suppress
from itertools import cycle, islice

import psutil
import pytest
from clusters import (
    ENOUGH_S,
    SHAPES,
    free_port,
    games,
    scheduler,
    wait_for,
    workers,
    write_file,
)

KILLS = 30


class Cluster:
    """A scheduler, two `referee worker` commands with one Dask worker each (their nannies), and a driver that can be started again and again."""

    def __init__(self, here, stack, chance):
        self.here, self.stack, self.chance = here, stack, chance
        self.port = free_port()
        self.where = ("--league", "far", "--cluster", f"127.0.0.1:{self.port}")
        self.scheduler = self.start(scheduler(here, self.port))
        wait_for(self.port)
        self.output = stack.enter_context((here.folder / "workers.txt").open("a"))
        self.nannies = [self.start_nanny() for _ in range(2)]
        self.driver = None
        self.stored = 0
        """How many games were stored when the driver was started."""

    def start(self, process):
        return self.stack.enter_context(process)

    def start_nanny(self):
        return self.start(workers(self.here, self.port, self.output))

    def check_nannies(self):
        """Fail if a `referee worker` command has ended: it waits for the next scheduler."""
        ended = [each.returncode for each in self.nannies if each.poll() is not None]
        assert not ended, (ended, (self.here.folder / "workers.txt").read_text())

    def drive(self, *words):
        """Start the driver, if it is not running."""
        if self.driver is None or self.driver.poll() is not None:
            self.stored = self.count_games()
            self.driver = self.start(self.here.started("tournament", *words, *self.where))

    def count_games(self):
        """Return how many games are stored."""
        if not (self.here.folder / "far" / "league.db").exists():
            return 0
        with suppress(sqlite3.OperationalError), self.here.database("far") as database:
            return database.execute("SELECT count(*) FROM results").fetchone()[0]
        return 0

    def wait_for_games(self):
        """Wait until the driver that runs now has stored a game."""
        end = time.monotonic() + ENOUGH_S
        while self.count_games() == self.stored:
            self.check_nannies()
            assert self.driver.poll() is None, self.driver.stdout.read()
            assert time.monotonic() < end, "no game was stored"
            time.sleep(0.05)

    def wait_for_nannies(self):
        """Wait until each `referee worker` command has reached the scheduler: it ends if its first attempt fails."""
        end = time.monotonic() + ENOUGH_S
        while not all(psutil.Process(each.pid).children() for each in self.nannies):
            self.check_nannies()
            assert time.monotonic() < end, "a command did not reach the scheduler"
            time.sleep(0.05)

    def list_workers(self):
        found = []
        for nanny in self.nannies:
            for child in psutil.Process(nanny.pid).children():
                with suppress(psutil.NoSuchProcess):
                    if "spawn_main" in " ".join(child.cmdline()):
                        found.append(child)
        return found

    def kill_worker(self):
        end = time.monotonic() + ENOUGH_S
        while not (found := self.list_workers()):  # both are just being started
            self.check_nannies()
            assert time.monotonic() < end, "no worker was started"
            time.sleep(0.1)
        self.chance.choice(found).kill()

    def kill_nanny(self):
        number = self.chance.randrange(len(self.nannies))
        self.nannies[number].kill()
        self.nannies[number] = self.start_nanny()

    def kill_scheduler(self):
        """Kill the scheduler while the driver plays: a driver that still starts would wait for the next scheduler."""
        self.wait_for_games()
        self.wait_for_nannies()
        self.scheduler.kill()
        self.scheduler.wait()
        self.scheduler = self.start(scheduler(self.here, self.port))
        wait_for(self.port)
        printed, _ = self.driver.communicate(timeout=ENOUGH_S)
        assert self.driver.returncode == 1, printed
        assert "the connection to the scheduler is lost" in printed

    def kill_driver(self):
        self.driver.kill()
        self.driver.wait()


@pytest.mark.extended("crashes, interrupts and starves the referee")
def test_only_games_in_play_are_lost_with_killed_processes(here, play_locally):
    chance = random.Random(30)
    # many games, few at a time, so that a fast machine too has games left at the last kill
    shape = SHAPES["round robin"] | {"matches": 450, "more": "games_in_flight = 4\n"}
    with ExitStack() as stack:
        cluster = Cluster(here, stack, chance)
        kills = (
            cluster.kill_worker,
            cluster.kill_nanny,
            cluster.kill_scheduler,
            cluster.kill_driver,
        )
        words = ["run", write_file(here, **shape)]
        for kill in islice(cycle(kills), KILLS):
            cluster.drive(*words)
            time.sleep(chance.uniform(1, 3.5))  # too short for all games
            assert cluster.driver.poll() is None, cluster.driver.stdout.read()
            kill()
            if (here.folder / "far" / "league.db").exists():
                words = ["resume", "cup"]
        cluster.drive(*words)
        printed, _ = cluster.driver.communicate(timeout=ENOUGH_S)
        assert cluster.driver.returncode == 0, printed
        assert games(here, "far") == play_locally(shape)
        assert here.referee("verify", "cup", "--league", "far").returncode == 0
