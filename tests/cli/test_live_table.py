"""The standings during a run include stored games and new games, in schedule order."""

from __future__ import annotations

import io
import re
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
from records import faulty, filled, played

from referee.cli import progress
from referee.cli.options import Output
from referee.cli.progress import LiveTable, _Screen
from referee.ratings import checkpoint
from referee.ratings.trueskill import Ratings, rate
from referee.reports.selection import GameFilter, current_ratings
from referee.store.league import League

CUP = SimpleNamespace(name="cup")


@pytest.fixture
def league(tmp_path):
    with League.open(tmp_path / "league", create=True) as made:
        yield made


def ratings(table):
    return {row.bot: row.mu for row in table.rows()}


def after(league, games):
    """Return the rating of each bot after the first games, computed anew."""
    (by_bot,) = rate(league.results(tournament="cup")[:games]).values()
    return {bot: rating.mu for bot, rating in by_bot.items()}


def test_games_after_a_missing_one_wait_for_it(league):
    rows = filled(league)[:8]
    for row in [*rows[:4], *rows[5:7]]:
        league.add_game(played(row))
    table = LiveTable(league, CUP)
    assert ratings(table) == after(league, 4)
    for row in (rows[7], rows[4]):
        assert ratings(table) == after(league, 4)
        record = played(row)
        league.add_game(record)
        table.add(row, record)
    assert ratings(table) == after(league, 8)
    assert sum(row.games for row in table.rows()) == sum(len(row.bots) for row in rows)


def test_stored_games_are_not_rated_again(league, monkeypatch):
    monkeypatch.setattr(checkpoint, "_MIN_NEW_GAMES", 1)
    rows = filled(league)[:8]
    for row in rows[:6]:
        league.add_game(played(row))
    current_ratings(league, GameFilter(tournament="cup"))
    rated = []
    rate_one = Ratings.rate
    monkeypatch.setattr(Ratings, "rate", lambda self, *game: rated.append(rate_one(self, *game)))
    table = LiveTable(league, CUP)
    assert rated == []
    assert ratings(table) == after(league, 6)


def test_strikes_count_when_their_game_counts(league):
    rows = filled(league)[:4]
    for row in (rows[0], rows[2]):
        league.add_game(faulty(played(row)))
    table = LiveTable(league, CUP)
    counted = []
    for row in (rows[3], rows[1]):
        counted.append({row.bot: (row.strikes, row.forfeits) for row in table.rows()})
        table.add(row, faulty(played(row)))
    counted.append({row.bot: (row.strikes, row.forfeits) for row in table.rows()})
    for games, found in zip((1, 1, 4), counted, strict=True):
        seated = [row.bots for row in rows[:games]]
        assert found == {
            bot: (sum(bots[0] == bot for bots in seated), sum(bots[1] == bot for bots in seated))
            for bot in {bot for bots in seated for bot in bots}
        }


def test_evidence_of_faults_is_not_read(league, monkeypatch):
    """Standard error has up to 4 KiB for each fault, and a tournament can have a fault in every game."""
    for row in filled(league)[:2]:
        league.add_game(faulty(played(row)))
    monkeypatch.setattr(League, "faults", None)
    assert sum(row.strikes for row in LiveTable(league, CUP).rows()) == 2


def test_new_run_starts_without_standings(league):
    row = filled(league)[0]
    table = LiveTable(league, CUP)
    assert list(table.rows()) == []
    record = played(row)
    league.add_game(record)
    table.add(row, record)
    assert ratings(table) == after(league, 1)


def test_lines_of_progress_count_stored_games(league):
    first, second, *_ = rows = filled(league)
    league.add_game(played(first))
    out = io.StringIO()
    tournament = SimpleNamespace(name="cup", may_stop=False, schedule=rows)
    with (screen := _Screen(league, tournament, Output(file=out))):
        screen.add(second, played(second))
    assert f"cup: 2 of {len(rows)} games, " in out.getvalue()


def test_live_screen_tells_the_time_left_from_the_mean_speed_of_the_run(league, monkeypatch):
    """Games arrive together and rarely, because a worker reports several games at once."""
    seconds = 0.0
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: seconds))
    monkeypatch.setenv("TERM", "xterm")
    rows = filled(league)
    tournament = SimpleNamespace(name="cup", may_stop=False, schedule=rows * 10)
    out = io.StringIO()
    with (screen := _Screen(league, tournament, Output(file=out, force_terminal=True, width=120))):
        assert " -:--:-- left" in progress_line(screen, out)
        for start in (0, 4):
            seconds += 100
            for row in rows[start : start + 4]:
                screen.add(row, played(row))
            done, left_s = start + 4, 25 * (len(rows) * 10 - start - 4)
            expected = f"{done}/{len(rows) * 10} 0.04 games/s {timedelta(seconds=left_s)} left"
            assert expected in progress_line(screen, out)


def progress_line(screen, out):
    """Draw the screen, and return the text that was drawn last."""
    out.truncate(out.seek(0))
    screen._console.print(screen._render())
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())


def test_text_of_a_bot_cannot_control_the_terminal(league):
    """A message of a Dask worker may contain the destination of a link that a build made."""
    out = io.StringIO()
    tournament = SimpleNamespace(name="cup", may_stop=False, schedule=filled(league))
    screen = _Screen(league, tournament, Output(file=out))
    screen.say("the link l leads to /x\x1b[2J\nreferee: all games are played\n")
    assert out.getvalue() == "the link l leads to /x\\x1b[2J\n| referee: all games are played\n"
