"""Places for tournaments on clusters, the results of the same tournaments on one machine, and clients without a cluster."""

from __future__ import annotations

import subprocess

import pytest
from clusters import clean_place, games, run, write_file
from fake_client import HERE, FakeClient
from pages import ROOT

from referee.cluster import connection, dask_workers
from referee.cluster.connection import Certificates


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


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """Make the certificates as the page tells."""
    folder = tmp_path_factory.mktemp("tls")
    page = (ROOT / "tournaments/README.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("openssl ")]
    assert len(lines) == 3
    for line in lines:
        subprocess.run(line.split(), cwd=folder, check=True, capture_output=True)
    return Certificates(folder / "authority.pem", folder / "own.pem", folder / "own.key")


@pytest.fixture
def client(monkeypatch):
    """Give a `FakeClient`. The driver watches it all the time."""
    monkeypatch.setattr(connection, "get_versions", lambda _: {"packages": HERE})
    monkeypatch.setattr(dask_workers, "_WATCH_S", 0.005)
    return FakeClient()


@pytest.fixture
def said():
    """Give a list for the sentences that the driver says."""
    return []
