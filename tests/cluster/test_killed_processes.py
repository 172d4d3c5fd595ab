"""Whatever is killed during a tournament on a cluster, each game is stored once, and the results are those of one machine."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack

import psutil
import pytest
from clusters import (
    SHAPES,
    free_port,
    games,
    run,
    scheduler,
    wait_for,
    workers,
    write_file,
)
from real_runs import PATIENCE_S


@pytest.mark.extended("crashes, interrupts and starves the referee")
@pytest.mark.parametrize("victim", ["worker", "nanny", "driver", "scheduler"])
def test_only_games_in_play_are_lost_with_a_killed_process(here, play_locally, victim):
    chance = random.Random(victim)
    shape = SHAPES["round robin"] | {"matches": 40}
    file = write_file(here, **shape)
    port = free_port()
    with ExitStack() as stack:
        begun = [stack.enter_context(scheduler(here, port))]
        wait_for(port)
        nannies = [stack.enter_context(workers(here, port)) for _ in range(2)]
        words = ["run", file]
        for _ in range(3):
            with here.started(
                "tournament", *words, "--league", "far", "--cluster", f"127.0.0.1:{port}"
            ) as driver:
                time.sleep(chance.uniform(3, 6))
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
                    nannies[number] = stack.enter_context(workers(here, port))
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
        assert games(here, "far") == play_locally(shape)
        assert here.referee("verify", "cup", "--league", "far").returncode == 0
