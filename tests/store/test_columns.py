"""Test that `League.columns` equals `League.results`, on both databases."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from records import bot, faulty, filled, played
from sqlalchemy import update

from referee.errors import StoreError, UserError
from referee.store import schema


@pytest.fixture
def league(place):
    """Make a league with two unfinished tournaments stored in random order, a free game, and faults."""
    with place.open(create=True) as made:
        made.add_bot(bot("zoe"))  # plays nowhere
        games = [*filled(made)[:9], *filled(made, "other")[3:7]]
        random.Random(5).shuffle(games)
        for number, row in enumerate(games):
            record = played(row)
            if number == 4:
                record = replace(record, scores=(-20, 0, 31))
            made.add_game(faulty(record) if number % 3 == 0 else record)
        made.add_game(replace(faulty(played(games[0])), game_id="play-1"))
        yield made


@pytest.mark.parametrize("tournament", [None, "cup", "other"])
def test_columns_equal_the_results_in_schedule_order(league, tournament):
    columns, rows = league.columns(tournament=tournament), league.results(tournament=tournament)
    seats = columns.bot >= 0
    assert seats.sum(axis=1).tolist() == [len(row.bots) for row in rows]
    for game, row in enumerate(rows):
        there = seats[game]
        assert columns.rulesets[columns.ruleset[game]] == row.ruleset
        assert tuple(columns.bots[each] for each in columns.bot[game, there]) == row.bots
        assert tuple(columns.score[game, there]) == row.scores
        assert tuple(columns.rank[game, there]) == row.ranks
        assert tuple(np.flatnonzero(columns.forfeited[game])) == row.forfeited
    matches = [(row.tournament, row.match) for row in rows]
    assert [matches.index(each) for each in matches] == [
        columns.match.tolist().index(each) for each in columns.match
    ]
    assert np.all(np.diff(columns.match) >= 0)
    played_games = {row.game_id: number for number, row in enumerate(rows)}
    strikes = np.zeros_like(columns.strikes)
    for charged in league.faults(tournament=tournament):
        if not charged.fault.forfeit and charged.game_id in played_games:
            strikes[played_games[charged.game_id], charged.fault.seat] += 1
    assert strikes.sum() > 0
    assert columns.strikes.tolist() == strikes.tolist()


def test_selected_columns_have_only_the_selected_games(league):
    columns = league.columns()
    every_other = np.arange(len(columns.match)) % 2 == 0
    few = columns.select(every_other)
    assert few.bot.tolist() == columns.bot[::2].tolist()
    assert few.strikes.sum() <= columns.strikes.sum()


def test_empty_league_has_empty_columns(place):
    with place.open(create=True) as empty:
        assert empty.columns().bot.shape == (0, 1)
        assert empty.columns(tournament="cup").match.tolist() == []


def test_unknown_ruleset_is_refused(league):
    with league._database.writing() as connection:
        connection.execute(update(schema.results).values(ruleset="a new one"))
    with pytest.raises(StoreError, match="a ruleset that this version does not know"):
        league.columns()


def test_keys_beyond_their_bits_are_refused(league):
    with league._database.writing() as connection:
        bots = schema.bots
        connection.execute(update(bots).where(bots.c.name == "zoe").values(id=(1 << 16) - 1))
    assert league.columns().bots[-1] == "zoe@1.0"
    with league._database.writing() as connection:
        connection.execute(update(bots).where(bots.c.name == "zoe").values(id=1 << 16))
    with pytest.raises(StoreError, match="more bots than one table of results can hold"):
        league.columns()


def test_a_checkpoint_is_kept_and_replaced(place):
    with place.open(create=True) as league:
        assert league.checkpoint("ratings") is None
        league.keep_checkpoint("ratings", b"\x00\xff")
        league.keep_checkpoint("other", b"")
        league.keep_checkpoint("ratings", b"new")
    with place.open() as league:
        assert (league.checkpoint("ratings"), league.checkpoint("other")) == (b"new", b"")
        with pytest.raises(UserError):
            league.keep_checkpoint("\ud800", b"")
