"""Commands that read a league beside a running tournament see no half-stored game, and none plays with an old schedule."""

import json
from contextlib import contextmanager

import pytest
from real_runs import place
from sample_league import GAMES, SEED, SampleLeague
from typer.testing import CliRunner

from referee.cli import run
from referee.cli.tournament import LeaguePace, app
from referee.store.league import League
from referee.tournament.archive_writer import export_archive
from referee.tournament.create import extend_tournament, find_same_seed, find_tournament
from referee.tournament.verify import verify_tournament
from referee.tournament.verify_league import LeagueTournament


@pytest.fixture
def cup(tmp_path):
    """A league whose tournament has four games."""
    made = SampleLeague(tmp_path)
    made.play(slice(4))
    yield made
    made.league.close()


@pytest.fixture
def read(cup, monkeypatch):
    """The names of the methods that read. After the first one, another process stores a game."""
    return change_after_a_read(monkeypatch, ("games", "results"), lambda: cup.play(slice(4, 5)))


def change_after_a_read(monkeypatch, methods, change):
    """Call `change` when one of these methods of `League` has returned for the first time; return the names of the calls."""
    names = []

    def watch(name):
        method = getattr(League, name)

        def call(league, *arguments, **more):
            found = method(league, *arguments, **more)
            names.append(name)
            if len(names) == 1:
                change()
            return found

        monkeypatch.setattr(League, name, call)

    for name in methods:
        watch(name)
    return names


def test_tournament_is_read_as_it_was_at_one_moment(cup, monkeypatch):
    def extend():
        extend_tournament(cup.league, cup.tournament, 1, seed=bytes(32), now_us=0)

    change_after_a_read(monkeypatch, ("tournament", "extensions", "schedule"), extend)
    found = find_tournament(cup.league, "cup")
    assert (len(found.parts), len(found.schedule)) == (1, GAMES)
    later = find_tournament(cup.league, "cup")
    assert (len(later.parts), len(later.schedule) > GAMES) == (2, True)


def test_status_shows_a_running_tournament_as_it_was_at_one_moment(cup, monkeypatch):
    change_after_a_read(monkeypatch, ("tournament",), lambda: cup.play(slice(4, None)))
    folder = str(cup.league.folder)
    words = ("status", "cup", "--json", "--league", folder)
    before = json.loads(CliRunner().invoke(app, words).output)
    assert (before["finished"], before["seed"]) == (False, None)
    after = json.loads(CliRunner().invoke(app, words).output)
    assert (after["finished"], after["seed"]) == (True, SEED.hex())


def test_archive_of_a_running_tournament_is_of_one_moment(cup, monkeypatch):
    names = change_after_a_read(
        monkeypatch, ("schedule", "forfeits"), lambda: cup.play(slice(4, 5))
    )
    assert export_archive(cup.league, cup.roster, "cup").played == 4
    assert names[:2] == ["schedule", "forfeits"]


def test_game_that_is_stored_between_two_reads_is_no_damage(cup, read):
    assert verify_tournament(LeagueTournament(cup.league, "cup")) == 4
    assert len(read) == 2


def test_plan_is_made_although_a_game_is_stored_between_two_reads(cup, read):
    times = LeaguePace(cup.league.folder, None).times
    assert [len(each) for each in times.values()] == [4]
    assert len(read) == 2


def test_resumed_tournament_has_the_games_that_were_added_before_the_lock(
    cup, tmp_path, monkeypatch
):
    lock, resumed = League.lock, []

    @contextmanager
    def lock_later(league):
        extend_tournament(cup.league, cup.tournament, 1, seed=bytes(32), now_us=0)
        with lock(league):
            yield

    monkeypatch.setattr(League, "lock", lock_later)
    monkeypatch.setattr(run, "play_to_end", lambda _store, found, *_: resumed.append(found))
    with place(tmp_path) as here:
        done = here.referee("tournament", "resume", "cup", "--isolation", "none")
    assert (done.returncode, resumed[0].parts[0].games) == (0, GAMES), done.stderr
    assert len(resumed[0].schedule) > GAMES


def test_seed_of_a_tournament_and_of_its_extension_is_found(cup):
    assert find_same_seed(cup.league, SEED) == cup.tournament.name
    assert find_same_seed(cup.league, bytes(32)) is None
    extend_tournament(cup.league, cup.tournament, 1, seed=bytes(32), now_us=0)
    assert find_same_seed(cup.league, bytes(32)) == cup.tournament.name
