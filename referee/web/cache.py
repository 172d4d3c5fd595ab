"""Keep what pages are made of until the league changes.

A value may be made of other values, also of values of another cache: a page is made of ratings. If a part was outdated when
it was used, the whole is outdated too, and is made anew as soon as the part can be.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar, cast

Value = TypeVar("Value")

_PATIENCE = 20
"""An outdated value is used again for this multiple of the time that it took to make. So pages take at most a twentieth of a core."""
_MAX_PATIENCE_S = 30.0
_MAKING_S = 1.0
"""If another thread makes a value anew, the outdated one is used, and is expected to be replaced after this time."""

_PARTS: ContextVar[list[float] | None] = ContextVar("_PARTS", default=None)
"""Where the maker of a value notes when its outdated parts can be made anew; None outside of all makers."""


class Kept(NamedTuple, Generic[Value]):
    """A value of a cache."""

    value: Value
    newer_in_s: float | None
    """If the value is outdated, the seconds until it can be made anew. None if it is up to date."""


@dataclass(slots=True)
class _Entry:
    lock: Lock
    """Held by the thread that makes the value, so that other threads do not make it too."""
    mark: int | None = None
    """The mark of the league before the value was made; None if there is no value."""
    is_whole: bool = True
    """False if a part of the value was outdated."""
    again_at_s: float = 0.0
    """When an outdated value may be made anew."""
    value: object = None


class Cache:
    """Values that were made from a league, by key. Several threads may use it.

    Args:
        read_mark: returns `League.change_mark()`; a value is outdated when the mark has changed since it was made.
        now_s: returns the time of a monotonic clock in seconds.
        limit: how many values are kept. The value that was not used for the longest time is dropped.
    """

    def __init__(
        self, read_mark: Callable[[], int], now_s: Callable[[], float], *, limit: int
    ) -> None:
        self._read_mark = read_mark
        self._now_s = now_s
        self._limit = limit
        self._lock = Lock()
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of `key`; see `look_up`."""
        return self.look_up(key, make).value

    def look_up(self, key: Hashable, make: Callable[[], Value]) -> Kept[Value]:
        """Return the value of `key`. Call `make` if there is none, or if it is outdated and was not made just now.

        An error of `make` is raised, and not kept.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry(Lock()))
            self._entries.move_to_end(key)
            while len(self._entries) > self._limit:
                self._entries.popitem(last=False)
        if entry.lock.acquire(blocking=entry.mark is None):
            try:
                is_current = self._update(key, entry, make)
                value, again_at_s = entry.value, entry.again_at_s
            finally:
                entry.lock.release()
        else:  # another thread makes the value anew, and may need long
            is_current, value, again_at_s = False, entry.value, self._now_s() + _MAKING_S
        parts = _PARTS.get()
        if not is_current and parts is not None:
            parts.append(again_at_s)
        newer_in_s = None if is_current else max(0.0, again_at_s - self._now_s())
        return Kept(cast("Any", value), newer_in_s)

    def _update(self, key: Hashable, entry: _Entry, make: Callable[[], object]) -> bool:
        """Make the value anew if it is outdated and was not made just now. Return True if it is up to date then."""
        mark = self._read_mark()
        is_current = entry.mark == mark and entry.is_whole
        if entry.mark is not None and (is_current or self._now_s() < entry.again_at_s):
            return is_current
        try:
            self._renew(entry, mark, make)
        except BaseException:
            self._drop(key, entry)
            raise
        return entry.is_whole

    def _renew(self, entry: _Entry, mark: int, make: Callable[[], object]) -> None:
        parts: list[float] = []
        outer = _PARTS.set(parts)
        began_s = self._now_s()
        try:
            entry.value = make()
        finally:
            _PARTS.reset(outer)
        made_s = self._now_s()
        entry.mark, entry.is_whole = mark, not parts
        patience_s = min(_PATIENCE * (made_s - began_s), _MAX_PATIENCE_S)
        entry.again_at_s = max(made_s + patience_s, min(parts, default=-inf))

    def _drop(self, key: Hashable, entry: _Entry) -> None:
        """Forget the key of a value that could not be made, so that unknown keys push no values out."""
        with self._lock:
            if self._entries.get(key) is entry:
                del self._entries[key]
