"""Keep pages, and the values from which they are made, until the league changes.

A value may be made from other values, also from values of another cache. For example, a page is made from ratings. These other values
are the inputs of the value. If an input was outdated when it was used, the new value is outdated too. The new value can be made
again when its own delay is over and one of the outdated inputs can be made again.
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

DELAY_FACTOR = 20
"""The delay after a value was made, as a multiple of the time that it took to make. The value is not made again during the
delay, so making it needs at most a twentieth of a core."""
MAX_DELAY_S = 30.0
"""The longest delay. Making a value may need more than a twentieth of a core if it takes more than 1.5 s."""
_MAKING_S = 1.0
"""An outdated value is used while another thread makes it anew, and after `make` has raised NotReadyError. The new value is expected
after this time."""

_OUTDATED_INPUTS: ContextVar[list[float] | None] = ContextVar("_OUTDATED_INPUTS", default=None)
"""While a value is made, the times at which its outdated inputs can be made again. None while no value is made."""


def note_outdated_input(again_at_s: float) -> None:
    """Note that the value that is being made has an outdated input.

    `Cache` calls this for the values that it returns. Other code calls it for an input that is missing, or that no `Cache` keeps. If no
    value is being made, nothing happens.

    Args:
        again_at_s: when the input can be made anew, on the clock of the cache.
    """
    outdated = _OUTDATED_INPUTS.get()
    if outdated is not None:
        outdated.append(again_at_s)


def end_of_delay_s(began_s: float, made_s: float) -> float:
    """Return when a value that was made between these times may be made again; see `DELAY_FACTOR`."""
    return made_s + min(DELAY_FACTOR * (made_s - began_s), MAX_DELAY_S)


class NotReadyError(Exception):
    """The value is still being computed, and the caller does not wait longer."""


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
    has_current_inputs: bool = True
    """False if an input of the value was outdated."""
    again_at_s: float = 0.0
    """When an outdated value may be made anew."""
    value: object = None

    def is_current(self, mark: int) -> bool:
        """Return True if the value is up to date for this mark of the league."""
        return self.mark == mark and self.has_current_inputs


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

    def __contains__(self, key: Hashable) -> bool:
        """Return True if there is a value, perhaps an outdated one."""
        with self._lock:
            entry = self._entries.get(key)
            return entry is not None and entry.mark is not None

    def get(
        self, key: Hashable, make: Callable[[], Value], patience_s: float | None = None
    ) -> Value:
        """Return the value of `key`; see `look_up`."""
        return self.look_up(key, make, patience_s).value

    def look_up(
        self, key: Hashable, make: Callable[[], Value], patience_s: float | None = None
    ) -> Kept[Value]:
        """Return the value of `key`. Call `make` if there is no value, or if it is outdated and its delay is over.

        The delay begins when the value has been made; see `DELAY_FACTOR`. While another thread calls `make`, or if `make` raises
        NotReadyError, the outdated value is returned. Any other error of `make` is raised. Then the value is forgotten, and the
        next call of `look_up` calls `make` again.

        Args:
            key: the key.
            make: returns the value.
            patience_s: if there is no value, how long to wait for another thread that makes it, in seconds; None to wait
                without a limit.

        Raises NotReadyError if there is no value, and neither `make` nor another thread has made it in time.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry(Lock()))
            self._entries.move_to_end(key)
            while len(self._entries) > self._limit:
                self._entries.popitem(last=False)
        wait_s = 0.0 if entry.mark is not None else -1 if patience_s is None else patience_s
        if entry.lock.acquire(timeout=wait_s):
            try:
                is_current = self._update(key, entry, make)
                value, again_at_s = entry.value, entry.again_at_s
            finally:
                entry.lock.release()
        elif entry.mark is None:
            raise NotReadyError
        else:  # another thread has the lock: it compares the mark, or makes the value anew, which may take long
            is_current = entry.is_current(self._read_mark())
            value, again_at_s = entry.value, self._now_s() + _MAKING_S
        if not is_current:
            note_outdated_input(again_at_s)
        newer_in_s = None if is_current else max(0.0, again_at_s - self._now_s())
        return Kept(cast("Any", value), newer_in_s)

    def _update(self, key: Hashable, entry: _Entry, make: Callable[[], object]) -> bool:
        """Make the value again if it is outdated and its delay is over. Return True if the value is up to date afterwards."""
        mark = self._read_mark()
        is_current = entry.is_current(mark)
        if entry.mark is not None and (is_current or self._now_s() < entry.again_at_s):
            return is_current
        try:
            self._renew(entry, mark, make)
        except NotReadyError:
            if entry.mark is None:
                raise
            entry.again_at_s = self._now_s() + _MAKING_S
            return False
        except BaseException:
            self._drop(key, entry)
            raise
        return entry.has_current_inputs

    def _renew(self, entry: _Entry, mark: int, make: Callable[[], object]) -> None:
        outdated: list[float] = []
        outer = _OUTDATED_INPUTS.set(outdated)
        began_s = self._now_s()
        try:
            entry.value = make()
        finally:
            _OUTDATED_INPUTS.reset(outer)
        made_s = self._now_s()
        # the mark comes last, because threads without the lock read it
        entry.has_current_inputs, entry.mark = not outdated, mark
        entry.again_at_s = max(end_of_delay_s(began_s, made_s), min(outdated, default=-inf))

    def _drop(self, key: Hashable, entry: _Entry) -> None:
        """Forget the key of a value that could not be made, so that unknown keys do not fill the cache."""
        with self._lock:
            if self._entries.get(key) is entry:
                del self._entries[key]
