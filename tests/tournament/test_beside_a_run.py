"""Commands that read a league beside a running tournament see no half-stored game, and none plays with an old schedule."""

from contextlib import contextmanager

import pytest
from real_runs import place
from sample_league import GAMES, SampleLeague

from referee.cli import run
from referee.cli.tournament import LeaguePace
from referee.store.league import League
from referee.tournament.create import extend_tournament
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
    """The names of the tables that were read. After the first one, another process stores a game."""
    names = []

    def watch(name):
        method = getattr(League, name)

        def call(league, *arguments, **more):
            found = list(method(league, *arguments, **more))
            names.append(name)
            if len(names) == 1:
                cup.play(slice(4, 5))
            return found

        monkeypatch.setattr(League, name, call)

    watch("games")
    watch("results")
    return names


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
