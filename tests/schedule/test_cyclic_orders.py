"""Test how evenly bots are neighbours."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, pairwise, permutations
from time import process_time

import pytest

from referee.schedule.cyclic_orders import RoundOrders, choose_block_orders, choose_orders

pytestmark = pytest.mark.unmeasured


def spread(tables, bots):
    had = Counter(pair for table in tables for pair in pairwise((*table, table[0])))
    each = [had[pair] for pair in permutations(range(bots), 2)]
    return min(each), max(each)


@pytest.mark.parametrize(
    ("bots", "seats", "each_round"),
    [(12, 4, 15), (10, 5, 14), (14, 4, 22), (6, 4, 2), (12, 3, 5)],
)
def test_neighbours_differ_by_two_at_most_after_each_round(bots, seats, each_round):
    orders = RoundOrders(list(combinations(range(bots), seats)))
    tables = []
    for number in range(1, 1 + min(6, math.factorial(seats - 1))):
        tables += orders.next_round()
        least, most = spread(tables, bots)
        assert number * each_round - 1 <= least <= most <= number * each_round + 1
    assert seats == 5 or least == most


def test_a_table_repeats_no_order_before_it_has_had_all():
    orders = RoundOrders([(0, 1, 2, 3), (1, 2, 3, 4)])
    for _ in range(2):
        rounds = [orders.next_round() for _ in range(6)]
        assert {each[0] for each in rounds} == {(0, *rest) for rest in permutations((1, 2, 3))}


def test_rounds_of_twelve_bots_take_less_than_a_second():
    before = process_time()
    orders = RoundOrders(list(combinations(range(12), 4)))
    for _ in range(6):
        orders.next_round()
    assert process_time() - before < 1


def test_orders_stay_if_they_are_even():
    tables = [
        (0, 1, 2),
        (2, 1, 0),
        (0, 1, 3),
        (3, 1, 0),
        (0, 2, 3),
        (3, 2, 0),
        (1, 2, 3),
        (3, 2, 1),
    ]
    assert choose_orders(tables) == tables


def test_orders_of_repeated_tables_are_even():
    tables = [table for table in combinations(range(12), 4) for _ in range(2)]
    chosen = choose_orders(tables)
    assert [tuple(sorted(table)) for table in chosen] == tables
    least, most = spread(chosen, 12)
    assert 29 <= least <= most <= 31
    assert choose_orders([]) == []


def test_orders_of_base_blocks_make_all_moved_tables_even():
    blocks = choose_block_orders([(6, 8, 10, 11), (3, 8, 10, 12), (0, 3, 7, 8)], 13)
    moved = [tuple((bot + place) % 13 for bot in block) for block in blocks for place in range(13)]
    assert spread(moved, 13) == (1, 1)
