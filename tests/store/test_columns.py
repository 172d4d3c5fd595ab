"""Test that `League.columns` equals `League.results`, on both databases."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from records import MACHINE, add_bot, bot, faulty, filled, played
from sqlalchemy import delete, select, update

from referee.errors import StoreError, UserError
from referee.records import Machine
from referee.result_columns import NOBODY
from referee.schedule import Deals
from referee.store import schema

MACHINES = (MACHINE, Machine(host="beta", cpu="Model 1", speed=90_000, noise=0.5), None)


@pytest.fixture
def league(place):
    """Make a league with two unfinished tournaments stored in random order, a free game, and faults."""
    with place.open(create=True) as made:
        add_bot(made, bot("zoe"))  # plays nowhere
        games = [*filled(made)[:9], *filled(made, "other")[3:7]]
        random.Random(5).shuffle(games)
        for number, row in enumerate(games):
            record = played(row)
            if number == 4:
                record = replace(record, scores=(-20, 0, 31))
            record = replace(record, machine=MACHINES[number % 3])
            made.add_game(faulty(record) if number % 3 == 0 else record)
        made.add_game(replace(faulty(played(games[0])), game_id="play-1"))
        yield made


def test_games_with_fresh_deals_are_marked(league):
    league.add_games(map(played, filled(league, "fresh", kind=Deals.FRESH)[2:6]))
    assert not league.columns(tournament="cup").fresh_deal.any()
    assert league.columns(tournament="fresh").fresh_deal.tolist() == [True] * 4
    assert league.columns().fresh_deal.sum() == 4


def test_machine_of_each_game_is_stored(league):
    columns, rows = league.columns(), league.results()
    known = {NOBODY: None} | {
        machine.key: (machine.host, machine.cpu) for machine in league.machines()
    }
    assert len(known) == 3
    for row, machine in zip(rows, columns.machine.tolist(), strict=True):
        found = league.record(row.game_id).machine
        assert known[machine] == (None if found is None else (found.host, found.cpu))


def test_machines_have_the_means_of_their_games(league):
    for tournament in (None, "cup"):
        stored = [
            league.record(row.game_id).machine for row in league.results(tournament=tournament)
        ]
        for machine in league.machines(tournament=tournament):
            own = [each for each in stored if each is not None and each.host == machine.host]
            free = tournament is None and machine.host == MACHINE.host  # the free game has it too
            assert machine.games == len(own) + free
            assert machine.speed == own[0].speed
            assert machine.noise == pytest.approx(own[0].noise)
            # all games of these tests are played at the same time, in 31 ms
            assert machine.games_per_s == pytest.approx(machine.games / 0.031)
            assert machine.last_us == 1_700_000_000_031_000
    assert league.machines(tournament="nothing") == []


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


@pytest.mark.parametrize("lost", [(0,), (1, 2), (0, 1, 2)])
def test_game_that_has_lost_seats_is_refused(league, lost):
    seats = schema.seats
    of_game = (
        seats.c.game_id
        == select(schema.games.c.id).where(schema.games.c.name == "cup-3").scalar_subquery()
    )
    with league._database.writing() as connection:
        connection.execute(delete(seats).where(of_game, seats.c.seat.in_(lost)))
    for tournament in (None, "cup"):
        with pytest.raises(StoreError, match=r"a game has lost a seat; `referee verify` names"):
            league.columns(tournament=tournament)
    assert len(league.columns(tournament="other")) == 4


def test_games_that_have_all_lost_their_other_seats_are_refused(league):
    with league._database.writing() as connection:
        connection.execute(delete(schema.seats).where(schema.seats.c.seat > 0))
    with pytest.raises(StoreError, match="a game has lost a seat"):
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
