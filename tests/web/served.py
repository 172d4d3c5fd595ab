"""Run `referee serve` as a process, and store games beside it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace

import httpx

from referee.store.league import League

PATIENCE_S = 60


class Served:
    """A running server."""

    def __init__(self, process, address):
        self.process = process
        self.address = address
        self.seat = process.stdout.readline().split(" (")[0]

    @property
    def port(self):
        return httpx.URL(self.address).port

    def request(self, path, method="GET", **headers):
        return httpx.request(
            method, self.address + path, headers=headers, timeout=PATIENCE_S, trust_env=False
        )

    def shows(self, path, text):
        """Load a page until it has a text; return False if that takes too long. A page may be outdated for a moment."""
        deadline_s = time.monotonic() + PATIENCE_S
        while text not in (page := self.request(path)).text and time.monotonic() < deadline_s:
            assert page.status_code == 200
        return text in page.text

    @contextmanager
    def stream(self):
        """Open a stream of events; give the response and an iterator over the names of its events."""
        address = f"{self.address}events"
        with (
            httpx.Client(trust_env=False, timeout=PATIENCE_S) as client,
            client.stream("GET", address) as response,
        ):
            yield response, _events(response)


def _events(response):
    """Yield the names of events. Raises AssertionError if none comes for `PATIENCE_S`; pings alone do not count."""
    deadline_s = time.monotonic() + PATIENCE_S
    for line in response.iter_lines():
        assert time.monotonic() < deadline_s, "no event came"
        if line.startswith("event: "):
            yield line.removeprefix("event: ")
            deadline_s = time.monotonic() + PATIENCE_S


@contextmanager
def serving(here, *words, port=0):
    """Start a server in the folder of a `Place`; kill it at the end if it has not ended."""
    with here.started("serve", "--port", port, *words) as process:
        yield Served(process, address_in(process))


def address_in(process):
    """Return the address that a server prints when it is ready. Raises AssertionError with its output if it ends instead."""
    line = process.stdout.readline().strip()
    assert line.startswith("http://"), line + process.stdout.read()
    return line


def store_game(here, game_id, league="league", **changes):
    """Store a game outside tournaments: a copy of the first game of the league, with other values for some fields."""
    with League.open(here.folder / league, create=False) as opened:
        record = opened.record(opened.results()[0].game_id)
        opened.add_game(replace(record, game_id=game_id, **changes))
