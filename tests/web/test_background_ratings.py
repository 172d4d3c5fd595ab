"""Ratings are computed in a thread: pages do not wait, and after a change only new games are rated."""

from __future__ import annotations

import threading

import pytest
from test_histories import FakeLeague, games

from referee.ratings import checkpoint
from referee.ratings.trueskill import rate
from referee.reports.selection import GameFilter
from referee.result_columns import ResultColumns
from referee.web import background_ratings
from referee.web.background_ratings import BackgroundRatings, NotReadyError


class StoredLeague(FakeLeague):
    """A league without a stored checkpoint."""

    def checkpoint(self, _name):
        return None


@pytest.fixture
def league():
    return StoredLeague(games(60))


@pytest.fixture
def gate(monkeypatch):
    """An event: no computation goes on before it is set."""
    may_go_on = threading.Event()
    compute = background_ratings.rate_from_checkpoint

    def wait_and_compute(*arguments, **words):
        assert may_go_on.wait(60)
        return compute(*arguments, **words)

    monkeypatch.setattr(background_ratings, "rate_from_checkpoint", wait_and_compute)
    return may_go_on


def expected(league, count):
    return rate(league.games[:count], predecessors=GameFilter().predecessors(league))


def test_caller_that_does_not_wait_gets_the_ratings_later(league, gate):
    ratings, played = (
        BackgroundRatings(league, GameFilter()),
        ResultColumns.from_results(league.games),
    )
    for patience_s in (0, 0.01):
        with pytest.raises(NotReadyError):
            ratings.rate(played, patience_s)
    gate.set()
    assert ratings.rate(played, None).table() == expected(league, 60)
    assert ratings.rate(played, 0).table() == expected(league, 60)


def test_games_that_came_during_a_computation_are_rated_too(league, gate):
    ratings = BackgroundRatings(league, GameFilter())
    early, all_games = (
        ResultColumns.from_results(league.games[:50]),
        ResultColumns.from_results(league.games),
    )
    with pytest.raises(NotReadyError):
        ratings.rate(early, 0)
    threading.Timer(0.05, gate.set).start()
    assert ratings.rate(all_games, None).table() == expected(league, 60)


def test_only_new_games_are_rated_after_a_change(league, monkeypatch):
    monkeypatch.setattr(checkpoint, "_MIN_NEW_GAMES", 5)
    ratings = BackgroundRatings(league, GameFilter())
    ratings.rate(ResultColumns.from_results(league.games[:50]), None)
    numbers = []
    rate_range = checkpoint._GameSequence.rate
    monkeypatch.setattr(
        checkpoint._GameSequence,
        "rate",
        lambda self, table, begin, end: (
            numbers.extend(range(begin, end)) or rate_range(self, table, begin, end)
        ),
    )
    assert ratings.rate(ResultColumns.from_results(league.games), None).table() == expected(
        league, 60
    )
    assert numbers == list(range(50, 60))


def test_error_of_a_computation_is_raised_and_the_next_one_may_succeed(league, monkeypatch):
    ratings, played = (
        BackgroundRatings(league, GameFilter()),
        ResultColumns.from_results(league.games),
    )
    with monkeypatch.context() as patch:
        patch.setattr(league, "bots", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ratings.rate(played, None)
    assert ratings.rate(played, None).table() == expected(league, 60)
