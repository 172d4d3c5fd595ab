"""A tournament on a cluster has the games and the ratings of a run on one machine."""

from __future__ import annotations

import json
import time

import pytest
from clusters import ROUND_ROBIN, SHAPES, games, run, write_file
from real_runs import PATIENCE_S


@pytest.mark.extended("starts clusters")
@pytest.mark.parametrize(
    ("shape", "workers"),
    [
        ("round robin", 1),
        ("round robin", 2),
        ("round robin", 7),
        ("gauntlet", 2),
        ("suspension", 2),
        ("until", 2),
    ],
)
def test_games_and_ratings_are_those_of_a_local_run(here, play_locally, shape, workers):
    file, where = write_file(here, **SHAPES[shape]), ("--cluster", f"local:{workers}")
    run(here, "run", file, *where)
    expected = play_locally(SHAPES[shape])
    assert games(here, "league") == expected
    if workers == 2 and shape == "round robin":
        run(here, "extend", "cup", "--matches", "2", *where)
        records = here.records("league")
        assert records[: len(expected[0])] == expected[0]
        assert len(records) == len(expected[0]) + 12  # two matches at each of three tables
    assert here.referee("verify", "cup").returncode == 0


@pytest.mark.extended("starts clusters")
def test_status_shows_the_workers_during_and_after_a_run(here):
    def list_hosts():
        shown = here.referee("tournament", "status", "cup", "--json")
        return json.loads(shown.stdout)["hosts"] if shown.returncode == 0 else []

    file = write_file(here, bots=ROUND_ROBIN, matches=150)
    with here.started("tournament", "run", file, "--cluster", "local:2") as driver:
        end = time.monotonic() + PATIENCE_S
        while not any(host["playing"] and host["games"] for host in list_hosts()):
            assert time.monotonic() < end, "no worker plays"
            assert driver.poll() is None, driver.communicate()
            time.sleep(0.3)
        driver.communicate(timeout=300)
    [host] = list_hosts()
    assert (host["host"], host["playing"], host["idle"], host["lost"], host["games"]) == (
        "127.0.0.1",
        0,
        2,
        0,
        900,
    )
    assert host["games_per_s"] > 0
    shown = here.referee("tournament", "status", "cup").stdout
    assert "last run on a cluster: workers" in shown
