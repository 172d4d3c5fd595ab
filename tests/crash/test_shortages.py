"""Descriptors, processes or threads run out, the clock jumps, a worker hangs: no bot is charged, no game is lost."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from real_runs import BIN, let_run, place, read_until

from referee.roster.roster import Roster
from referee.roster.workshop import Workshop
from referee.sandbox import NO_ISOLATION
from referee.sandbox.process_group import ProcessGroupLauncher
from referee.store.league import League
from referee.tournament import workers as worker_processes
from referee.tournament.conduct import Conductor
from referee.tournament.config_reader import load_tournament
from referee.tournament.create import create_tournament, enter_bots
from referee.tournament.workers import Workers, local_workers

pytestmark = [
    pytest.mark.unmeasured,
    pytest.mark.extended("crashes, interrupts and starves the referee"),
]
PIDS = Path("/sys/fs/cgroup/pids")


@pytest.fixture
def here(tmp_path):
    with place(tmp_path) as made:
        yield made


def file(here, matches=2):
    """Write the tournament file of a test."""
    return here.tournament(bots=("random", "greedy"), matches=matches)


def run(here, *words, **more):
    """Run `referee tournament` with these words in a process of its own."""
    return subprocess.run(
        [BIN / "referee", "tournament", *map(str, words)],
        cwd=here.folder,
        env=here.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **more,
    )


def assert_stopped(here, done, says):
    """Assert that a run has stopped with a message, has charged no bot and has left nothing behind."""
    assert done.returncode == 1, done.stdout + done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert "Stopped. To try again: referee tournament resume cup" in done.stdout
    assert here.left_alone()
    assert here.run_folders() == []
    assert all(record.faults == () for record in here.records("league"))


def assert_resumable(here):
    """Resume the run; assert that all games are played without faults."""
    done = here.referee("tournament", "resume", "cup")
    assert done.returncode == 0, done.stderr
    records = here.records("league")
    assert len(records) == 4
    assert all(record.faults == () for record in records)


def test_a_run_without_enough_descriptors_stops_and_can_be_resumed(here):
    def limit_descriptors():
        resource.setrlimit(resource.RLIMIT_NOFILE, (90, 90))

    done = run(here, "run", file(here), preexec_fn=limit_descriptors)
    assert_stopped(here, done, "no room for another process: Too many open files")
    assert_resumable(here)


def test_a_limit_of_very_few_descriptors_is_reported_at_once(here):
    def limit_descriptors():
        resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))

    done = run(here, "run", file(here), preexec_fn=limit_descriptors)
    assert done.returncode == 1
    assert done.stderr == (
        "referee: 20 open files are allowed, but the referee needs at least 64; to raise the limit: ulimit -n 1024\n"
    )
    assert not (here.folder / "league").exists()


@contextmanager
def process_limit(number):
    """Give a function that limits the process that calls it to `number` processes and threads."""
    if os.getuid() != 0:
        threads = sum(
            process.num_threads()
            for process in psutil.process_iter()
            if process.uids().real == os.getuid()
        )
        limit = threads + number, resource.getrlimit(resource.RLIMIT_NPROC)[1]
        yield lambda: resource.setrlimit(resource.RLIMIT_NPROC, limit)
        return
    group = PIDS / f"crash-{os.getpid()}"
    try:
        group.mkdir()
        (group / "pids.max").write_text(str(number))
    except OSError as error:
        pytest.skip(f"root can be limited only by a cgroup, and none can be created: {error}")
    try:
        yield lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        group.rmdir()


def test_a_run_without_enough_processes_stops_and_can_be_resumed(here):
    with process_limit(10) as limit:
        done = run(here, "run", file(here), preexec_fn=limit)
        assert_stopped(here, done, "no room for another process: no thread can be started")
    assert_resumable(here)


def test_bots_that_end_because_threads_are_missing_are_not_charged(here):
    """Allow enough threads for the start of the referee, but not for all of its bots."""
    with process_limit(48) as limit:
        done = run(here, "run", file(here), preexec_fn=limit)
        assert here.left_alone()
    assert done.returncode in {0, 1}, done.stderr
    assert "Traceback" not in done.stderr
    assert_resumable(here)


SLEEP = """
import select, time
time.sleep = lambda seconds: select.select((), (), (), seconds)
"""
"""libfaketime lets each call of clock_nanosleep, and so `time.sleep`, fail with EINVAL if the monotonic clock is real."""


@pytest.mark.toolchain("faketime")
@pytest.mark.parametrize("jump", ["+1h", "-1h"])
def test_a_jump_of_the_wall_clock_changes_no_result(here, jump):
    # libfaketime reads the jump once a second, so the rest must take longer
    file(here, matches=400)
    whole = here.referee("tournament", "run", "cup.toml", "--league", "whole")
    assert whole.returncode == 0, whole.stderr
    now = here.folder / "now"
    now.write_text("+0")
    (here.folder / "sitecustomize.py").write_text(SLEEP)
    environment = here.environment(
        LD_PRELOAD=str(next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))),
        PYTHONPATH=str(here.folder),
        FAKETIME_TIMESTAMP_FILE=str(now),
        FAKETIME_CACHE_DURATION="1",
        FAKETIME_DONT_FAKE_MONOTONIC="1",
    )
    with subprocess.Popen(
        [BIN / "referee", "tournament", "run", "cup.toml"],
        cwd=here.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        read_until(process, 1)  # the first line comes after a tenth of the games
        now.write_text(jump)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    with League.open(here.folder / "league", create=False) as league:
        begun = [row.started_at_us for row in league.games(tournament="cup")]
    assert max(begun) - min(begun) > 3_000_000_000, (
        "the clock did not jump in the middle of the run"
    )
    assert here.records("league") == here.records("whole")


async def test_a_worker_that_hangs_is_killed_and_its_games_are_played_again(here, monkeypatch):
    """Run the tournament in this process, with a hang timeout of 6 seconds."""
    monkeypatch.setattr(
        worker_processes,
        "Workers",
        lambda settings, on_worker_lost: Workers(
            settings, on_worker_lost=on_worker_lost, hang_timeout_s=6
        ),
    )
    config = load_tournament(file(here, matches=4))
    told, hung = [], []

    def stop_once(_game, _record):
        if not hung:
            hung.append(psutil.Process(multiprocessing.active_children()[0].pid))
            hung[0].send_signal(signal.SIGSTOP)

    with League.open(here.folder / "league", create=True) as league, league.lock():
        roster = Roster(league, Workshop(league.folder, ProcessGroupLauncher(), on_build=print))
        bots = await enter_bots(config, roster, now_us=0)
        cup = create_tournament(league, config, bots, seed=config.seed, now_us=0)
        workers = local_workers(cup.config, NO_ISOLATION, told.append)
        conductor = Conductor(
            league, cup, roster, NO_ISOLATION, workers, on_game_stored=stop_once, say=print
        )
        assert await conductor.play_missing_games()
    assert told == ["Worker 0 did not respond and was killed"]
    assert not hung[0].is_running()
    records = here.records("league")
    assert len({record.game_id for record in records}) == 8
    assert all(record.faults == () for record in records)


def test_folders_of_a_check_that_was_killed_are_removed_by_the_next_one(here):
    bot = here.bot("built", "")
    manifest = bot / "bot.toml"
    text = manifest.read_text()
    manifest.write_text(text + '[build]\ncommand = ["sleep", "1000"]\n')
    with here.started("bots", "check", bot) as process:
        while not any(here.temp.glob("*/*/bots/built/*/bot")):
            assert process.poll() is None
            let_run(process, 0.02)
        process.kill()
        process.wait()
    assert here.left_alone()
    assert here.run_folders() != []
    manifest.write_text(text + '[build]\ncommand = ["false"]\n')
    done = here.referee("bots", "check", bot)
    assert done.returncode == 1, done.stderr
    assert here.run_folders() == []
