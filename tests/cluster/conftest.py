"""Places for tournaments on clusters, and the results of the same tournaments on one machine."""

from __future__ import annotations

import pytest
from clusters import clean_place, games, run, write_file


@pytest.fixture
def here(tmp_path):
    """Give a `Place` in which no process and no folder may be left."""
    with clean_place(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def play_locally(tmp_path_factory):
    """Return a function that plays a tournament on this machine, once for each shape, and returns its `games`."""
    results = {}

    def play(shape):
        key = repr(shape)
        if key not in results:
            with clean_place(tmp_path_factory.mktemp("local")) as place:
                run(place, "run", write_file(place, **shape), "--league", "league")
                results[key] = games(place, "league")
        return results[key]

    return play
