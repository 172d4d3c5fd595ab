"""Test the tables of known designs: count all pairs and all neighbours."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations

import pytest

from referee.schedule.designs import neighbour_design, pair_design

PAIR_DESIGNS = [(9, 3), (15, 3), (27, 3), (16, 4), (25, 4), (28, 4), (25, 5)]
NEIGHBOUR_DESIGNS = [
    *((bots, 3) for bots in (7, 9, 10, 12, 13, 15, 16, 18, 19, 21, 22, 24, 25, 27, 28, 31)),
    *((bots, 4) for bots in (5, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29, 37)),
    *((bots, 5) for bots in (10, 11, 15, 16, 21, 25, 26, 31)),
]
RESOLVABLE = [each for each in PAIR_DESIGNS if each != (25, 4)]
NOT_PERFECT = [(10, 5), (15, 5), (25, 5)]


def meetings(tables):
    return Counter(frozenset(pair) for table in tables for pair in combinations(table, 2))


def at_distance(tables, distance):
    """Count how often each bot is the given number of places to the left of each other bot."""
    return Counter(
        (bot, table[(place + distance) % len(table)])
        for table in tables
        for place, bot in enumerate(table)
    )


def each_pair(bots, times):
    return {frozenset(pair): times for pair in combinations(range(bots), 2)}


def each_order(bots):
    return dict.fromkeys(permutations(range(bots), 2), 1)


@pytest.mark.parametrize(("bots", "seats"), PAIR_DESIGNS)
def test_every_two_bots_meet_once_in_a_pair_design(bots, seats):
    tables = pair_design(bots, seats).tables()
    assert {len(set(table)) for table in tables} == {seats}
    assert meetings(tables) == each_pair(bots, 1)


@pytest.mark.parametrize(("bots", "seats"), RESOLVABLE)
def test_bots_play_in_turn_in_a_resolvable_pair_design(bots, seats):
    tables = pair_design(bots, seats).tables()
    group = bots // seats
    for first in range(0, len(tables), group):
        assert len(set().union(*tables[first : first + group])) == bots


@pytest.mark.parametrize(("bots", "seats"), NEIGHBOUR_DESIGNS)
def test_every_bot_has_every_other_as_left_neighbour_once_in_a_neighbour_design(bots, seats):
    tables = neighbour_design(bots, seats).tables()
    assert {len(set(table)) for table in tables} == {seats}
    assert meetings(tables) == each_pair(bots, seats - 1)
    assert at_distance(tables, 1) == each_order(bots)


@pytest.mark.parametrize(("bots", "seats"), NEIGHBOUR_DESIGNS)
def test_neighbour_design_is_perfect_with_few_exceptions(bots, seats):
    tables = neighbour_design(bots, seats).tables()
    every = all(at_distance(tables, j) == each_order(bots) for j in range(1, seats))
    assert every == ((bots, seats) not in NOT_PERFECT)


def test_no_design_is_returned_for_other_numbers():
    assert pair_design(8, 4) is None
    assert [neighbour_design(8, 4), neighbour_design(6, 3), neighbour_design(33, 4)] == [None] * 3
