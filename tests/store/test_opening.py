"""Test that a league is created and opened, or refused in one line and left unchanged."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import subprocess
import sys
from dataclasses import replace

import pytest
from records import NAMES, add_bot, bot, filled

from referee.errors import StoreError, UserError, write_error
from referee.store import backends, sqlite
from referee.store.league import League

FILE = "league.db"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def execute(file, *statements):
    connection = sqlite3.connect(file, isolation_level=None)
    answers = [connection.execute(statement).fetchall() for statement in statements]
    connection.close()
    return answers[-1]


def refused(folder, match, *, create=True, error=UserError):
    with pytest.raises(error, match=match) as caught:
        League.open(folder, create=create)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a?mode=memory", "50%20", "e#f", "two words", "ü:@", "-"])
def test_a_folder_may_have_any_name(tmp_path, name):
    folder = tmp_path / name
    with League.open(folder, create=True) as league:
        add_bot(league, bot("ann"))
    assert names(folder) == [FILE]
    with League.open(folder, create=False) as league:
        assert league.bots() == [bot("ann")]


def test_other_users_cannot_read_the_database(tmp_path):
    with League.open(tmp_path, create=True) as league:
        add_bot(league, bot("ann"))
        files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert files == dict.fromkeys((FILE, f"{FILE}-wal", f"{FILE}-shm"), 0o600)


def test_other_users_cannot_hold_the_locks(tmp_path):
    with League.open(tmp_path, create=True) as league, league.lock():
        locks = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("*lock")}
    assert locks == dict.fromkeys(("lock", f"{FILE}.lock"), 0o600)


def test_user_may_let_others_read_the_database(tmp_path):
    League.open(tmp_path, create=True).close()
    (tmp_path / FILE).chmod(0o644)
    with League.open(tmp_path, create=True) as league:
        add_bot(league, bot("ann"))
        assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o644}


def test_readers_do_not_wait_for_the_writer(tmp_path):
    with League.open(tmp_path, create=True) as league:
        add_bot(league, bot("ann"))
        writer = sqlite3.connect(tmp_path / FILE, isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM bots")
        assert league.bots() == [bot("ann")]
        writer.close()
    assert execute(tmp_path / FILE, "PRAGMA journal_mode") == [("wal",)]


def test_another_program_s_database_is_not_touched(tmp_path):
    execute(tmp_path / FILE, "CREATE TABLE recipes (name)")
    before = (tmp_path / FILE).read_bytes()
    refused(tmp_path, r"league\.db: this database has tables, but not those of a league")
    assert (tmp_path / FILE).read_bytes() == before
    assert names(tmp_path) == [FILE]


def test_league_of_a_newer_version_is_refused(tmp_path):
    League.open(tmp_path, create=True).close()
    execute(tmp_path / FILE, "UPDATE alembic_version SET version_num = '9999'")
    refused(
        tmp_path, r"has schema 9999, which this version of the referee does not know", create=False
    )
    assert names(tmp_path) == [FILE]


def test_disk_too_full_for_the_tables_is_reported(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(sqlite, "_PRAGMAS", (*sqlite._PRAGMAS, "max_page_count = 6"))
        refused(tmp_path, r"league\.db: database or disk is full", error=StoreError)
    assert execute(tmp_path / FILE, "SELECT name FROM sqlite_master") == []
    with League.open(tmp_path, create=True) as league:
        assert len(filled(league)) == 24


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_database_locked_during_creation_is_reported(tmp_path, monkeypatch, mode):
    """In the mode WAL, creating the tables fails. In the mode DELETE, the switch to WAL fails."""
    holder = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    holder.execute(f"PRAGMA journal_mode = {mode}")
    holder.execute("BEGIN IMMEDIATE")
    with monkeypatch.context() as patched:
        patched.setattr(sqlite, "_PRAGMAS", ("busy_timeout = 10",))
        patched.setattr(sqlite, "BUSY_MS", 10)
        refused(tmp_path, r"league\.db: database is locked", error=StoreError)
    holder.close()
    assert execute(tmp_path / FILE, "SELECT name FROM sqlite_master") == []
    League.open(tmp_path, create=True).close()


def test_creation_is_retried_until_the_file_is_unlocked(tmp_path, monkeypatch):
    holder = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(sqlite.time, "sleep", lambda _: holder.execute("ROLLBACK"))
    League.open(tmp_path, create=True).close()
    holder.close()
    assert execute(tmp_path / FILE, "PRAGMA journal_mode") == [("wal",)]


def test_folder_in_place_of_the_database_is_refused(tmp_path):
    (tmp_path / FILE).mkdir()
    refused(tmp_path, "unable to open database file")
    refused(tmp_path, "there is no league here", create=False)


@pytest.mark.parametrize("create", [False, True])
def test_league_in_a_folder_that_cannot_be_searched_is_not_called_missing(tmp_path, create):
    folder = tmp_path / ("x" * 300)
    refused(folder, rf"{folder}.*: File name too long", create=create)


def test_read_only_database_refuses_writes_and_can_be_read(tmp_path, monkeypatch):
    with League.open(tmp_path, create=True) as league:
        add_bot(league, bot("ann"))
    monkeypatch.setattr(sqlite, "_PRAGMAS", (*sqlite._PRAGMAS, "query_only = ON"))
    with League.open(tmp_path, create=False) as league:
        with pytest.raises(StoreError, match=r"league\.db: attempt to write a readonly database"):
            add_bot(league, bot("bob"))
        assert league.bots() == [bot("ann")]


def test_lock_file_that_cannot_be_opened_is_reported(tmp_path):
    (tmp_path / "lock").mkdir()
    with (
        League.open(tmp_path, create=True) as league,
        pytest.raises(UserError, match=r"lock: the lock file cannot be opened: Is a directory"),
        league.lock(),
    ):
        pytest.fail("the lock was taken")


def test_file_system_without_locks_is_reported(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(backends.fcntl, "flock", fail)
    with (
        League.open(tmp_path, create=True) as league,
        pytest.raises(
            UserError, match=r"/lock: the lock file cannot be locked: No locks available$"
        ),
        league.lock(),
    ):
        pytest.fail("the lock was taken")


@pytest.mark.parametrize("name", ["lock", "league.db.lock"])
def test_link_in_place_of_a_lock_file_is_refused(tmp_path, name):
    league = tmp_path / "league"
    league.mkdir()
    precious = tmp_path / "precious"
    precious.write_text("my only copy")
    (league / name).symlink_to(precious)
    with (
        League.open(league, create=True) as opened,
        pytest.raises(UserError, match=f"{name}: the lock file cannot be opened: .*symbolic link"),
        opened.lock(),
    ):
        pytest.fail("the lock was taken")
    assert precious.read_text() == "my only copy"


def test_league_on_a_full_disk_can_be_locked(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with League.open(tmp_path, create=True) as league:
        monkeypatch.setattr(backends.os, "write", fail)
        with (
            league.lock(),
            pytest.raises(UserError, match=r"another referee is playing .* \(process unknown\)"),
            league.lock(),
        ):
            pytest.fail("the lock was taken twice")


def test_text_that_is_not_unicode_is_refused(tmp_path, db):
    with League.open(tmp_path, create=True, db=db) as league:
        with pytest.raises(UserError, match=r": '/bots/\\udcff' is not Unicode"):
            add_bot(league, replace(bot("ann"), folder="/bots/\udcff"))
        assert league.bots() == []
        with pytest.raises(UserError, match=r": '\\udcff' is not Unicode"):
            league.record("\udcff")
        with (
            pytest.raises(UserError, match=r": '\\udcff' is not Unicode"),
            league.one_moment(),
        ):
            league.is_deal_played("\udcff")


MAKE = """
import sys
from pathlib import Path
from referee.store import StoredBot
from referee.store.league import League
sys.stdin.readline()
with League.open(Path(sys.argv[1]), create=True, db=sys.argv[3] or None) as league:
    name = sys.argv[2]
    league.add_version(name, lambda _: StoredBot(name, "1.0", "Ada", "python", f"/bots/{name}", name, 0))
