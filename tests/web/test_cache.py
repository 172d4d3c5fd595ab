"""Test that values are kept until the league changes, and that slow ones are not made at every change."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from referee.web.cache import Cache, NotReadyError


class World:
    """A league's mark, a clock, and makers that take time by it."""

    def __init__(self):
        self.mark = 1
        self.now_s = 100.0
        self.made = []

    def cache(self, limit=10):
        return Cache(lambda: self.mark, lambda: self.now_s, limit=limit)

    def maker(self, name, cost_s=0.0, part=lambda: None):
        def make():
            part()
            self.made.append(name)
            self.now_s += cost_s
            return f"{name} at {self.mark}"

        return make


@pytest.fixture
def world():
    return World()


def test_value_is_made_once_while_the_league_stays_as_it_is(world):
    cache = world.cache()
    found = [cache.look_up("a", world.maker("a")) for _ in range(3)]
    assert found == [("a at 1", None)] * 3
    assert world.made == ["a"]


def test_cache_contains_values_even_if_they_are_outdated(world):
    cache, seen = world.cache(), []
    cache.get("a", world.maker("a", part=lambda: seen.append("a" in cache)))
    world.mark = 2
    assert ("a" in cache, "b" in cache, seen) == (True, False, [False])


def test_value_is_made_again_when_the_league_has_changed(world):
    cache = world.cache()
    cache.get("a", world.maker("a"))
    world.mark = 2
    assert cache.look_up("a", world.maker("a")) == ("a at 2", None)


def test_slow_value_is_used_for_twenty_times_its_cost_and_says_so(world):
    cache = world.cache()
    cache.get("a", world.maker("a", cost_s=0.5))
    world.mark = 2
    assert cache.look_up("a", world.maker("a")) == ("a at 1", 10.0)
    world.now_s += 9.0
    assert cache.look_up("a", world.maker("a")) == ("a at 1", 1.0)
    world.now_s += 1.0
    assert cache.look_up("a", world.maker("a")) == ("a at 2", None)


def test_whole_with_an_outdated_part_is_outdated_until_the_part_can_be_made(world):
    parts, wholes = world.cache(), world.cache()

    def whole():
        make = world.maker("whole", part=lambda: parts.get("part", world.maker("part", cost_s=0.1)))
        return wholes.look_up("whole", make)

    assert whole() == ("whole at 1", None)
    world.mark = 2
    world.now_s += 1.0
    world.made.clear()
    _, newer_in_s = whole()
    assert newer_in_s == pytest.approx(1.0)
    world.now_s += 1.0
    assert whole() == ("whole at 2", None)
    assert "part" in world.made


def test_error_is_raised_and_not_kept(world):
    cache = world.cache(limit=1)
    cache.get("a", world.maker("a"))

    def fail():
        raise ValueError("no such page")

    for _ in range(2):
        with pytest.raises(ValueError, match="no such page"):
            cache.get("b", fail)
    assert cache.get("b", world.maker("b")) == "b at 1"


def test_value_that_was_not_used_for_the_longest_time_is_dropped(world):
    cache = world.cache(limit=2)
    for key in "abac":
        cache.get(key, world.maker(key))
    world.made.clear()
    for key in "acb":
        cache.get(key, world.maker(key))
    assert world.made == ["b"]


def test_threads_that_want_one_value_make_it_once(world):
    cache, barrier = world.cache(), Barrier(8)

    def look(_number):
        barrier.wait()
        return cache.get("a", world.maker("a"))

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(look, range(8)))
    assert found == ["a at 1"] * 8
    assert world.made == ["a"]


def test_outdated_value_is_used_while_another_thread_makes_it_anew(world):
    cache, began, may_end = world.cache(), Event(), Event()
    cache.get("a", world.maker("a"))
    world.mark = 2

    def slow():
        began.set()
        assert may_end.wait(60)
        return "new"

    with ThreadPoolExecutor(1) as threads:
        making = threads.submit(cache.get, "a", slow)
        assert began.wait(60)
        meanwhile = cache.look_up("a", slow)
        may_end.set()
        assert making.result(60) == "new"
    assert meanwhile == ("a at 1", 1.0)
    assert cache.look_up("a", slow) == ("new", None)


def test_current_value_is_current_while_another_thread_compares_its_mark():
    compares, may_end = Event(), Event()

    def read_mark():
        """Return the mark. In another thread, this lasts until `may_end` is set."""
        if threading.current_thread() is not threading.main_thread():
            compares.set()
            assert may_end.wait(60)
        return 1

    cache = Cache(read_mark, lambda: 100.0, limit=10)
    cache.get("a", lambda: "a")
    with ThreadPoolExecutor(1) as threads:
        comparing = threads.submit(cache.look_up, "a", lambda: "b")
        assert compares.wait(60)
        meanwhile = cache.look_up("a", lambda: "c")
        may_end.set()
        assert comparing.result(60) == ("a", None)
    assert meanwhile == ("a", None)


def not_ready():
    raise NotReadyError


def test_thread_without_patience_does_not_wait_for_another_one_that_makes_the_first_value(world):
    cache, began, may_end = world.cache(), Event(), Event()

    def slow():
        began.set()
        assert may_end.wait(60)
        return "new"

    with ThreadPoolExecutor(1) as threads:
        making = threads.submit(cache.get, "a", slow)
        assert began.wait(60)
        with pytest.raises(NotReadyError):
            cache.look_up("a", slow, 0.01)
        may_end.set()
        assert making.result(60) == "new"
    assert cache.look_up("a", slow, 0.01) == ("new", None)


def test_outdated_value_is_used_while_the_new_one_is_not_ready(world):
    cache = world.cache()
    with pytest.raises(NotReadyError):
        cache.look_up("a", not_ready)
    cache.get("a", world.maker("a"))
    world.mark = 2
    assert cache.look_up("a", not_ready) == ("a at 1", 1.0)
    world.now_s += 1.0
    assert cache.look_up("a", world.maker("a")) == ("a at 2", None)
