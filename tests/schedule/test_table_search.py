"""Test the search for single tables."""

from __future__ import annotations

from collections import Counter
from itertools import chain, combinations
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.schedule import table_search
from referee.schedule.table_search import search_tables

pytestmark = pytest.mark.unmeasured


@given(st.integers(5, 12), st.integers(2, 5), st.integers(1, 60))
def test_all_bots_play_equally_often_in_each_part_but_the_last(bots, seats, matches):
    with mock.patch.object(table_search, "_STEPS", 300):
        parts = search_tables(bots, seats, matches)
    assert sum(map(len, parts)) == matches
    assert {len(set(table)) for part in parts for table in part} == {seats}
    for part in parts:
        plays = Counter(chain(range(bots), chain.from_iterable(part)))
        assert max(plays.values()) - min(plays.values()) <= (part is parts[-1])


@pytest.mark.parametrize(
    ("bots", "seats", "matches", "least", "most"),
    [(7, 3, 7, 1, 1), (10, 4, 15, 2, 2), (24, 4, 59, 1, 2)],
)
def test_pairs_meet_equally_often_if_the_walk_reaches_its_goal(bots, seats, matches, least, most):
    tables = chain.from_iterable(search_tables(bots, seats, matches))
    met = Counter(pair for table in tables for pair in combinations(table, 2))
    each = [met[pair] for pair in combinations(range(bots), 2)]
    assert (min(each), max(each)) == (least, most)
