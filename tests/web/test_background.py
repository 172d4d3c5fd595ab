"""Ratings and rating histories that are computed in a thread are those of the command.

Pages do not wait for them. Games may be added at the end, or before the end.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from hand_made import game_result

from referee.ratings import checkpoint
from referee.ratings.analysis import Analysis
from referee.ratings.intervals import Resampling
from referee.ratings.trueskill import RatingHistories, Ratings, rate
from referee.reports.selection import GameFilter, analyses
from referee.reports.verdicts import name_deviations
from referee.result_columns import ResultColumns
from referee.web import background, cache
from referee.web.background import BackgroundRatings, HistoryKeeper
from referee.web.cache import NotReadyError

BOTS = ("a@1", "b@1", "c@1", "b@2")


class FakeLeague:
    """A league with given games."""

    def __init__(self, games):
        self.games = games
        self.mark = 1

    def change_mark(self):
        return self.mark

    def change(self, games):
        self.games, self.mark = games, self.mark + 1

    def results(self, tournament=None):
        assert tournament is None
        return self.games

    def bots(self):
        return [replace_bot(each) for each in BOTS]


def replace_bot(text):
    name, version = text.split("@")
    return type("Row", (), {"name": name, "version": version, "bot": text})()


def games(count):
    """Return games of four bots in rounds of three games."""
    return [
        game_result(
            (BOTS[number % 3], BOTS[3 if number > 30 and number % 3 == 0 else (number + 1) % 3]),
            (1 + number % 2, 2 - number % 2),
            game_id=f"cup-{number}",
            round=1 + number // 3,
        )
        for number in range(count)
    ]


def expected_histories(league):
    histories = RatingHistories(predecessors=GameFilter().predecessors(league))
    for game in league.games:
        histories.add(game)
    return histories.histories()


@pytest.fixture(autouse=True)
def _keep_few_games(monkeypatch):
    monkeypatch.setattr(background, "_TAIL", 10)
    monkeypatch.setattr(cache, "DELAY_FACTOR", 0)


@pytest.mark.parametrize("added", ["end", "tail", "begin"])
def test_histories_after_a_change_are_those_from_the_first_game_on(added):
    everything = games(60)
    missing = {"end": {55, 58, 59}, "tail": {52, 53}, "begin": {4}}[added]
    league = FakeLeague([game for at, game in enumerate(everything) if at not in missing])
    keeper = HistoryKeeper(league, GameFilter())
    assert keeper.get(None) == expected_histories(league)
    league.change(everything)
    assert keeper.get(None) == expected_histories(league)


def test_only_the_tail_is_rated_again_after_a_change(monkeypatch):
    league = FakeLeague(games(50))
    keeper = HistoryKeeper(league, GameFilter())
    keeper.get(None)
    rated = []
    add = Ratings.add
    monkeypatch.setattr(Ratings, "add", lambda self, game: rated.append(game) or add(self, game))
    league.change(games(51))
    keeper.get(None)
    assert [game.game_id for game in rated] == [f"cup-{number}" for number in range(40, 51)]
    assert keeper.get(None) == expected_histories(league)


def test_page_does_not_wait_for_a_long_computation_and_is_made_again(monkeypatch):
    league, may_go_on = FakeLeague(games(5)), threading.Event()
    results = league.results
    monkeypatch.setattr(league, "results", lambda **words: may_go_on.wait(60) and results(**words))
    keeper = HistoryKeeper(league, GameFilter())
    pages = cache.Cache(league.change_mark, lambda: 0.0, limit=1)
    first = pages.look_up("page", lambda: keeper.get(0.01))
    assert first.value is None
    assert first.newer_in_s is not None
    may_go_on.set()
    assert keeper.get(None) == expected_histories(league)
    assert keeper.share == 1.0


def test_error_of_a_computation_of_histories_is_raised_and_the_next_one_may_succeed(monkeypatch):
    league = FakeLeague(games(5))
    keeper = HistoryKeeper(league, GameFilter())
    with monkeypatch.context() as patch:
        patch.setattr(league, "results", lambda **_: [replace(games(1)[0], bots=("a@1", "a@1"))])
        with pytest.raises(ValueError, match="cannot be rated"):
            keeper.get(None)
    assert keeper.get(None) == expected_histories(league)


@pytest.mark.parametrize(
    "compute",
    [
        lambda league: HistoryKeeper(league, GameFilter()).get(None),
        lambda league: BackgroundRatings(league, GameFilter()).rate(
            ResultColumns.from_results(league.games), {}, None
        ),
    ],
    ids=["histories", "ratings"],
)
def test_caller_that_waits_without_a_limit_computes_in_its_own_thread(league, monkeypatch, compute):
    """So a report reads one moment of the league, and Ctrl-C ends it."""
    threads, bots = [], league.bots
    monkeypatch.setattr(
        league, "bots", lambda: threads.append(threading.current_thread()) or bots()
    )
    compute(league)
    assert threads == [threading.current_thread()]


def test_computation_without_a_thread_is_an_error_and_the_next_one_may_succeed(league, monkeypatch):
    keeper, ratings = HistoryKeeper(league, GameFilter()), BackgroundRatings(league, GameFilter())
    played = ResultColumns.from_results(league.games)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            keeper.get(1.0)
        with pytest.raises(ZeroDivisionError):
            ratings.rate(played, {}, 1.0)
    assert keeper.get(60.0) == expected_histories(league)
    assert ratings.rate(played, {}, 60.0).ratings.table() == expected_ratings(league, 60)


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
    compute = background.rate_from_checkpoint

    def wait_and_compute(*arguments, **words):
        assert may_go_on.wait(60)
        return compute(*arguments, **words)

    monkeypatch.setattr(background, "rate_from_checkpoint", wait_and_compute)
    return may_go_on


def expected_ratings(league, count):
    return rate(league.games[:count], predecessors=GameFilter().predecessors(league))


def test_caller_that_does_not_wait_gets_the_ratings_later(league, gate):
    ratings, played = (
        BackgroundRatings(league, GameFilter()),
        ResultColumns.from_results(league.games),
    )
    for patience_s in (0, 0.01):
        with pytest.raises(NotReadyError):
            ratings.rate(played, {}, patience_s)
    gate.set()
    assert ratings.rate(played, {}, None).ratings.table() == expected_ratings(league, 60)
    assert ratings.rate(played, {}, 0).ratings.table() == expected_ratings(league, 60)


def test_ratings_are_ready_when_the_intervals_are_computed(league):
    are_computed = threading.Event()
    analysis = SimpleNamespace(prepare=lambda: are_computed.wait(60))
    ratings, played = (
        BackgroundRatings(league, GameFilter()),
        ResultColumns.from_results(league.games),
    )
    with pytest.raises(NotReadyError):
        ratings.rate(played, {"basic": analysis}, 0.01)
    are_computed.set()
    found = ratings.rate(played, {"basic": analysis}, 60.0)
    assert found.ratings.table() == expected_ratings(league, 60)


def test_pages_resample_nothing_after_the_computation(monkeypatch):
    """Each of three bots wins all games against the next one, so `name_deviations` has a sentence about them."""
    circle = [
        game_result(bots, ranks, match=10 * place + match, game_id=f"cup-{place}-{match}-{seat}")
        for place, (one, two) in enumerate(zip(BOTS[:3], (*BOTS[1:3], BOTS[0]), strict=True))
        for match in range(10)
        for seat, (bots, ranks) in enumerate((((one, two), (1, 2)), ((two, one), (2, 1))))
    ]
    played = ResultColumns.from_results(circle)
    found = BackgroundRatings(StoredLeague(circle), GameFilter()).rate(
        played, analyses(played), None
    )
    expected = Analysis(played).pair("a@1", "b@1").lead
    monkeypatch.setattr(
        Resampling, "sums", MagicMock(side_effect=AssertionError("a page waits for this"))
    )
    assert len(list(name_deviations(found.analysed))) == 1
    [analysis] = found.analysed.values()
    assert analysis.pair("a@1", "b@1").lead == expected


@pytest.fixture
def _long_delay(monkeypatch):
    """The next computation begins a minute after the last one."""
    monkeypatch.setattr(cache, "MAX_DELAY_S", 60)
    monkeypatch.setattr(cache, "DELAY_FACTOR", 1e9)


@pytest.mark.usefixtures("_long_delay")
def test_next_computation_of_ratings_waits_after_a_long_one(league):
    ratings = BackgroundRatings(league, GameFilter())
    early, all_games = (
        ResultColumns.from_results(league.games[:50]),
        ResultColumns.from_results(league.games),
    )
    first = ratings.rate(early, {}, 60.0)
    assert ratings.rate(all_games, {}, 60.0) is first
    assert ratings.rate(early, {}, 60.0) is first
    assert ratings.rate(all_games, {}, None).ratings.table() == expected_ratings(league, 60)


@pytest.mark.usefixtures("_long_delay")
def test_games_that_change_during_a_computation_do_not_lose_its_result(league, gate):
    """So a page has ratings while a tournament runs. The page is outdated."""
    ratings, analysed = (
        BackgroundRatings(league, GameFilter()),
        {"basic": SimpleNamespace(prepare=int)},
    )
    early, all_games = (
        ResultColumns.from_results(league.games[:50]),
        ResultColumns.from_results(league.games),
    )
    with pytest.raises(NotReadyError):
        ratings.rate(early, analysed, 0)
    gate.set()
    pages = cache.Cache(league.change_mark, time.monotonic, limit=1)
    page = pages.look_up("page", lambda: ratings.rate(all_games, {}, 60.0))
    assert page.value.ratings.table() == expected_ratings(league, 50)
    assert page.value.games is early
    assert page.value.analysed is analysed
    assert page.newer_in_s is not None


def test_games_that_came_during_a_computation_are_rated_too(league, gate):
    ratings = BackgroundRatings(league, GameFilter())
    early, all_games = (
        ResultColumns.from_results(league.games[:50]),
        ResultColumns.from_results(league.games),
    )
    with pytest.raises(NotReadyError):
        ratings.rate(early, {}, 0)
    threading.Timer(0.05, gate.set).start()
    assert ratings.rate(all_games, {}, None).ratings.table() == expected_ratings(league, 60)


def test_only_new_games_are_rated_after_a_change(league, monkeypatch):
    monkeypatch.setattr(checkpoint, "_MIN_NEW_GAMES", 5)
    ratings = BackgroundRatings(league, GameFilter())
    ratings.rate(ResultColumns.from_results(league.games[:50]), {}, None)
    numbers = []
    rate_range = checkpoint._GameSequence.rate
    monkeypatch.setattr(
        checkpoint._GameSequence,
        "rate",
        lambda self, table, begin, end: (
            numbers.extend(range(begin, end)) or rate_range(self, table, begin, end)
        ),
    )
    assert ratings.rate(
        ResultColumns.from_results(league.games), {}, None
    ).ratings.table() == expected_ratings(league, 60)
    assert numbers == list(range(50, 60))


def test_error_of_a_computation_of_ratings_is_raised_and_the_next_one_may_succeed(
    league, monkeypatch
):
    ratings, played = (
        BackgroundRatings(league, GameFilter()),
        ResultColumns.from_results(league.games),
    )
    with monkeypatch.context() as patch:
        patch.setattr(league, "bots", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ratings.rate(played, {}, None)
    assert ratings.rate(played, {}, None).ratings.table() == expected_ratings(league, 60)
