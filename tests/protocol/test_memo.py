"""`memoize` computes results once and keeps a limited number of them."""

from __future__ import annotations

import pytest

from referee.protocol.view_bytes import memoize


def counting(size):
    calls = []

    @memoize(size)
    def half(number):
        calls.append(number)
        if number % 2:
            raise ValueError(number)
        return number // 2

    return half, calls


def test_result_for_equal_arguments_is_computed_once():
    half, calls = counting(10)
    assert [half(4), half(6), half(4), *map(half, (6, 4))] == [2, 3, 2, 3, 2]
    assert calls == [4, 6]


def test_full_memo_is_cleared():
    half, calls = counting(2)
    assert [half(number) for number in (2, 4, 6, 6, 4)] == [1, 2, 3, 3, 2]
    assert calls == [2, 4, 6, 4]


def test_exceptions_are_not_kept():
    half, calls = counting(2)
    for _ in range(2):
        with pytest.raises(ValueError, match="3"):
            half(3)
    assert calls == [3, 3]
