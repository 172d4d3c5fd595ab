"""Compute a value of an object when it is first needed, and keep it. Several threads may read it."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, Self, TypeVar, overload

Value = TypeVar("Value")

_LOCK = "_computed_once_lock"
"""Name of the attribute that holds the lock of an object. The lock is created when a value is first read."""


class ComputedOnce(Generic[Value]):
    """Turn a method into an attribute whose value is computed when it is first read, and then kept.

    Each object has a lock of its own, so a thread waits only for computations of the same object. In Python 3.11,
    `functools.cached_property` has one lock for each attribute of a class, which all objects of the class share. With it, a
    thread that analyses few games would wait for a thread that analyses many. In later versions, it has no lock, so two
    threads could compute the same value at the same time.

    The class of the objects must not have `__slots__`.

    Args:
        compute: the method.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, _owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, _owner: type) -> Value: ...
    def __get__(self, instance: object | None, _owner: type) -> Self | Value:
        """Return the value, and compute it first if it is missing.

        Later, Python finds the value among the attributes of the object, and does not call this.
        """
        if instance is None:
            return self
        values = vars(instance)
        with values.setdefault(_LOCK, RLock()):
            if self._name not in values:
                values[self._name] = self._compute(instance)
            value: Value = values[self._name]
        return value
