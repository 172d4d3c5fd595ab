"""Test that ratings from any checkpoint equal the ratings from the first game on."""

from __future__ import annotations

import json
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hand_made import game_result
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.ratings import checkpoint as subject
from referee.ratings.checkpoint import rate_from_checkpoint
from referee.ratings.trueskill import Settings, rate
from referee.result_columns import NOBODY, ResultColumns

pytestmark = pytest.mark.unmeasured
FEW = settings(max_examples=60)


def columns(games, names="abcdef", rulesets=("basic", "duel")):
    """Return columns in which bots and rulesets have the numbers of `names` and `rulesets`."""
    made = ResultColumns.from_results(games)
    ruleset = [rulesets.index(made.rulesets[number]) for number in made.ruleset.tolist()]
    numbers = np.array([*map(names.index, made.bots), NOBODY])
    return replace(
        made,
        bots=tuple(names),
        rulesets=tuple(rulesets),
        ruleset=np.array(ruleset, dtype=np.int64),
        bot=numbers[made.bot],
    )


@st.composite
def one_game(draw):
    bots = draw(st.permutations("abcdef"))[: draw(st.integers(2, 4))]
    ranks = draw(st.permutations(range(1, len(bots) + 1)))
    return game_result(bots, ranks, ruleset=draw(st.sampled_from(["basic", "duel"])))


@pytest.fixture(autouse=True, scope="module")
def _after_few_games():
    """Make checkpoints after few games instead of many."""
    with (
        patch.object(subject, "_MIN_NEW_GAMES", 2),
        patch.object(subject, "_SAVE_DISTANCES", (0, 2, 5)),
    ):
        yield


@FEW
@given(
    st.lists(one_game(), max_size=12),
    st.lists(one_game(), max_size=6),
    st.integers(0, 12),
    st.integers(0, 12),
)
def test_any_checkpoint_gives_the_ratings_from_the_first_game_on(before, after, at, gone):
    _, kept = rate_from_checkpoint(None, columns(before))
    now = [*before[:at], *after, *before[at + gone :]]
    ratings, _ = rate_from_checkpoint(kept, columns(now))
    assert ratings.table() == rate(now)


@FEW
@given(st.lists(one_game(), min_size=1, max_size=12), st.data())
def test_changed_game_is_rated_again(games, data):
    _, kept = rate_from_checkpoint(None, columns(games))
    at = data.draw(st.integers(0, len(games) - 1))
    changed = [*games]
    changed[at] = data.draw(one_game())
    ratings, _ = rate_from_checkpoint(kept, columns(changed))
    assert ratings.table() == rate(changed)


GAMES = [
    game_result(("a", "b", "c"), (1, 2, 3)),
    game_result(("b", "d"), (2, 1), ruleset="duel"),
    game_result(("c", "a", "b"), (1, 1, 3)),
    game_result(("d", "a"), (1, 2)),
    game_result(("a", "b"), (1, 2), ruleset="duel"),
    game_result(("b", "c", "d"), (3, 2, 1)),
]


def rated(kept, games, **more):
    """Return the number of rated games, the table and the next checkpoint."""
    with patch.object(subject.Ratings, "rate", autospec=True, side_effect=_rate) as counted:
        ratings, kept = rate_from_checkpoint(kept, columns(games), **more)
    return counted.call_count, ratings.table(), kept


_rate = subject.Ratings.rate


def test_only_games_after_the_checkpoint_are_rated():
    count, table, kept = rated(None, GAMES[:5])
    assert (count, table) == (5, rate(GAMES[:5]))
    count, table, nothing = rated(kept, GAMES)
    assert (count, table, nothing) == (1, rate(GAMES), None)


def test_late_game_causes_later_games_to_be_rated_again():
    _, _, kept = rated(None, [*GAMES[:4], GAMES[5]])
    count, table, _ = rated(kept, GAMES)
    assert (count, table) == (3, rate(GAMES))


def test_renumbered_bots_keep_the_checkpoint_and_renamed_ones_do_not():
    _, kept = rate_from_checkpoint(None, columns(GAMES, "abcd"))
    for names, rulesets in (("dcbaxy", ("duel", "basic")), ("abcd", ("basic", "duel"))):
        with patch.object(subject.Ratings, "rate", side_effect=AssertionError):
            ratings, _ = rate_from_checkpoint(kept, columns(GAMES, names, rulesets))
        assert ratings.table() == rate(GAMES)
    renamed = columns(GAMES, "abcd")
    renamed = replace(renamed, bots=("a", "b", "c", "x"))
    ratings, _ = rate_from_checkpoint(kept, renamed)
    assert set(ratings.table()["basic"]) == {"a", "b", "c", "x"}


def test_changed_ruleset_of_a_game_invalidates_the_checkpoint():
    first, second = (
        [game_result("ab", (1, 2), ruleset=ruleset) for ruleset in ("basic", "duel", each)]
        for each in ("basic", "duel")
    )
    _, kept = rate_from_checkpoint(None, columns(first))
    ratings, _ = rate_from_checkpoint(kept, columns(second))
    assert ratings.table() == rate(second) != rate(first)


def test_changed_settings_or_predecessors_invalidate_the_checkpoint():
    for more in (
        {"settings": Settings(tau=0.3)},
        {"predecessors": {"d": "a"}},
        {"predecessors": {"d": "z", "z": "a"}},
    ):
        _, kept = rate_from_checkpoint(None, columns(GAMES))
        ratings, _ = rate_from_checkpoint(kept, columns(GAMES), **more)
        assert ratings.table() == rate(GAMES, **more) != rate(GAMES)
        _, kept = rate_from_checkpoint(None, columns(GAMES), **more)
        ratings, _ = rate_from_checkpoint(kept, columns(GAMES))
        assert ratings.table() == rate(GAMES)


def test_predecessor_of_a_bot_that_never_played_keeps_the_checkpoint():
    _, _, kept = rated(None, GAMES)
    count, table, _ = rated(kept, GAMES, predecessors={"e": "a"})
    assert (count, table) == (0, rate(GAMES))


def damaged_checkpoints():
    _, kept = rate_from_checkpoint(None, columns(GAMES))
    yield b""
    yield b"[1]"
    yield b"\xff\x00"
    yield kept[:-9]
    states = json.loads(kept)
    for change in (
        {"games": 6_000_000_000},
        {"games": -1},
        {"games": "many"},
        {"ratings": {"basic": {"a": [99.0, 0.1]}}},
        {"ratings": {"basic": {"a": [99.0]}}},
        {"digest": "0" * 32},
    ):
        yield json.dumps([state | change for state in states]).encode()


def test_damaged_checkpoint_is_not_used():
    for kept in damaged_checkpoints():
        ratings, _ = rate_from_checkpoint(kept, columns(GAMES))
        assert ratings.table() == rate(GAMES)


def test_no_games_give_no_checkpoint():
    ratings, kept = rate_from_checkpoint(None, columns([]))
    assert (ratings.table(), kept) == ({}, None)
