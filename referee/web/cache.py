"""Keep what pages are made of until the league changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar, cast

Value = TypeVar("Value")

_PATIENCE = 20
"""An outdated value is used again for this multiple of the time that it took to make. So pages take at most a twentieth of a core."""
_MAX_PATIENCE_S = 30.0


@dataclass(slots=True)
class _Entry:
    lock: Lock
    """Held by the thread that makes the value, so that other threads wait for it and do not make it too."""
    mark: int | None = None
    made_s: float = 0.0
    cost_s: float = 0.0
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
        """Return the value of `key`. Call `make` if there is none, or if it is outdated and was not made just now."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry(Lock()))
            self._entries.move_to_end(key)
            while len(self._entries) > self._limit:
                self._entries.popitem(last=False)
        with entry.lock:
            mark, now_s = self._read_mark(), self._now_s()
            patience_s = min(_PATIENCE * entry.cost_s, _MAX_PATIENCE_S)
            if entry.mark is None or (entry.mark != mark and now_s - entry.made_s >= patience_s):
                value = make()
                made_s = self._now_s()
                entry.mark, entry.value = mark, value
                entry.made_s, entry.cost_s = made_s, made_s - now_s
            return cast(Any, entry.value)
