"""A tournament that is killed or interrupted at random moments ends with the records of an uninterrupted one.

Each test strikes 4 times, or REFEREE_BLOWS times: 30 before a release. REFEREE_SEED repeats the moments of a
failure.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import replace

import psutil
import pytest
from battered import GAMES, SEED, Battered, tournament
from postgres_server import execute
from real_runs import PATIENCE_S, let_run, place, read_until

from referee.cli.options import INTERRUPTED

pytestmark = [
    pytest.mark.unmeasured,
    pytest.mark.extended("crashes, interrupts and starves the referee"),
]
BLOWS = int(os.environ.get("REFEREE_BLOWS") or 4)
OTHER_CONNECTIONS = """SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""
"""Selects the process of the server for each connection to a database, except for the connection that asks."""
INTERPRETER_ENDING = -signal.SIGINT
"""The exit code if the interpreter has given up its signal handlers already; a shell shows it as 130, too."""


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Return the records of an uninterrupted run, and its duration in seconds."""
    with place(tmp_path_factory.mktemp("whole")) as here:
        file = tournament(here)
        began = time.monotonic()
        done = here.referee("tournament", "run", file)
        span_s = time.monotonic() - began
        assert done.returncode == 0, done.stderr
        assert here.run_folders() == []
        records = here.records("league")
    assert len({record.game_id for record in records}) == GAMES
    assert any(record.faults for record in records), "the moody bot never crashed"
    return records, span_s


@pytest.fixture
def battered(tmp_path, uninterrupted):
    with place(tmp_path) as here:
        yield Battered(here, tournament(here), *uninterrupted)


@pytest.fixture
def battered_on_postgres(tmp_path, uninterrupted, postgres):
    with ExitStack() as databases, place(tmp_path) as here:

        def new():
            return databases.enter_context(postgres.database())

        yield Battered(here, tournament(here), *uninterrupted, db=new)


def kill(process):
    process.kill()


def kill_until(battered, blows):
    folders = 0
    while battered.blows < blows or not battered.between:
        said, code = battered.strike(kill)
        assert code in {-signal.SIGKILL, 0}, said
        folders = len(battered.here.run_folders())
        assert folders <= 1, "the folder of an earlier run is still there"
    battered.finish()
    sys.stdout.write(f"{battered}\n")
    assert battered.ended
    assert battered.between


def test_kills_at_random_moments_lose_no_game(battered):
    kill_until(battered, BLOWS)


def test_kills_at_random_moments_lose_no_game_on_a_database_server(battered_on_postgres):
    kill_until(battered_on_postgres, BLOWS)


def kill_during_play(battered, kill):
    while battered.blows < BLOWS:
        kill(battered)
    battered.finish()
    sys.stdout.write(f"{battered}\n")
    assert battered.ended


VICTIMS = [Battered.kill_driver_during_play, Battered.kill_workers_during_play]


@pytest.mark.parametrize("kill", VICTIMS)
def test_kills_during_play_lose_no_game(battered, kill):
    kill_during_play(battered, kill)


@pytest.mark.parametrize("kill", VICTIMS)
def test_kills_during_play_lose_no_game_on_a_database_server(battered_on_postgres, kill):
    kill_during_play(battered_on_postgres, kill)


@pytest.mark.isolation("full")
@pytest.mark.parametrize("kill", VICTIMS)
def test_kills_during_play_with_isolation_lose_no_game(tmp_path, uninterrupted, kill):
    records, span_s = uninterrupted
    with place(tmp_path) as here:
        file = tournament(here, "full")
        isolated = [replace(record, isolation="full") for record in records]
        kill_during_play(Battered(here, file, isolated, span_s), kill)


def test_second_interrupt_ends_a_run_whose_database_does_not_answer(tmp_path, postgres):
    with postgres.database() as url, place(tmp_path) as here:
        file = tournament(here)
        with here.started("tournament", "run", file, "--db", url) as process:
            read_until(process, 1)
            servers = [psutil.Process(pid) for (pid,) in execute(url, OTHER_CONNECTIONS)]
            assert servers
            for server in servers:
                server.suspend()
            try:
                for _ in range(2):
                    interrupt(process)
                    let_run(process, 1)
                said, _ = process.communicate(timeout=PATIENCE_S)
                assert process.returncode == INTERRUPTED
                assert "\nreferee: stopped without waiting any longer; " in said
            finally:
                for server in servers:
                    server.resume()
        assert here.left_alone()
        done = here.referee("tournament", "resume", "cup", "--db", url)
        assert done.returncode == 0, done.stderr
        assert len(here.records("league", db=url)) == GAMES


def interrupt(process):
    with suppress(ProcessLookupError):  # the process has just ended
        os.killpg(process.pid, signal.SIGINT)


@pytest.mark.parametrize("times", [1, 2])
def test_interrupts_at_random_moments_lose_no_game(battered, times):
    def blow(process):
        interrupt(process)
        if times == 2:
            let_run(process, battered.chance.uniform(0, 0.3))
            interrupt(process)

    while battered.blows < BLOWS:
        said, code = battered.strike(blow)
        assert code in {130, 0, INTERPRETER_ENDING}, said
        assert "Traceback" not in said
        assert "Exception ignored" not in said
        assert "died" not in said
        assert battered.here.run_folders() == [], SEED
    battered.finish()
    sys.stdout.write(f"{battered}\n")
