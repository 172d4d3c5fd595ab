"""Test the server as a process: its pages, its streams, its end, and that it writes nothing."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import time
from contextlib import ExitStack

import pytest
import uvicorn
from real_runs import place
from served import serving, store_game

from referee.errors import StoreError
from referee.web.problems import LOG, UVICORN_LOG, explain
from referee.web.serve import _Server

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SOON_S = 10
"""An event that should come within two seconds comes within this time on a busy machine too."""


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Return a place with a league in which a short tournament was played."""
    with ExitStack() as stack, place(tmp_path_factory.mktemp("serve"), apart=True) as made:
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
        stack.callback(signal.signal, signal.SIGHUP, before)
        done = made.referee("tournament", "run", made.tournament(matches=1))
        assert done.returncode == 0, done.stderr
        yield made


@pytest.fixture(scope="module")
def served(here):
    with serving(here) as started:
        yield started


def contents(folder):
    """Return the content of each file; without the two files that SQLite keeps beside an open database."""
    return {
        path: path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if not path.name.endswith(("-wal", "-shm"))
    }


def test_server_prints_its_addresses_and_shows_pages(served):
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", served.address)
    assert served.seat.startswith(f"{served.address}sit/")
    for path, text in (("", "cup"), ("games", "cup-1")):
        page = served.request(path)
        assert page.status_code == 200
        assert text in page.text


def test_all_responses_have_a_strict_policy(served):
    asset = re.search(r'src="/(static/[^"]+)"', served.request("").text)[1]
    responses = [
        served.request(""),
        served.request(asset),
        served.request("nowhere"),
        served.request("", method="POST"),
        served.request("", host="evil.test"),
    ]
    with served.stream() as (stream, _):
        responses.append(stream)
    assert [each.status_code for each in responses] == [200, 200, 404, 405, 400, 200]
    assert [
        "script-src 'self'" in each.headers["content-security-policy"] for each in responses
    ] == [True] * 6


@pytest.mark.extended("starts more servers")
def test_stream_is_not_compressed_and_not_kept(served):
    with served.stream() as (stream, events):
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-store"
        assert "content-encoding" not in stream.headers
        assert next(events) == "change"


def test_game_that_another_process_stores_is_announced_and_shown(served, here):
    with served.stream() as (_, events):
        assert next(events) == "change"
        began_s = time.monotonic()
        store_game(here, "announced")
        assert next(events) == "change"
        assert time.monotonic() - began_s < SOON_S
    assert served.shows("games", "announced")


@pytest.mark.extended("starts more servers")
def test_viewing_writes_nothing(here):
    before = contents(here.folder / "league")
    with serving(here) as server:
        for path in ("", "games", "nowhere"):
            server.request(path)
        with server.stream() as (_, events):
            next(events)
    assert contents(here.folder / "league") == before


@pytest.mark.extended("starts more servers")
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_signal_ends_a_server_with_an_open_stream(here, number):
    with serving(here) as server, server.stream() as (_, events):
        next(events)
        server.process.send_signal(number)
        assert server.process.wait(SOON_S) == 130
        assert server.process.stdout.read() == ""


def test_second_sigint_ends_the_process_at_once(monkeypatch):
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    server = _Server(uvicorn.Config(None), None, None, print, 130)
    server.handle_exit(signal.SIGINT, None)
    assert ended == []
    server.handle_exit(signal.SIGINT, None)
    assert ended == [130]


def test_signal_silences_uvicorn_but_not_the_errors_of_the_database(monkeypatch, capsys):
    monkeypatch.setattr(os, "_exit", None)
    _Server(uvicorn.Config(None), None, None, print, 130).handle_exit(signal.SIGTERM, None)
    try:
        explain(None, StoreError("the disk is full"))
        UVICORN_LOG.error("a response was given up")
    finally:
        for log in (LOG, UVICORN_LOG):
            log.setLevel(logging.NOTSET)
    printed = capsys.readouterr().err
    assert "the disk is full" in printed
    assert "given up" not in printed


@pytest.mark.extended("starts more servers")
def test_port_in_use_is_refused(here, served):
    done = here.referee("serve", "--port", served.port)
    assert done.returncode == 2
    assert done.stderr == (
        f"referee: --port: another program uses port {served.port}; choose another port, or 0 for a free one\n"
    )


@pytest.mark.extended("starts more servers")
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--host", "nowhere.invalid"], "--host: 'nowhere.invalid' is not a name or address"),
        (["--host", "192.0.2.1"], "--host: '192.0.2.1' is not a name or address"),
        (["--host", ""], "--host: the name or address is missing"),
        (["--league", "nothing"], "nothing: there is no league here"),
    ],
)
def test_wrong_option_is_refused_in_one_line(here, words, text):
    done = here.referee("serve", "--port", "0", *words)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert text in line
    assert not (here.folder / "nothing").exists()


@pytest.mark.extended("starts more servers")
def test_host_that_others_reach_prints_a_warning(here):
    with here.started("serve", "--port", "0", "--host", "0") as process:
        lines = [process.stdout.readline() for _ in range(3)]
    assert "everybody who reaches this machine can read the league" in lines[0]
    assert lines[1].startswith("http://0.0.0.0:")
    assert lines[2].startswith(f"{lines[1].strip()}sit/")


@pytest.mark.extended("starts more servers")
def test_server_listens_at_ipv6(here):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with serving(here, "--host", "::1") as server:
        assert server.address.startswith("http://[::1]:")
        assert server.request("").status_code == 200
