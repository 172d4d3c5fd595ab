"""Test tables that are made of base blocks on a circle."""

from __future__ import annotations

from collections import Counter
from itertools import chain, combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.schedule.cyclic_tables import cyclic_tables

pytestmark = pytest.mark.unmeasured


def spread(kinds, occurring):
    counts = Counter(occurring)
    each = [counts[kind] for kind in kinds]
    return min(each), max(each)


def spreads(bots, parts):
    """Return the smallest and largest numbers of plays, of meetings, and of neighbours in one order."""
    tables = list(chain.from_iterable(parts))
    pairs = (frozenset(pair) for table in tables for pair in combinations(table, 2))
    beside = (pair for table in tables for pair in zip(table, table[1:] + table[:1], strict=True))
    return (
        spread(range(bots), chain.from_iterable(tables)),
        spread(map(frozenset, combinations(range(bots), 2)), pairs),
        spread(permutations(range(bots), 2), beside),
    )


@settings(max_examples=30)
@given(st.integers(5, 40), st.integers(2, 5), st.integers(1, 150))
def test_cyclic_tables_are_even_if_there_are_any(bots, seats, matches):
    if bots <= seats or (parts := cyclic_tables(bots, seats, matches)) is None:
        return
    assert sum(map(len, parts)) == matches
    assert {len(set(table)) for part in parts for table in part} == {seats}
    for part in parts[:-1]:
        assert set(Counter(chain.from_iterable(part)).values()) == {seats}
    plays, met, _ = spreads(bots, parts)
    assert plays[1] - plays[0] <= 1
    assert met[1] - met[0] <= 1


FOUND = [
    (13, 4, 13, ((4, 4), (1, 1), (0, 1))),
    (21, 5, 21, ((5, 5), (1, 1), (0, 1))),
    (97, 4, 625, ((25, 26), (0, 1), (0, 1))),
    (100, 4, 625, ((25, 25), (0, 1), (0, 1))),
    (50, 4, 300, ((24, 24), (1, 2), (0, 1))),
    (24, 4, 240, ((40, 40), (5, 6), (1, 2))),
    (100, 4, 7, ((0, 1), (0, 1), (0, 1))),
]


@pytest.mark.parametrize(("bots", "seats", "matches", "even"), FOUND)
def test_cyclic_tables_are_found(bots, seats, matches, even):
    assert spreads(bots, cyclic_tables(bots, seats, matches)) == even


def test_nothing_is_returned_if_no_blocks_are_even():
    """There is no cyclic difference family for 25 bots at tables of 4."""
    assert cyclic_tables(25, 4, 50) is None


def test_small_tables_written_out():
    whole, rest = cyclic_tables(7, 3, 9)
    assert whole == [(3, 5, 2), (4, 6, 3), (5, 0, 4), (6, 1, 5), (0, 2, 6), (1, 3, 0), (2, 4, 1)]
    assert rest == [(0, 2, 4), (1, 3, 5)]
