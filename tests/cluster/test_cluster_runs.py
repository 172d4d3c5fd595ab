"""A tournament on a cluster has the games and the ratings of a run on one machine."""

from __future__ import annotations

import pytest
from clusters import SHAPES, clean_place, games, run, write_file


@pytest.fixture
def here(tmp_path):
    with clean_place(tmp_path) as made:
        yield made


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
