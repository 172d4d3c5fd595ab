"""A full disk, a locked database or a read-only league gives one line of error, and no game is lost."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import httpx
import pytest
from battered import integrity
from mounts import DISK, READ_ONLY, mounted
from real_runs import PATIENCE_S, place, read_until

pytestmark = [
    pytest.mark.unmeasured,
    pytest.mark.extended("crashes, interrupts and starves the referee"),
]
READING = [
    ("tournament", "status"),
    ("ratings", "--json"),
    ("verify",),
]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    with place(tmp_path_factory.mktemp("played")) as here:
        done = here.referee("tournament", "run", file(here))
        assert done.returncode == 0, done.stderr
        yield here


@pytest.fixture
def here(tmp_path):
    with place(tmp_path) as made:
        yield made


def file(here, matches=3):
    return here.tournament(bots=("random", "greedy"), matches=matches, more="games_in_flight = 1\n")


def assert_failed(done, code, says):
    """Assert that a command has failed with this exit code and with one line that has this text."""
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1
    assert says in done.stderr


def test_a_read_only_league_can_be_read_but_not_written(here, played):
    league = here.folder / "a league?mode=rw#1%20"
    shutil.copytree(played.folder / "league", league)
    with mounted(here, READ_ONLY, league) as inside:
        for command in READING:
            done = inside.referee(*command, "--league", league)
            assert done.returncode == 0, done.stderr
        assert_failed(
            inside.referee("tournament", "run", file(here), "--league", league),
            2,
            "the league folder is not writable",
        )
        assert_failed(
            inside.referee("tournament", "extend", "cup", "--matches", "1", "--league", league),
            2,
            "the lock file cannot be opened: Read-only file system",
        )
        assert_failed(
            inside.referee("bots", "retire", "random", "--league", league),
            1,
            "attempt to write a readonly database",
        )


def test_a_read_only_league_can_be_viewed(here, played):
    league = here.folder / "league"
    shutil.copytree(played.folder / "league", league)
    before = sorted(league.rglob("*"))
    with (
        mounted(here, READ_ONLY, league) as inside,
        inside.started("serve", "--port", "0", "--league", league) as process,
    ):
        address = process.stdout.readline().strip()
        pages = [
            httpx.get(address + path, timeout=PATIENCE_S, trust_env=False)
            for path in ("", "games", "tournaments/cup")
        ]
    assert [page.status_code for page in pages] == [200, 200, 200]
    assert "cup-1" in pages[1].text
    assert sorted(league.rglob("*")) == before


def test_a_read_only_league_has_all_games_after_a_kill(here):
    with here.started("tournament", "run", file(here, matches=40)) as process:
        read_until(process, 4)
        process.kill()
        process.wait()
        assert here.left_alone()
    league = here.folder / "league"
    assert (league / "league.db-wal").stat().st_size > 0
    with mounted(here, READ_ONLY, league) as inside:
        done = inside.referee("tournament", "standings", "cup", "--json")
        assert done.returncode == 0, done.stderr
    assert here.referee("tournament", "standings", "cup", "--json").stdout == done.stdout


def test_a_run_on_a_full_disk_stops_and_can_be_resumed_with_more_space(here):
    league = here.folder / "league"
    league.mkdir()
    with mounted(here, DISK, league, "768k") as inside:
        done = inside.referee("tournament", "run", file(here, matches=20))
        assert_failed(done, 1, "league.db: database or disk is full")
        assert "Stopped. To try again: referee tournament resume cup" in done.stdout
        again = inside.referee("tournament", "resume", "cup")
        assert_failed(again, 1, "database or disk is full")
        kept = inside.referee("game", "list", "--json", "--limit", "1000")
        assert kept.returncode == 0, kept.stderr
        assert integrity(str(inside.root) + str(league / "league.db")) == "ok"
        assert inside.run("mount", "-o", "remount,size=64m", league).returncode == 0
        done = inside.referee("tournament", "resume", "cup")
        assert done.returncode == 0, done.stderr
        assert "of which" in done.stdout
        assert inside.referee("verify").returncode == 0
    assert here.run_folders() == []


def test_a_report_or_an_archive_that_does_not_fit_on_the_disk_leaves_nothing(here, played):
    shutil.copytree(played.folder / "league", here.folder / "league")
    small = here.folder / "small"
    small.mkdir()
    with mounted(here, DISK, small, "4k") as inside:
        for words in (("report", "cup"), ("tournament", "export", "cup")):
            done = inside.referee(*words, "--output", small / "new")
            assert_failed(done, 1, "small/new")
            assert_failed(done, 1, "No space left on device")
        assert inside.run("ls", "-A", small).stdout == ""


def test_a_database_that_another_program_has_locked_gives_one_line(here, played):
    shutil.copytree(played.folder / "league", here.folder / "league")
    database = here.folder / "league" / "league.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        done = here.referee("tournament", "extend", "cup", "--matches", "1")
        assert_failed(done, 1, "league.db: database is locked")
        holder.execute("ROLLBACK")
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")  # keeps readers out, too
        holder.execute("BEGIN EXCLUSIVE")
        for words in (("tournament", "status"), ("tournament", "resume", "cup")):
            assert_failed(here.referee(*words), 1, "league.db: database is locked")
        holder.execute("ROLLBACK")
    assert integrity(database) == "ok"
    done = here.referee("tournament", "extend", "cup", "--matches", "1")
    assert done.returncode == 0, done.stderr
    assert len(here.records("league")) == 8


def test_a_database_that_is_locked_during_a_run_stops_the_run(here):
    with here.started("tournament", "run", file(here, matches=200)) as process:
        read_until(process, 1)
        database = here.folder / "league" / "league.db"
        with closing(sqlite3.connect(database, isolation_level=None, timeout=20)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            said, _ = process.communicate()
            holder.execute("ROLLBACK")
    assert process.returncode == 1, said
    assert "league.db: database is locked" in said
    assert "Stopped. To try again: referee tournament resume cup" in said
    assert "Traceback" not in said
    assert here.left_alone()
    assert here.run_folders() == []
    assert integrity(database) == "ok"
