"""A tournament on a cluster has the games and ratings of a run on one machine, whatever is killed."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest
from real_runs import BIN, PATIENCE_S, place

ROUND_ROBIN = ("random", "greedy", "bait")
SHAPES = {
    "round robin": {"bots": ROUND_ROBIN, "matches": 6},
    "suspension": {"bots": (*ROUND_ROBIN, "crashes"), "matches": 4},
    "until": {"bots": ("random", "greedy"), "matches": 30, "more": "until = {confidence = 0.9}\n"},
}
CRASH = "import os\nos._exit(3)\n"


@pytest.fixture
def here(tmp_path):
    with place(tmp_path, apart=True) as made:
        yield made
        assert made.processes() == []
        assert made.run_folders() == []


def write_file(here, *, bots, matches, more=""):
    names = [here.bot("crashes", CRASH) if name == "crashes" else name for name in bots]
    return here.tournament(bots=names, matches=matches, more=f"lanes = 7\n{more}")


def games(here, league):
    """Return the games and the ratings of a league, without times."""
    shown = here.referee("ratings", "--json", "--league", league)
    assert shown.returncode == 0, shown.stderr
    return here.records(league), shown.stdout


def run(here, *words, code=0):
    done = here.referee("tournament", *words)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.mark.extended("starts clusters")
@pytest.mark.parametrize(
    ("shape", "workers"),
    [("round robin", 1), ("round robin", 2), ("round robin", 7), ("suspension", 2), ("until", 2)],
)
def test_games_and_ratings_are_those_of_a_local_run(here, shape, workers):
    file = write_file(here, **SHAPES[shape])
    run(here, "run", file, "--league", "local")
    run(here, "run", file, "--league", "far", "--cluster", f"local:{workers}")
    if workers == 2 and shape == "round robin":
        for league, where in (("local", ()), ("far", ("--cluster", f"local:{workers}"))):
            run(here, "extend", "cup", "--matches", "2", "--league", league, *where)
        local, far = (here.records(league) for league in ("local", "far"))
        assert len(far) == len(local)  # the deals of an extension are new ones
        local, far = (records[:18] for records in (local, far))
        assert far == local
    else:
        assert games(here, "far") == games(here, "local")
    assert here.referee("verify", "cup", "--league", "far").returncode == 0


@contextmanager
def process(here, *words):
    """Start a program of the cluster; end it and what it has started."""
    started = subprocess.Popen(
        [str(word) for word in words],
        cwd=here.folder,
        env=here.environment(XDG_CACHE_HOME=here.folder, DASK_TEMPORARY_DIRECTORY=here.folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield started
    finally:
        started.terminate()
        started.wait(PATIENCE_S)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def scheduler(here, port, *more):
    dask = Path(sys.executable).with_name("dask")
    words = ("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard", "--no-show")
    return process(here, dask, *words, *more)


def wait_for(port):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("the scheduler does not listen")


def find(here, *words):
    """Return the processes of this test whose command line has one of the words."""
    return [
        each for each in here.processes() if any(word in " ".join(each.cmdline()) for word in words)
    ]


@pytest.mark.extended("crashes, interrupts and starves the referee")
@pytest.mark.parametrize("victim", ["worker", "nanny", "driver", "scheduler"])
def test_only_games_in_play_are_lost_with_a_killed_process(here, victim):
    chance = random.Random(victim)
    file = write_file(here, **SHAPES["round robin"] | {"matches": 40})
    run(here, "run", file, "--league", "local")
    port = free_port()
    with ExitStack() as stack:
        begun = [stack.enter_context(scheduler(here, port))]
        wait_for(port)
        nannies = [
            stack.enter_context(
                process(here, BIN / "referee", "worker", f"127.0.0.1:{port}", "--cores", 1)
            )
            for _ in range(2)
        ]
        words = ["run", file]
        for _ in range(4):
            with here.started(
                "tournament", *words, "--league", "far", "--cluster", f"127.0.0.1:{port}"
            ) as driver:
                time.sleep(chance.uniform(4, 8))
                if victim == "worker":
                    children = [
                        each for nanny in nannies for each in psutil.Process(nanny.pid).children()
                    ]
                    chance.choice(
                        [each for each in children if "spawn_main" in " ".join(each.cmdline())]
                    ).kill()
                elif victim == "nanny":
                    number = chance.randrange(2)
                    nannies[number].kill()
                    nannies[number] = stack.enter_context(
                        process(here, BIN / "referee", "worker", f"127.0.0.1:{port}", "--cores", 1)
                    )
                elif victim == "scheduler":
                    begun[-1].kill()
                    begun[-1].wait()
                    begun.append(stack.enter_context(scheduler(here, port)))
                    wait_for(port)
                else:
                    driver.kill()
                if victim in {"scheduler", "driver"}:
                    assert driver.wait(PATIENCE_S) != 0
                elif driver.wait(PATIENCE_S) == 0:
                    break
            words = ["resume", "cup"]
        run(here, "resume", "cup", "--league", "far", "--cluster", f"127.0.0.1:{port}")
        assert games(here, "far") == games(here, "local")
        assert here.referee("verify", "cup", "--league", "far").returncode == 0
