"""Test that an unusable league is reported in one line and stays unchanged."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from places import Place
from records import add_bot, bot, faulty, filled, played
from sqlalchemy import create_engine, inspect
from sqlalchemy.exc import OperationalError, ProgrammingError

from referee.errors import StoreError, UserError
from referee.store import database, queries, schema, sqlite
from referee.store.league import League

FILE = "league.db"


@pytest.fixture
def folder(tmp_path):
    """Make and close a league with a tournament in an SQLite file; return its folder."""
    with League.open(tmp_path, create=True) as league:
        filled(league)
    return tmp_path


@pytest.fixture
def closed(place):
    """Make and close a league with a tournament; return its place."""
    with place.open(create=True) as league:
        filled(league)
    return place


def test_the_migrations_make_the_tables_and_views_of_the_schema(tmp_path, db):
    League.open(tmp_path, create=True, db=db).close()
    engine = create_engine(db or f"sqlite:///{tmp_path / FILE}")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, schema.metadata) == []
        there = inspect(connection)
        assert {
            name: tuple(column["name"] for column in there.get_columns(name))
            for name in there.get_view_names()
        } == schema.VIEWS
    engine.dispose()


def test_the_schema_s_revision_is_the_last_migration():
    config = Config()
    config.set_main_option("script_location", str(Path(database.__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_current_head() == schema.REVISION


def test_league_is_created_only_on_request(place):
    assert not League.exists_at(place.folder, place.db)
    with pytest.raises(UserError, match="there is no league here"):
        place.open()
    assert not place.folder.exists()
    place.open(create=True).close()
    assert League.exists_at(place.folder, place.db)


def test_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "league").write_text("")
    with pytest.raises(
        UserError, match=r"league: the league folder cannot be created: File exists"
    ):
        League.open(tmp_path / "league", create=True)
    with pytest.raises(
        UserError, match=r"deep: the league folder cannot be created: Not a directory"
    ):
        League.open(tmp_path / "league" / "deep", create=True)


def test_a_league_of_a_newer_version_is_refused_and_not_touched(closed):
    closed.execute("UPDATE alembic_version SET version_num = '9999'")
    before = content(closed)
    with pytest.raises(
        UserError,
        match=rf"schema 9999, which this version .* not know \(it knows {schema.REVISION}\)",
    ):
        closed.open(create=True)
    assert content(closed) == before


def content(place):
    if place.db is None:
        return (place.folder / FILE).read_bytes()
    return place.execute(
        "SELECT table_name, version_num FROM information_schema.tables, alembic_version"
        " WHERE table_schema = 'public' ORDER BY table_name"
    )


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / FILE).write_text("Dear diary, " * 1000)
    with pytest.raises(UserError, match="file is not a database"):
        League.open(tmp_path, create=True)


def test_a_damaged_record_is_named(closed):
    with closed.open() as league:
        league.add_game(played(league.schedule("cup")[0]))
    in_sqlite, in_postgresql = (
        "UPDATE records SET record = x'00'",
        "UPDATE records SET record = '0'",
    )
    closed.execute(in_sqlite if closed.db is None else in_postgresql)
    with (
        closed.open() as league,
        pytest.raises(UserError, match="the record of cup-1 cannot be read"),
    ):
        league.record("cup-1")


def test_locked_database_is_reported_and_unchanged(folder, monkeypatch):
    monkeypatch.setattr(sqlite, "_PRAGMAS", ("busy_timeout = 10",))
    holder = sqlite3.connect(folder / FILE, isolation_level=None)
    with League.open(folder, create=False) as league:
        row = league.schedule("cup")[0]
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match=r"league\.db: database is locked"):
            league.add_game(played(row))
        holder.execute("ROLLBACK")
        league.add_game(played(row))
        assert set(league.forfeits("cup")) == {"cup-1"}
    holder.close()


def test_database_that_is_locked_for_readers_is_no_error_of_the_user(folder, monkeypatch):
    monkeypatch.setattr(sqlite, "_PRAGMAS", ("busy_timeout = 10",))
    holder = sqlite3.connect(folder / FILE, isolation_level=None)
    holder.execute("PRAGMA journal_mode = DELETE")  # with WAL, no lock keeps readers out
    holder.execute("BEGIN EXCLUSIVE")
    for use in (League.exists_at, League.open_read_only, partial(League.open, create=False)):
        with pytest.raises(StoreError, match=r"league\.db: database is locked"):
            use(folder)
    holder.execute("ROLLBACK")
    with League.open(folder, create=False) as league:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match=r"league\.db: database is locked"):
            league.bots()
    holder.close()


@pytest.mark.parametrize(("free", "says"), [(8_192, ": the disk is full"), (10**9, "")])
def test_disk_error_names_a_full_disk(folder, monkeypatch, free, says):
    def fail(*_):
        raise OperationalError("SELECT 1", {}, sqlite3.OperationalError("disk I/O error"))

    with League.open(folder, create=False) as league:
        usage = shutil.disk_usage(folder)._replace(free=free)
        monkeypatch.setattr(sqlite.shutil, "disk_usage", lambda _: usage)
        monkeypatch.setattr(queries, "bots", fail)
        with pytest.raises(StoreError, match=rf"league\.db: disk I/O error{says}$"):
            league.bots()


def test_full_disk_is_reported_and_nothing_is_lost(folder, monkeypatch):
    with League.open(folder, create=False) as league:
        rows = league.schedule("cup")
        league.add_game(played(rows[0]))
    size = sqlite3.connect(folder / FILE)
    (pages,) = size.execute("PRAGMA page_count").fetchone()
    size.close()
    pragmas = (*sqlite._PRAGMAS, f"max_page_count = {pages}")
    monkeypatch.setattr(sqlite, "_PRAGMAS", pragmas)
    with League.open(folder, create=False) as league:
        with pytest.raises(StoreError, match=r"league\.db: database or disk is full"):
            store_all(league, rows[1:])
        stored = league.forfeits("cup")
    monkeypatch.undo()
    with League.open(folder, create=False) as league:
        assert league.forfeits("cup") == stored
        assert "cup-1" in stored
        missing = [row for row in rows if row.game_id not in stored]
        league.add_game(played(missing[0]))
    assert integrity(folder) == "ok"


def test_one_referee_at_a_time(closed):
    with closed.open() as league:
        with playing(closed) as process:
            says = rf"another referee is playing in this league \(process {process.pid}\)"
            with pytest.raises(UserError, match=says):
                take_lock(league)
        take_lock(league)


def test_one_referee_at_a_time_in_a_database_with_two_folders(postgres_url, tmp_path):
    mine, other = Place(tmp_path / "mine", postgres_url), Place(tmp_path / "other", postgres_url)
    other.open(create=True).close()
    with mine.open(create=True) as league:
        with playing(other) as process:
            says = rf"another referee is playing in this league \(process {process.pid} on "
            with pytest.raises(UserError, match=says):
                take_lock(league)
        take_lock(league)
        with playing(other) as process:
            process.kill()
            process.wait()
            take_lock(league)


@pytest.mark.parametrize("db", ["sqlite:///{}/shared.db", None], ids=["file", "league folder"])
def test_one_referee_at_a_time_in_an_sqlite_file_that_two_leagues_use(tmp_path, db):
    """The second league reaches the file through a link."""
    mine = Place(tmp_path / "mine", db and db.format(tmp_path))
    mine.open(create=True).close()
    (tmp_path / "link.db").symlink_to(tmp_path / "shared.db" if db else mine.folder / "league.db")
    other = Place(tmp_path / "other", f"sqlite:///{tmp_path}/link.db")
    with other.open(create=True) as league:
        with playing(mine) as process:
            says = rf"link\.db: another referee is playing in this league \(process {process.pid}\)"
            with pytest.raises(UserError, match=says):
                take_lock(league)
        take_lock(league)


@pytest.mark.parametrize("name", ["league.db", "league.db-wal", "league.db-shm"])
def test_sqlite_file_with_a_hard_link_can_be_read_but_not_written(tmp_path, name):
    mine = Place(tmp_path / "mine", None)
    link = tmp_path / "link"
    with mine.open(create=True) as league:
        add_bot(league, bot("ann"))
        link.hardlink_to(mine.folder / name)
        assert league.bots() == [bot("ann")]
        with pytest.raises(StoreError, match=rf"/{name}: the file has several names"):
            add_bot(league, bot("bob"))
        link.unlink()
        add_bot(league, bot("bob"))


@contextmanager
def playing(place):
    """Let another process hold the lock of the league."""
    command = [sys.executable, "-c", HOLD, *place.words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"locked\n"
        yield holder
        with suppress(BrokenPipeError):
            holder.communicate(b"\n")


def store_all(league, rows):
    for row in rows:
        league.add_game(faulty(played(row)))


def take_lock(league):
    with league.lock():
        pass


HOLD = """
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from referee.store.league import League
with League.open(Path(sys.argv[1]), create=False, db=sys.argv[2] or None) as league, league.lock():
    print("locked", flush=True)
    sys.stdin.readline()