"""


def test_two_processes_can_create_the_same_league(tmp_path, db):
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", MAKE, str(tmp_path / "league"), name, db or ""],
            stdin=subprocess.PIPE,
        )
        for name in NAMES[:2]
    ]
    for maker in makers:
        maker.stdin.write(b"\n")
        maker.stdin.flush()
    for maker in makers:
        maker.communicate()
    assert [maker.returncode for maker in makers] == [0, 0]
    with League.open(tmp_path / "league", create=False, db=db) as league:
        assert {row.name for row in league.bots()} == set(NAMES[:2])


def test_disk_full_before_the_first_table_is_reported_in_one_line(tmp_path, monkeypatch):
    def full(_engine):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(sqlite, "_format", full)
    with pytest.raises(StoreError, match=r"league\.db: database or disk is full$"):
        League.open(tmp_path / "league", create=True)


def test_nothing_is_written_to_a_file_that_was_deleted(tmp_path):
    with League.open(tmp_path, create=True) as league:
        add_bot(league, bot("ann"))
        for file in tmp_path.iterdir():
            file.unlink()
        with pytest.raises(StoreError, match=r"league\.db: the file was deleted or replaced"):
            add_bot(league, bot("bob"))


def test_nothing_is_written_to_a_file_that_was_replaced(tmp_path):
    with League.open(tmp_path / "other", create=True) as league:
        add_bot(league, bot("carl"))
    with League.open(tmp_path / "first", create=True) as league:
        add_bot(league, bot("ann"))
        (tmp_path / "other" / FILE).replace(tmp_path / "first" / FILE)
        with pytest.raises(StoreError, match=r"league\.db: the file was deleted or replaced"):
            add_bot(league, bot("bob"))


def test_file_in_place_of_the_folder_is_a_missing_league(tmp_path):
    (tmp_path / "file").touch()
    assert not League.exists_at(tmp_path / "file")


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        *(
            (number, UserError)
            for number in (errno.EROFS, errno.EACCES, errno.ENOENT, errno.EISDIR)
        ),
        *((number, StoreError) for number in (errno.ENOSPC, errno.EIO, errno.EDQUOT)),
    ],
)
def test_file_that_cannot_be_written_is_a_mistake_of_the_user_only_if_its_path_is_wrong(
    number, kind
):
    error = write_error("x", OSError(number, os.strerror(number)))
    assert type(error) is kind
    assert str(error) == f"x: {os.strerror(number)}"
