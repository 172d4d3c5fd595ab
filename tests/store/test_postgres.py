"""Test leagues on a PostgreSQL server: waiting writers, cut connections, roles and locks."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import replace

import pytest
from places import Place
from postgres_server import execute
from records import add_bot, bot, faulty, filled, played, swap_bots
from sqlalchemy import create_engine, event, make_url, select

from referee.errors import StoreError, UserError
from referee.store import database, schema
from referee.store import postgres as postgres_module
from referee.store.database import write_patiently
from referee.store.league import League


@pytest.fixture
def place(tmp_path, postgres_url):
    return Place(tmp_path / "league", postgres_url)


def test_another_program_s_database_is_not_touched(place):
    place.execute("CREATE TABLE recipes (name text)")
    with pytest.raises(UserError, match="this database has tables, but not those of a league"):
        place.open(create=True)
    with pytest.raises(UserError, match="there is no league here"):
        place.open()
    assert not League.exists_at(place.folder, place.db)
    tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    assert place.execute(tables) == [("recipes",)]


def test_writer_waits_for_another_one_up_to_a_limit(place, monkeypatch):
    monkeypatch.setattr(postgres_module, "BUSY_MS", 20)
    with place.open(create=True) as league:
        rows = filled(league)
        other = create_engine(place.db)
        with other.begin() as holder:
            holder.exec_driver_sql(f"SELECT pg_advisory_xact_lock({postgres_module._WRITER})")
            with pytest.raises(StoreError, match="lock timeout"):
                league.add_game(played(rows[0]))
            assert league.forfeits("cup") == {}
        other.dispose()
        league.add_game(played(rows[0]))
        assert set(league.forfeits("cup")) == {"cup-1"}


def test_read_only_league_waits_for_a_locked_table_up_to_a_limit(place, monkeypatch):
    monkeypatch.setattr(postgres_module, "BUSY_MS", 20)
    place.open(create=True).close()
    with League.open_read_only(place.folder, db=place.db) as league:
        other = create_engine(place.db)
        with other.begin() as holder:
            holder.exec_driver_sql("LOCK TABLE bots IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(StoreError, match="lock timeout"):
                league.bots()
            assert isinstance(league.change_mark(), int)
        other.dispose()
        assert league.bots() == []


def test_a_reader_sees_one_moment(place):
    count = select(schema.bots.c.name)
    with place.open(create=True) as league, place.open() as other:
        with league._database.reading() as connection:
            assert connection.execute(count).all() == []
            add_bot(other, bot("ann"))
            assert connection.execute(count).all() == []
        assert league.bots() == [bot("ann")]


def test_keys_grow_only_by_the_games_that_are_replaced(place):
    with place.open(create=True) as league:
        old = filled(league)
        for number in range(old[-1].match, 0, -1):
            new = [swap_bots([row])[0] if row.match == number else row for row in old]
            league.replace_games("cup", old, new)
            old = new
        assert league.schedule("cup") == old
    assert place.execute("SELECT max(id) FROM games") == [(2 * len(old),)]


def test_a_stored_game_reads_no_matches_of_later_tournaments(place):
    many = "SELECT {}, number, 0, 1 FROM generate_series(101, 3100) AS number"
    with place.open(create=True) as league:
        rows = filled(league, "cup")
        filled(league, "later")
        for tournament in (1, 2):
            place.execute(
                f"INSERT INTO matches (tournament_id, number, stage, round) {many.format(tournament)}"
            )
        place.execute(
            "INSERT INTO games (name, match_id, position, seating, lane)"
            " SELECT 'more-' || id, id, number, 0, 0 FROM matches WHERE number > 100",
            "ANALYZE",
        )
        plans = []

        @event.listens_for(league._database._backend.writing, "before_cursor_execute")
        def explain(_connection, cursor, statement, parameters, _context, _many):
            if "ORDER BY matches" in statement:
                plans.append(cursor.execute(f"EXPLAIN ANALYZE {statement}", parameters).fetchall())

        league.add_game(played(rows[0]))
    [plan] = plans
    assert not any("Rows Removed" in line for (line,) in plan)


def test_a_reader_cannot_write(place):
    with place.open(create=True) as league:
        with (
            pytest.raises(StoreError, match="read-only transaction"),
            league._database.reading() as connection,
        ):
            connection.execute(schema.bots.delete())
        add_bot(league, bot("ann"))


@pytest.mark.parametrize("own", [{}, {"keepalives_idle": "99", "connect_timeout": "7"}])
def test_both_sides_notice_a_silent_network(place, own):
    url = make_url(place.db).update_query_dict(own).render_as_string()
    with Place(place.folder, url).open(create=True) as league:
        backend = league._database._backend
        for engine in (backend.reading, backend.writing):
            with engine.begin() as connection:
                used = connection.connection.dbapi_connection.info.get_parameters()
                network = {
                    "connect_timeout": "10",
                    "keepalives_idle": "10",
                    "keepalives_interval": "5",
                    "keepalives_count": "3",
                    "tcp_user_timeout": "30000",
                }
                assert used.items() >= (network | own).items()
                # a session on a UNIX socket shows no values, but where they come from
                settings = "SELECT name FROM pg_settings WHERE source = 'session' AND name ~ '^tcp'"
                assert set(connection.exec_driver_sql(settings).scalars()) == {
                    "tcp_keepalives_idle",
                    "tcp_keepalives_interval",
                    "tcp_keepalives_count",
                    "tcp_user_timeout",
                }


def test_cut_connection_is_made_again(place, postgres):
    with place.open(create=True) as league:
        add_bot(league, bot("ann"))
        postgres.cut_off()
        assert league.bots() == [bot("ann")]


def test_server_s_limit_for_idle_transactions_ends_no_reading(place):
    place.open(create=True).close()
    database = make_url(place.db).database
    place.execute(f"ALTER DATABASE {database} SET idle_in_transaction_session_timeout = '150ms'")
    with place.open() as league, league.one_moment():
        assert league.bots() == []
        time.sleep(0.3)
        assert league.bots() == []


def test_server_s_limit_for_idle_sessions_lets_no_second_referee_play(place, tmp_path):
    place.open(create=True).close()
    elsewhere = Place(tmp_path / "elsewhere", place.db)
    database = make_url(place.db).database
    place.execute(f"ALTER DATABASE {database} SET idle_session_timeout = '150ms'")
    with place.open() as league, elsewhere.open(create=True) as other, league.lock():
        time.sleep(0.5)
        with (
            pytest.raises(UserError, match="another referee is playing in this league"),
            other.lock(),
        ):
            pass


def test_connection_cut_while_reading_is_no_error_of_the_user(place, postgres):
    def read(league):
        with league.one_moment():
            assert league.bots() == []
            postgres.cut_off()
            league.bots()

    with place.open(create=True) as league, pytest.raises(StoreError, match="terminating"):
        read(league)


def test_missing_database_is_an_error_of_the_user_only_if_it_was_never_open(postgres, tmp_path):
    with postgres.database() as url:
        league = League.open(tmp_path, create=True, db=url)
    with league, pytest.raises(StoreError, match="does not exist"):
        league.bots()
    with pytest.raises(UserError, match="does not exist"):
        League.open(tmp_path, create=True, db=url)


def test_table_that_disappears_while_the_league_is_open_is_no_error_of_the_user(place):
    with place.open(create=True) as league:
        place.execute("DROP TABLE checkpoints")
        with pytest.raises(StoreError, match="does not exist"):
            league.checkpoint("ratings")


def test_connection_cut_while_storing_a_game_stores_nothing(place, postgres):
    with place.open(create=True) as league:
        rows = filled(league)

        def records():
            yield played(rows[0])
            postgres.cut_off()
            yield played(rows[1])

        with pytest.raises(StoreError, match="terminating connection") as caught:
            league.add_games(records())
        assert "\n" not in str(caught.value)
        assert league.forfeits("cup") == {}


OF_ENCODING = "ENCODING '{}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"


def test_a_database_whose_encoding_cannot_store_every_character_is_refused(postgres, tmp_path):
    with postgres.database(OF_ENCODING.format("LATIN1")) as url:
        with pytest.raises(
            UserError, match=r"encoding LATIN1 cannot store every .*: `createdb -E UTF8"
        ):
            League.open(tmp_path, create=True, db=url)
        assert not League.exists_at(tmp_path, url)


def test_nothing_is_played_in_a_league_whose_encoding_cannot_store_every_character(
    postgres, tmp_path, monkeypatch
):
    with postgres.database(OF_ENCODING.format("LATIN1")) as url:
        with monkeypatch.context() as patched:
            patched.setattr(postgres_module, "_ENCODINGS", {"LATIN1"})
            League.open(tmp_path, create=True, db=url).close()
        with League.open(tmp_path, create=False, db=url) as league:
            assert league.bots() == []
            with (
                pytest.raises(UserError, match="encoding LATIN1 cannot store every"),
                league.lock(),
            ):
                pytest.fail("the lock was taken")


def test_a_database_without_an_encoding_keeps_names(postgres, tmp_path):
    with (
        postgres.database(OF_ENCODING.format("SQL_ASCII")) as url,
        League.open(tmp_path, create=True, db=url) as league,
    ):
        named = replace(bot("ann"), author="Zoë → 💥", check_report=None)
        add_bot(league, named)
        assert league.bots() == [named]


def test_read_only_role_can_read_and_is_refused_writes(place):
    with place.open(create=True) as league:
        rows = filled(league)
        league.add_game(faulty(played(rows[0])))
    execute(
        place.db,
        "DROP ROLE IF EXISTS guest",
        "CREATE ROLE guest LOGIN",
    )
    guest = Place(place.folder, place.db.replace("postgres@", "guest@"))
    with pytest.raises(UserError, match="permission denied"):
        guest.open()
    place.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest")
    with guest.open() as league:
        assert set(league.forfeits("cup")) == {"cup-1"}
        for write in (lambda: league.add_game(played(rows[1])), league.check_writable):
            with pytest.raises(StoreError, match="permission denied"):
                write()
        place.execute("REVOKE SELECT ON bots FROM guest")
        with pytest.raises(StoreError, match="permission denied"):
            league.bots()
    execute(place.db, "DROP OWNED BY guest", "DROP ROLE guest")


def test_patient_write_raises_the_error_of_a_missing_right_at_once(place, monkeypatch):
    monkeypatch.setattr(database, "_TRY_S", 0.0)
    with place.open(create=True) as league:
        record = replace(played(filled(league)[0]), game_id="play-1")
    place.execute(
        "DROP ROLE IF EXISTS guest",
        "CREATE ROLE guest LOGIN",
        "GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO guest",
    )
    tries = []
    with Place(place.folder, place.db.replace("postgres@", "guest@")).open() as league:

        def write():
            tries.append(1)
            league.add_game_once(record)

        with pytest.raises(StoreError, match="permission denied for sequence games_id_seq"):
            write_patiently(write)
    assert len(tries) == 1
    place.execute("DROP OWNED BY guest", "DROP ROLE guest")


def test_lock_is_renewed_after_a_cut_connection(place, postgres):
    with place.open(create=True) as league:
        rows = filled(league)
        with league.lock():
            postgres.cut_off()
            league.add_game(played(rows[0]))
        with league.lock():
            assert set(league.forfeits("cup")) == {"cup-1"}


def break_this_side(connection):
    """Break a connection so that the server does not notice it, as a firewall can."""
    here, there = socket.socketpair()
    there.close()
    descriptor = connection.connection.dbapi_connection.fileno()
    kept = socket.socket(fileno=os.dup(descriptor))
    os.dup2(here.fileno(), descriptor)
    here.close()
    return kept


def test_lock_is_renewed_if_the_server_still_has_the_old_session(place):
    other = Place(place.folder.with_name("other"), place.db)
    with place.open(create=True) as league, other.open(create=True) as beside:
        rows = filled(league)
        with league.lock(), break_this_side(league._database._backend._holder.connection):
            league.add_game(played(rows[0]))
            with pytest.raises(UserError, match="another referee is playing"), beside.lock():
                pytest.fail("there were two referees")
        assert set(league.forfeits("cup")) == {"cup-1"}


def test_renewed_lock_ends_no_session_of_another_referee(place, postgres):
    other = Place(place.folder.with_name("other"), place.db)
    with place.open(create=True) as league, other.open(create=True) as beside:
        rows = filled(league)
        with league.lock():
            postgres.cut_off()
            with beside.lock():
                sessions = [each._database._backend._holder.session for each in (league, beside)]
                sessions[0]["pid"] = sessions[1]["pid"]  # the server may use a number again
                with pytest.raises(UserError, match="another referee is playing"):
                    league.add_game(played(rows[0]))


def test_lost_lock_is_taken_again_before_any_write(place, postgres):
    with place.open(create=True) as league:
        rows = filled(league)
        with league.lock():
            postgres.cut_off()
            league.add_game(played(rows[0]))
            other = Place(place.folder.with_name("other"), place.db)
            with (
                other.open(create=True) as beside,
                pytest.raises(UserError, match="another referee is playing in this league"),
                beside.lock(),
            ):
                pytest.fail("there were two referees")


def test_referee_whose_host_name_is_not_utf_8_takes_the_lock(place, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "odd\udcff")
    other = Place(place.folder.with_name("other"), place.db)
    with place.open(create=True) as league, other.open(create=True) as beside:
        says = rf"\(process {os.getpid()} on odd\?\)"
        with league.lock(), pytest.raises(UserError, match=says), beside.lock():
            pytest.fail("there were two referees")


def test_write_is_refused_if_another_referee_took_the_lost_lock(place, postgres):
    other = Place(place.folder.with_name("other"), place.db)
    with place.open(create=True) as league, other.open(create=True) as beside:
        rows = filled(league)
        with league.lock():
            postgres.cut_off()
            with beside.lock():
                with pytest.raises(UserError, match=r"another referee is playing .*\(process "):
                    league.add_game(played(rows[0]))
                beside.add_game(played(rows[1]))
            league.add_game(played(rows[2]))
            assert set(league.forfeits("cup")) == {"cup-2", "cup-3"}