"""

WRITE = """
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from records import played
from referee.store.league import League
with League.open(Path(sys.argv[1]), create=False, db=sys.argv[2] or None) as league:
    stored = league.forfeits("cup")
    for row in league.schedule("cup"):
        if row.game_id not in stored:
            league.add_game(played(row))
            print(row.game_id, flush=True)
"""


@pytest.mark.extended("crashes, interrupts and starves the referee")
def test_acknowledged_games_survive_sigkill(closed):
    chance = random.Random(5)
    acknowledged = set()
    for _ in range(5):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITE, *closed.words, str(Path(__file__).parent)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(chance.randrange(1, 6)):
            acknowledged.add(writer.stdout.readline().strip())
        os.kill(writer.pid, signal.SIGKILL)
        writer.communicate()
    with closed.open() as league:
        stored = league.forfeits("cup")
        assert acknowledged - {""} <= set(stored)
        assert len(league.games()) == len(stored)
        for game_id in stored:
            assert league.record(game_id).game_id == game_id
    if closed.db is None:
        assert integrity(closed.folder) == "ok"


def integrity(folder: Path) -> str:
    connection = sqlite3.connect(folder / FILE)
    (answer,) = connection.execute("PRAGMA integrity_check").fetchone()
    connection.close()
    return answer


def test_lack_of_free_connections_gives_one_line(tmp_path, monkeypatch):
    options = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 0.01}
    monkeypatch.setattr(sqlite, "create_engine", partial(create_engine, **options))
    with (
        League.open(tmp_path, create=True) as league,
        ThreadPoolExecutor(1) as other,
        league.one_moment(),
    ):
        for use in (league.tournaments, league.check_writable):
            with pytest.raises(StoreError, match=r"/league\.db: all connections are in use; try"):
                other.submit(use).result()


def test_missing_right_to_create_tables_is_an_error_of_the_user(tmp_path, monkeypatch):
    def refuse(*_):
        raise ProgrammingError("CREATE TABLE", {}, Exception("permission denied for schema public"))

    monkeypatch.setattr(database, "_migrate", refuse)
    with pytest.raises(UserError, match="permission denied"):
        League.open(tmp_path / "league", create=True)
