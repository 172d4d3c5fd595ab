"""Total points are added up by bot, and a winner is named only if the bots had equal chances."""

from __future__ import annotations

from hand_made import game_result

from referee.reports.statistics import name_winners, points_rows
from referee.result_columns import ResultColumns

MATCH = [
    game_result(("a", "b"), (1, 2), (10, 4), match=0),
    game_result(("b", "a"), (1, 2), (8, -3), match=0),
]
TRIPLE = [
    game_result(("a", "b", "c"), (1, 2, 3), (5, 3, 1), ruleset="classic", match=1),
    game_result(("b", "c", "a"), (1, 2, 3), (5, 3, 1), ruleset="classic", match=1),
    game_result(("c", "a", "b"), (1, 2, 3), (5, 3, 1), ruleset="classic", match=1),
]


def rows_of(games):
    return points_rows(ResultColumns.from_results(games).by_ruleset())


def sentences(games, missing=0):
    return name_winners(rows_of(games), missing)


def test_points_games_starts_and_forfeits_are_added_up():
    lost = game_result(("a", "b"), (2, 1), (7, 0), match=1, forfeited=(0,))
    rows = rows_of([*MATCH, lost])
    assert [
        (row.rank, row.bot, row.points, row.games, row.started, row.forfeits) for row in rows
    ] == [(1, "b", 12, 3, 1, 0), (2, "a", 7, 3, 2, 1)]
    assert rows[1].score == 7 / 3


def test_each_ruleset_has_its_own_sums_and_its_own_winner():
    rows = rows_of([*MATCH, *TRIPLE])
    assert [(row.ruleset, row.rank, row.points) for row in rows] == [
        ("basic", 1, 12),
        ("basic", 2, 7),
        ("classic", 1, 9),
        ("classic", 1, 9),
        ("classic", 1, 9),
    ]
    assert sentences([*MATCH, *TRIPLE]) == (
        "basic: b wins with 12 points.",
        "classic: a and b and c share the win with 9 points.",
    )


def test_one_point_and_one_game_are_in_the_singular():
    games = [game_result(("a", "b"), (1, 2), (1, 0)), game_result(("b", "a"), (2, 1), (0, 0))]
    assert sentences(games) == ("basic: a wins with 1 point.",)
    assert "a has started 1 game, b 0." in sentences(games[:1])[0]


def test_most_points_win_even_if_other_games_were_won_by_rank():
    games = [
        game_result(("a", "b"), (1, 2), (1, 0)),
        game_result(("b", "a"), (1, 2), (30, 2)),
        game_result(("a", "b"), (1, 2), (3, 2), match=1),
        game_result(("b", "a"), (2, 1), (2, 3), match=1),
    ]
    assert sentences(games) == ("basic: b wins with 34 points.",)


def test_unfinished_tournament_has_no_winner():
    assert sentences(MATCH, 3) == (
        "There is no winner yet: 3 games of the schedule are not played.",
    )
    assert sentences(MATCH, 1) == ("There is no winner yet: 1 game of the schedule is not played.",)
    assert sentences([], 4) == ("There is no winner yet: 4 games of the schedule are not played.",)


def test_bots_that_played_unequally_often_have_no_winner():
    more = [
        game_result(("a", "c"), (1, 2), (90, 4), match=1),
        game_result(("c", "a"), (2, 1), (8, 90), match=1),
    ]
    [sentence] = sentences([*MATCH, *more])
    assert sentence.startswith(
        "basic: there is no winner by points, because not all bots have played equally often:"
        " a has played 4 games, "
    )


def test_bots_that_started_unequally_often_have_no_winner():
    again = game_result(("a", "b"), (1, 2), (9, 0), match=1)
    [sentence] = sentences([MATCH[0], again])
    assert sentence == (
        "basic: there is no winner by points, because not all bots have started equally often:"
        " a has started 2 games, b 0."
    )


def test_winner_that_has_forfeited_is_named_with_its_forfeits():
    games = [MATCH[0], game_result(("b", "a"), (1, 2), (2, 3), match=0, forfeited=(1,))]
    assert sentences(games) == (
        "basic: a wins with 12 points. a forfeited 1 of its games; each counts with the lowest points of its table.",
    )


def test_stand_in_wins_no_points_for_a_bot_that_has_forfeited():
    """All three tables have a third bot that forfeits at once, and its stand-in plays best."""
    rows = rows_of(
        game_result(bots, ranks, scores, match=1, ruleset="classic", forfeited=(out,))
        for bots, ranks, scores, out in (
            (("a", "b", "c"), (1, 2, 3), (5, 3, 9), 2),
            (("b", "c", "a"), (2, 3, 1), (3, 9, 5), 1),
            (("c", "a", "b"), (3, 1, 2), (9, 5, 3), 0),
        )
    )
    assert [(row.rank, row.bot, row.points) for row in rows] == [
        (1, "a", 15),
        (2, "b", 9),
        (2, "c", 9),
    ]


def test_names_cannot_control_the_terminal():
    [sentence] = sentences([game_result(("a\x1b[31m",), (1,), (3,))])
    assert sentence == "basic: a\\x1b[31m wins with 3 points."
