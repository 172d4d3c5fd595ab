"""A tournament on a cluster has the games and the ratings of a run on one machine."""

from __future__ import annotations

import pytest
from clusters import SHAPES, games, run, write_file


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
