"""Test ratings over many games: by ruleset, with predecessors, saved and restored."""

from dataclasses import replace

import pytest
from hand_made import game_result
from hypothesis import given
from hypothesis import strategies as st

from referee.ratings.trueskill import (
    Model,
    Rating,
    RatingHistories,
    Ratings,
    Settings,
    rate,
    rating_history,
)


@st.composite
def games(draw):
    bots = draw(st.permutations("abcde"))[: draw(st.integers(2, 4))]
    ranks = draw(st.tuples(*[st.integers(1, 4)] * len(bots)))
    return game_result(bots, ranks, ruleset=draw(st.sampled_from(["basic", "expert"])))


def test_rulesets_are_rated_separately():
    table = rate([game_result(("a", "b"), (1, 2)), game_result(("a", "b"), (2, 1), ruleset="duel")])
    assert list(table) == ["basic", "duel"]
    assert table["basic"]["a"] == table["duel"]["b"]
    assert table["basic"]["a"].mu > table["basic"]["b"].mu


def test_no_games_no_ratings():
    assert rate([]) == {}
    assert Model(Settings()).prior == Rating(25.0, 25 / 3)


def test_games_build_on_each_other():
    once = rate([game_result(("a", "b"), (1, 2))])["basic"]["a"]
    twice = rate([game_result(("a", "b"), (1, 2))] * 2)["basic"]["a"]
    assert twice.mu > once.mu
    assert twice.sigma < once.sigma


OLD_WINS = [game_result(("old", "x"), (1, 2))] * 3
NEW_PLAYS = game_result(("new", "x"), (1, 2))


def test_new_version_starts_with_the_mu_of_its_predecessor_and_full_sigma():
    before = rate(OLD_WINS)["basic"]
    table = rate([*OLD_WINS, NEW_PLAYS], predecessors={"new": "old"})["basic"]
    start = Rating(before["old"].mu, 25 / 3)
    after, _ = Model(Settings()).update([start, before["x"]], [1, 2])
    assert table["new"] == after
    assert table["old"] == before["old"]


def test_unplayed_version_passes_on_the_rating_of_its_predecessor():
    direct = rate([*OLD_WINS, NEW_PLAYS], predecessors={"new": "old"})
    chain = {"new": "middle", "middle": "old"}
    assert rate([*OLD_WINS, NEW_PLAYS], predecessors=chain) == direct


def test_a_predecessor_counts_only_in_rulesets_that_it_has_played():
    games = [*OLD_WINS, game_result(("new", "x"), (1, 2), ruleset="duel")]
    assert rate(games, predecessors={"new": "old"}) == rate(games)


def test_restored_ratings_know_predecessors():
    whole = Ratings(predecessors={"new": "old"})
    for game in OLD_WINS:
        whole.add(game)
    again = Ratings.from_table(whole.table(), predecessors={"new": "old"})
    for ratings in (whole, again):
        ratings.add(NEW_PLAYS)
    assert again.table() == whole.table() != rate([*OLD_WINS, NEW_PLAYS])


@given(st.lists(games(), max_size=8), st.data())
def test_seating_changes_no_bit(played, data):
    turned = []
    for game in played:
        order = data.draw(st.permutations(range(len(game.bots))))
        bots = tuple(game.bots[seat] for seat in order)
        ranks = tuple(game.ranks[seat] for seat in order)
        turned.append(replace(game, bots=bots, ranks=ranks))
    assert rate(turned) == rate(played)


@given(st.lists(games(), max_size=8), st.integers(0, 8))
def test_restored_ratings_continue_the_same_to_the_last_bit(played, cut):
    settings = Settings(tau=0.5, draw_probability=0.02)
    again = Ratings.from_table(rate(played[:cut], settings), settings)
    for game in played[cut:]:
        again.add(game)
    assert again.table() == rate(played, settings)


def test_restored_table_does_not_change_with_later_games():
    table = rate(OLD_WINS)
    before = {ruleset: dict(ratings) for ruleset, ratings in table.items()}
    Ratings.from_table(table).add(NEW_PLAYS)
    assert table == before


@pytest.mark.parametrize(
    "game",
    [
        game_result(("a", "b", "a"), (1, 2, 3)),
        game_result(("a",), (1,)),
        game_result(("a", "b"), (1, 2, 3)),
    ],
)
def test_invalid_game_is_refused_and_changes_nothing(game):
    ratings = Ratings()
    with pytest.raises(ValueError, match=r"\S"):
        ratings.add(game)
    assert ratings.table() == {}


def test_a_table_is_a_copy():
    ratings = Ratings()
    ratings.add(game_result(("a", "b"), (1, 2)))
    ratings.table()["basic"]["a"] = Rating(0.0, 1.0)
    assert ratings.table()["basic"]["a"].mu > 25


def test_history_of_two_table_sizes_has_the_rounds_in_the_order_of_the_games():
    """A round of small tables may come after later rounds of large ones, with a number that these have had."""
    rounds = [(1, "abc"), (1, "ab"), (2, "abc"), (3, "abc"), (2, "ab")]
    games = [
        game_result(bots, range(1, len(bots) + 1), round=number, index=index)
        for index, (number, bots) in enumerate(rounds)
    ]
    history = rating_history(games, "a")["basic"]
    assert [(each.round, each.games) for each in history] == [(1, 2), (2, 3), (3, 4), (2, 5)]
    assert [each.rating for each in history] == [
        rate(games[: each.games])["basic"]["a"] for each in history
    ]


def test_copy_of_histories_shares_no_points():
    first = RatingHistories()
    first.add(game_result("ab", (1, 2), round=1, index=0))
    before = first.histories()
    first.copy().add(game_result("ab", (1, 2), round=2, index=1))
    assert first.histories() == before


def test_same_round_of_another_tournament_is_another_point_of_a_history():
    games = [
        replace(game_result("ab", (1, 2), round=1, index=index), tournament=name)
        for index, name in enumerate(("cup", "two"))
    ]
    points = rating_history(games, "a")["basic"]
    assert [(point.tournament, point.games) for point in points] == [("cup", 1), ("two", 2)]
