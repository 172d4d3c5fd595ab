"""Test after which rounds the standings are tested."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from referee.ratings.stopping import look_rounds


@pytest.mark.parametrize("rounds", [1, 2, 7, 11, 100, 10_000])
def test_looks_become_rarer_and_end_with_the_last_round(rounds):
    found = look_rounds(rounds)
    assert found[-1] == rounds
    assert found == sorted(set(found))
    assert found[0] == 1
    assert all(later <= max(earlier + 1, 1.3 * earlier) for earlier, later in pairwise(found))
    assert len(found) <= 6 + 13 * np.log10(rounds)


def test_no_look_is_just_before_the_last_round():
    assert look_rounds(12)[-3:] == [9, 10, 12]
    assert look_rounds(11)[-3:] == [9, 10, 11]
    assert look_rounds(13)[-3:] == [10, 12, 13]
    assert look_rounds(53)[-3:] == [37, 44, 53]
