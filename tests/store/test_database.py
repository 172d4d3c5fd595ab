"""A league that cannot be used says so in one line and stays as it is."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from records import faulty, filled, played
from sqlalchemy import create_engine

from referee.errors import StoreError, UserError
from referee.store import League, database, schema

FILE = "league.db"


@pytest.fixture
def folder(tmp_path):
    """A league with a tournament, closed."""
    with League.open(tmp_path, create=True) as league:
        filled(league)
    return tmp_path


def test_the_migrations_make_the_tables_of_the_schema(folder):
    engine = create_engine(f"sqlite:///{folder / FILE}")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, schema.metadata) == []
    engine.dispose()


def test_the_schema_s_revision_is_the_last_migration():
    config = Config()
    config.set_main_option("script_location", str(Path(database.__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_current_head() == schema.REVISION


def test_no_league_is_made_unless_asked(tmp_path):
    with pytest.raises(UserError, match="there is no league here"):
        League.open(tmp_path / "none", create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_the_folder(tmp_path):
    (tmp_path / "league").write_text("")
    with pytest.raises(UserError, match=r"league: no league can be made here: File exists"):
        League.open(tmp_path / "league", create=True)
    with pytest.raises(UserError, match=r"deep: no league can be made here: Not a directory"):
        League.open(tmp_path / "league" / "deep", create=True)


def test_a_league_of_a_newer_version_is_refused_and_not_touched(folder):
    connection = sqlite3.connect(folder / FILE)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    before = (folder / FILE).read_bytes()
    with pytest.raises(UserError, match=r"newer version .*schema 9999.*knows up to 0003"):
        League.open(folder, create=True)
    assert (folder / FILE).read_bytes() == before


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / FILE).write_text("Dear diary, " * 1000)
    with pytest.raises(UserError, match="file is not a database"):
        League.open(tmp_path, create=True)


def test_a_damaged_record_is_named(folder):
    with League.open(folder, create=False) as league:
        league.add_game(played(league.schedule("cup")[0]))
    connection = sqlite3.connect(folder / FILE)
    connection.execute("UPDATE records SET record = x'00'")
    connection.commit()
    connection.close()
    with (
        League.open(folder, create=False) as league,
        pytest.raises(UserError, match="the record of cup-1 cannot be read"),
    ):
        league.record("cup-1")


def test_a_locked_database_is_told_and_intact(folder, monkeypatch):
    monkeypatch.setattr(database, "_PRAGMAS", ("busy_timeout = 10",))
    holder = sqlite3.connect(folder / FILE, isolation_level=None)
    with League.open(folder, create=False) as league:
        row = league.schedule("cup")[0]
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match=r"league\.db: database is locked"):
            league.add_game(played(row))
        holder.execute("ROLLBACK")
        league.add_game(played(row))
        assert set(league.stored("cup")) == {"cup-1"}
    holder.close()


def test_a_full_disk_is_told_and_nothing_is_lost(folder, monkeypatch):
    with League.open(folder, create=False) as league:
        rows = league.schedule("cup")
        league.add_game(played(rows[0]))
    size = sqlite3.connect(folder / FILE)
    (pages,) = size.execute("PRAGMA page_count").fetchone()
    size.close()
    pragmas = (*database._PRAGMAS, f"max_page_count = {pages}")
    monkeypatch.setattr(database, "_PRAGMAS", pragmas)
    with League.open(folder, create=False) as league:
        with pytest.raises(StoreError, match=r"league\.db: database or disk is full"):
            store_all(league, rows[1:])
        stored = league.stored("cup")
    monkeypatch.undo()
    with League.open(folder, create=False) as league:
        assert league.stored("cup") == stored
        assert "cup-1" in stored
        missing = [row for row in rows if row.game_id not in stored]
        league.add_game(played(missing[0]))
    assert integrity(folder) == "ok"


def test_one_referee_at_a_time(folder):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, stdin=subprocess.PIPE
    )
    assert holder.stdout.readline() == b"locked\n"
    with League.open(folder, create=False) as league:
        with pytest.raises(UserError, match=rf"is playing in this league \(process {holder.pid}\)"):
            take_lock(league)
        holder.communicate(b"\n")
        take_lock(league)


def store_all(league, rows):
    for row in rows:
        league.add_game(faulty(played(row)))


def take_lock(league):
    with league.lock():
        pass


HOLD = """
import sys
from pathlib import Path
from referee.store import League
with League.open(Path(sys.argv[1]), create=False) as league, league.lock():
    print("locked", flush=True)
    sys.stdin.readline()
"""

WRITE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from records import played
from referee.store import League
with League.open(Path(sys.argv[1]), create=False) as league:
    stored = league.stored("cup")
    for row in league.schedule("cup"):
        if row.game_id not in stored:
            league.add_game(played(row))
            print(row.game_id, flush=True)
"""


def test_every_game_that_was_acknowledged_survives_sigkill(folder):
    chance = random.Random(5)
    acknowledged = set()
    for _ in range(5):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITE, str(folder), str(Path(__file__).parent)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(chance.randrange(1, 6)):
            acknowledged.add(writer.stdout.readline().strip())
        os.kill(writer.pid, signal.SIGKILL)
        writer.communicate()
    with League.open(folder, create=False) as league:
        stored = league.stored("cup")
        assert acknowledged - {""} <= set(stored)
        assert len(league.games()) == len(stored)
        for game_id in stored:
            assert league.record(game_id).game_id == game_id
    assert integrity(folder) == "ok"


def integrity(folder: Path) -> str:
    connection = sqlite3.connect(folder / FILE)
    (answer,) = connection.execute("PRAGMA integrity_check").fetchone()
    connection.close()
    return answer


def test_a_league_from_before_there_were_extensions_gets_them(folder):
    connection = sqlite3.connect(folder / FILE)
    connection.execute("DROP TABLE extensions")
    connection.execute("UPDATE alembic_version SET version_num = '0001'")
    connection.commit()
    connection.close()
    with League.open(folder, create=False) as league:
        assert league.extensions("cup") == []
    test_the_migrations_make_the_tables_of_the_schema(folder)
