"""A value is computed once for each object, and computations of different objects do not wait for each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from referee.ratings.computed_once import ComputedOnce


class Thing:
    def __init__(self, part):
        self._part = part
        self.computed = []

    @ComputedOnce
    def value(self):
        """Say what it is."""
        self.computed.append("value")
        return self._part() + self.other

    @ComputedOnce
    def other(self):
        self.computed.append("other")
        return 1


def test_value_is_computed_once_and_may_need_another_one():
    thing = Thing(lambda: 2)
    assert thing.computed == []
    assert (thing.value, thing.other, thing.value) == (3, 1, 3)
    assert thing.computed == ["value", "other"]
    assert Thing.value.__doc__ == "Say what it is."


def test_error_is_not_kept():
    parts = iter([0, 1])
    thing = Thing(lambda: 1 // next(parts))
    with pytest.raises(ZeroDivisionError):
        _ = thing.value
    assert thing.value == 2


def test_threads_that_read_one_value_compute_it_once():
    barrier = Barrier(4)
    thing = Thing(lambda: 2)

    def read(_number):
        barrier.wait()
        return thing.value

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(read, range(4))) == [3] * 4
    assert thing.computed == ["value", "other"]


def test_computation_of_another_object_is_not_waited_for():
    began, may_end = Event(), Event()
    large, small = Thing(lambda: began.set() or 2 * may_end.wait(60)), Thing(lambda: 2)
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(lambda: large.value)
        assert began.wait(60)
        try:
            assert threads.submit(lambda: small.value).result(20) == 3
        finally:
            may_end.set()
        assert slow.result(60) == 3
