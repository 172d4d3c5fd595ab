"""What recurs, made once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Key = TypeVar("Key")
Made = TypeVar("Made")


def memo(size: int) -> Callable[[Callable[[Key], Made]], Callable[[Key], Made]]:
    """Decorate a function of one argument, so that it is called once for each of so many equal arguments.

    For what is needed at every decision: what `functools.lru_cache` makes takes twice as long, since it keeps
    an order and makes a tuple of its arguments. When the memo is full it begins anew. What the function raises
    goes through, and is not kept.
    """
    return lambda make: _Memo(make, size).__getitem__


class _Memo(dict[Key, Made]):
    def __init__(self, make: Callable[[Key], Made], size: int) -> None:
        super().__init__()
        self._make = make
        self._size = size

    def __missing__(self, key: Key) -> Made:
        made = self._make(key)
        if len(self) >= self._size:
            self.clear()
        self[key] = made
        return made
