"""The standings during a run: of games that were stored before, in part, and of games that come."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
from records import filled, played

from referee.cli.progress import LiveTable
from referee.cli.ratings import GameFilter, current_ratings
from referee.ratings import checkpoint
from referee.ratings.trueskill import Ratings, rate
from referee.store.league import League

CUP = SimpleNamespace(name="cup")


@pytest.fixture
def league(tmp_path):
    with League.open(tmp_path / "league", create=True) as made:
        yield made


def ratings(table):
    return {row.bot: row.mu for row in table.rows()}


def after(league, games):
    """The ratings from the first game on, by bot."""
    (by_bot,) = rate(league.results(tournament="cup")[:games]).values()
    return {bot: rating.mu for bot, rating in by_bot.items()}


def test_games_beyond_a_gap_wait_until_it_is_closed(league):
    rows = filled(league)[:8]
    for row in [*rows[:4], *rows[5:7]]:
        league.add_game(played(row))
    table = LiveTable(league, CUP)
    assert table.games == 6
    assert ratings(table) == after(league, 4)
    for row in (rows[7], rows[4]):
        assert ratings(table) == after(league, 4)
        record = played(row)
        league.add_game(record)
        table.add(row, record)
    assert ratings(table) == after(league, 8)
    assert sum(row.games for row in table.rows()) == sum(len(row.bots) for row in rows)


def test_what_was_rated_before_is_not_rated_again(league, monkeypatch):
    monkeypatch.setattr(checkpoint, "_WORTH", 1)
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


def test_a_run_that_begins(league):
    row = filled(league)[0]
    table = LiveTable(league, CUP)
    assert (table.games, list(table.rows())) == (0, [])
    record = played(row)
    league.add_game(record)
    table.add(row, record)
    assert ratings(table) == after(league, 1)
