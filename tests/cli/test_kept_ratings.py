"""Commands store ratings as a checkpoint if they can, and continue from it."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from referee.errors import StoreError
from referee.ratings.trueskill import Ratings
from referee.reports.selection import GameFilter, rate_in_order
from referee.result_columns import ResultColumns

CUP = GameFilter(tournament="cup")


class Kept:
    """A stand-in for a league that keeps checkpoints in memory."""

    def __init__(self, error=None):
        self.kept = {}
        self._error = error

    def checkpoint(self, name):
        return self.kept.get(name)

    def keep_checkpoint(self, name, content):
        if self._error is not None:
            raise self._error
        self.kept[name] = content


def duels(games):
    rng = np.random.default_rng(1)
    bot = np.array([rng.permutation(4)[:2] for _ in range(games)])
    nothing = np.zeros_like(bot)
    return ResultColumns(
        bots=("a@1", "b@1", "c@1", "d@1"),
        rulesets=("duel",),
        ruleset=nothing[:, 0],
        match=np.arange(games) // 2,
        bot=bot,
        score=nothing,
        rank=1 + bot.argsort(axis=1),
        forfeited=nothing.astype(bool),
        strikes=nothing,
        machine=np.full(games, -1),
        fresh_deal=np.zeros(games, dtype=bool),
    )


def test_rated_games_are_not_rated_again():
    league, games = Kept(), duels(300)
    table = rate_in_order(league, CUP, games).table()
    with patch.object(Ratings, "rate", side_effect=AssertionError):
        assert rate_in_order(league, CUP, games).table() == table
    with pytest.raises(AssertionError), patch.object(Ratings, "rate", side_effect=AssertionError):
        rate_in_order(league, GameFilter(tournament="cup", seats=2), games)


def test_read_only_league_gives_the_same_ratings():
    games = duels(300)
    refused = rate_in_order(Kept(StoreError("read-only")), CUP, games)
    assert refused.table() == rate_in_order(Kept(), CUP, games).table()


def test_no_checkpoint_is_stored_after_a_few_games():
    league = Kept()
    rate_in_order(league, CUP, duels(20))
    assert league.kept == {}
