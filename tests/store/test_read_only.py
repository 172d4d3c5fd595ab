"""Test that a league opened for reading only is never changed, and shows what others write meanwhile."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from places import Place
from records import add_bot, bot, filled, played

from referee.errors import StoreError, UserError
from referee.store import GameChoice, schema, sqlite
from referee.store.league import League

FILE = "league.db"
THREADS = 4


@pytest.fixture
def closed(place):
    """Make and close a league with a tournament and a game; return its place."""
    with place.open(create=True) as league:
        league.add_game(played(filled(league)[0]))
    return place


def open_read_only(place: Place) -> League:
    return League.open_read_only(place.folder, db=place.db)


def test_missing_league_is_refused_and_nothing_is_made(place):
    with pytest.raises(UserError, match="there is no league here"):
        open_read_only(place)
    assert not place.folder.exists()


def test_database_without_a_league_is_refused(place):
    if place.db is None:
        place.folder.mkdir()
    place.execute("CREATE TABLE recipes (name text)")
    with pytest.raises(UserError, match="there is no league here"):
        open_read_only(place)


def test_league_of_an_older_version_is_refused_and_not_migrated(closed, monkeypatch):
    stored = schema.REVISION
    monkeypatch.setattr(schema, "REVISION", "9998")
    with pytest.raises(
        UserError,
        match=rf"schema {stored}, and this version .* reads 9998: migrate .* or use the version",
    ) as caught:
        open_read_only(closed)
    assert "\n" not in str(caught.value)
    assert closed.execute("SELECT version_num FROM alembic_version") == [(stored,)]


def test_league_of_an_unknown_version_cannot_be_migrated(closed):
    closed.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(
        UserError,
        match=rf"schema 9999, which this version .* not know \(it knows {schema.REVISION}\): use the",
    ):
        open_read_only(closed)


def test_writing_is_refused(closed):
    with open_read_only(closed) as league:
        bots, row = league.bots(), league.schedule("cup")[1]
        for write in (
            lambda: add_bot(league, bot("eve")),
            lambda: league.add_game(played(row)),
            lambda: league.keep_checkpoint("ratings", b"1"),
            lambda: league.lock().__enter__(),
        ):
            with pytest.raises(StoreError, match="the league is open for reading only"):
                write()
        assert league.bots() == bots
    assert not (closed.folder / "lock").exists()


def test_database_itself_refuses_writes(closed):
    with open_read_only(closed) as league:
        league._database._read_only = False
        if closed.db is None:
            with pytest.raises(StoreError, match="attempt to write a readonly database"):
                add_bot(league, bot("eve"))
        else:
            with (
                pytest.raises(StoreError, match="read-only transaction"),
                league._database.reading() as connection,
            ):
                connection.exec_driver_sql("DELETE FROM checkpoints")
    with closed.open() as league:
        assert bot("eve") not in league.bots()


def test_file_that_this_user_may_only_read_is_not_writable(tmp_path):
    place = Place(tmp_path, None)
    place.open(create=True).close()
    with open_read_only(place) as league:
        league._database._read_only = False  # as if the file had no permission to write
        with pytest.raises(StoreError, match="attempt to write a readonly database"):
            league.check_writable()


def test_check_for_writing_changes_nothing(place):
    with place.open(create=True) as league:
        mark = league.change_mark()
        league.check_writable()
        assert league.change_mark() == mark


def test_reading_leaves_the_file_as_it_was(tmp_path):
    with League.open(tmp_path, create=True) as league:
        filled(league)
    before = (tmp_path / FILE).read_bytes()
    with League.open_read_only(tmp_path) as league:
        assert league.tournament("cup").stored == 0
        league.change_mark()
    assert (tmp_path / FILE).read_bytes() == before


def test_games_that_others_store_meanwhile_are_seen(closed):
    with open_read_only(closed) as reader, closed.open() as writer:
        rows = writer.schedule("cup")
        assert reader.tournament("cup").stored == 1
        writer.add_game(played(rows[1]))
        assert reader.tournament("cup").stored == 2
        writer.close()
        assert reader.tournament("cup").stored == 2
        with closed.open() as again:
            again.add_game(played(rows[2]))
            assert reader.record(rows[2].game_id) == played(rows[2])


def test_several_threads_read_at_once(closed):
    barrier = Barrier(THREADS)

    def read(league):
        """Read ten times; each time all threads are inside a transaction at once."""
        found = []
        for _ in range(10):
            with league._database.reading():
                barrier.wait()
                games, total = league.find_games(GameChoice(), offset=0, limit=5)
                found.append((games[0].summary.game_id, total, league.change_mark()))
        return set(found)

    with open_read_only(closed) as league:
        mark = league.change_mark()
        with ThreadPoolExecutor(THREADS) as threads:
            found = list(threads.map(read, [league] * THREADS))
    assert found == [{("cup-1", 1, mark)}] * THREADS


def test_change_mark_changes_with_each_write_of_another_and_only_then(closed):
    with open_read_only(closed) as reader, closed.open() as writer:
        rows = writer.schedule("cup")
        marks = [reader.change_mark()]
        for row in rows[1:4]:
            reader.results()
            writer.results()
            assert reader.change_mark() == marks[-1]
            writer.add_game(played(row))
            marks.append(reader.change_mark())
        assert len(set(marks)) == len(marks)


def test_change_mark_stays_the_same_inside_one_moment(closed):
    with open_read_only(closed) as reader, closed.open() as writer:
        marks = [reader.change_mark()]
        for name in ("eve", "joe"):
            with reader.one_moment():
                marks.append(reader.change_mark())
                add_bot(writer, bot(name))
                with reader.one_moment():
                    assert reader.change_mark() == marks[-1]
                assert reader.change_mark() == marks[-1]
            marks.append(reader.change_mark())
        assert len(set(marks)) == len(marks) == 5


def test_change_mark_changes_with_a_write_of_the_league_itself(closed):
    with closed.open() as league:
        before = league.change_mark()
        add_bot(league, bot("eve"))
        assert league.change_mark() != before


def test_change_mark_changes_when_the_older_of_two_transactions_ends_last(postgres_url, tmp_path):
    place = Place(tmp_path / "league", postgres_url)
    with place.open(create=True) as league, open_read_only(place) as reader:
        with league._database.writing() as connection:
            connection.exec_driver_sql("INSERT INTO checkpoints VALUES ('old', '')")
            place.execute("INSERT INTO checkpoints VALUES ('new', '')")
            before = reader.change_mark()
        assert reader.checkpoint("old") == b""
        assert reader.change_mark() != before


@pytest.mark.parametrize("is_replaced", [True, False], ids=["replaced", "deleted"])
def test_nothing_is_read_from_a_file_that_was_replaced_or_deleted(tmp_path, is_replaced):
    for name in ("first", "other"):
        League.open(tmp_path / name, create=True).close()
    with League.open_read_only(tmp_path / "first") as league:
        reads = (league.change_mark, league.bots)
        for read in reads:
            read()
        if is_replaced:
            (tmp_path / "other" / FILE).replace(tmp_path / "first" / FILE)
        else:
            (tmp_path / "first" / FILE).unlink()
        for read in reads * 2:
            with pytest.raises(StoreError, match=r"league\.db: the file was deleted or replaced"):
                read()


def test_file_in_a_folder_that_cannot_be_written_is_immutable(tmp_path, monkeypatch):
    with League.open(tmp_path, create=True) as league:
        filled(league)
    monkeypatch.setattr(sqlite.os, "access", lambda _path, mode: mode != os.W_OK)
    with League.open_read_only(tmp_path) as league:
        mark = league.change_mark()
        assert league.tournament("cup").stored == 0
        assert league.change_mark() == mark
        assert sorted(path.name for path in tmp_path.iterdir()) == [FILE]
        with pytest.raises(StoreError, match="reading only"):
            add_bot(league, bot("eve"))
