"""Standings count games, wins, points and faults, and rank the bots."""

from dataclasses import replace

import pytest
from hand_made import game_result
from hypothesis import given
from hypothesis import strategies as st
from played import standings

from referee.ratings.analysis import Analysis
from referee.ratings.trueskill import Rating, rate
from referee.reports.rating_rows import rating_rows
from referee.result_columns import ResultColumns

DUELS = [
    game_result(("a", "b"), (1, 2), (10, 4), game_id="cup-1", match=0),
    game_result(("b", "a"), (1, 1), (8, 8), game_id="cup-2", match=0),
    game_result(("a", "b"), (1, 2), (-3, 9), game_id="cup-3", match=1, forfeited=(1,)),
    game_result(("b", "a"), (2, 1), (1, 2), game_id="cup-4", match=2, ruleset="duel"),
]
STRIKES = {"cup-1": {0: 2}, "cup-4": {1: 1}}


def row(rows, ruleset, bot):
    return next(row for row in rows if (row.ruleset, row.bot) == (ruleset, bot))


def test_games_matches_wins_points_and_faults_are_counted():
    rows = standings(DUELS, rate(DUELS), STRIKES)
    assert [(row.ruleset, row.bot) for row in rows] == [
        ("basic", "a"),
        ("basic", "b"),
        ("duel", "a"),
        ("duel", "b"),
    ]
    a, b = rows[:2]
    assert (a.rank, a.games, a.matches, a.wins, a.strikes, a.forfeits) == (1, 3, 2, 3, 2, 0)
    assert (b.rank, b.games, b.matches, b.wins, b.strikes, b.forfeits) == (2, 3, 2, 1, 0, 1)
    assert (a.won, a.score) == (1.0, 5.0)
    assert b.won == pytest.approx(1 / 3)
    assert b.score == 3.0, "the forfeited game counts -3, the lowest points of the table"
    assert row(rows, "duel", "a").strikes == 1


def test_standings_have_the_given_ratings():
    ratings = rate(DUELS)
    for each in standings(DUELS, ratings):
        rating = ratings[each.ruleset][each.bot]
        assert (each.mu, each.sigma) == rating
        assert each.rating == rating.conservative


def test_nobody_wins_a_game_that_all_forfeited():
    lost = [game_result(("a", "b"), (1, 1), (0, 0), forfeited=(0, 1))]
    assert [row.wins for row in standings(lost, rate(lost))] == [0, 0]


def test_rank_is_by_conservative_rating_then_mu_and_is_shared():
    games = [game_result(tuple("abcd"), (1, 1, 1, 1), (0, 0, 0, 0))]
    ratings = {
        "basic": {"a": Rating(25.0, 5.0), "b": Rating(24.0, 1.0), "c": Rating(25.0, 5.0)}
        | {"d": Rating(28.0, 6.0)}
    }
    analysis = Analysis(ResultColumns.from_results(games).by_ruleset()["basic"])
    for rows in (
        standings(games, ratings),
        rating_rows("basic", ratings["basic"], analysis, strikes={}),
    ):
        assert [(row.rank, row.bot) for row in rows] == [(1, "b"), (2, "d"), (3, "a"), (3, "c")]


def test_standings_without_games_have_no_rows():
    assert standings([], {}) == ()


def test_bot_without_a_rating_raises_key_error():
    with pytest.raises(KeyError):
        standings(DUELS, {"basic": {"a": Rating(25.0, 1.0)}})


@given(st.permutations(DUELS))
def test_order_of_games_does_not_matter(games):
    ratings = rate(DUELS)
    assert standings(games, ratings, STRIKES) == standings(DUELS, ratings, STRIKES)


def test_seats_of_a_bot_do_not_matter():
    turned = [
        replace(
            game,
            bots=game.bots[::-1],
            scores=game.scores[::-1],
            ranks=game.ranks[::-1],
            forfeited=tuple(1 - seat for seat in game.forfeited),
        )
        for game in DUELS
    ]
    assert standings(turned, rate(turned)) == standings(DUELS, rate(DUELS))
