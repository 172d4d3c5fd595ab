"""Columns: what a table needs to know of each field of a row, said once, beside the field.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class StandingRow:
        bot: Annotated[str, Column("bot")]
        mu: Annotated[float, Column("mu", right=True, show=decimal(1))]

A row type declared so can be shown (`terminal`), and written as JSON and as CSV (`data`). Field names
are the keys of the data and do not change; titles are for people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_type_hints

from referee.reports.show import NOTHING, plain

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Row = TypeVar("Row", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class Column:
    """How one field is shown to people."""

    title: str
    right: bool = False
    """Set to the right, as numbers are."""
    wrap: bool = False
    """Text that may go over several lines."""
    show: Callable[[Any], str] = plain
    """Is never given None."""
    empty: str = NOTHING
    """Stands for None."""
    drop: int = 0
    """Where the terminal is narrow, columns go in this order, 1 first; 0 stays."""
    section: bool = False
    """No column in the terminal: each value gets a table of its own, and stands above it."""
    data_only: bool = False
    """Not shown to people."""
    interval: bool = False
    """An `Estimate`: three values as data, KEY, KEY_low and KEY_high."""


class Field(NamedTuple):
    """A field of a row type."""

    key: str
    column: Column


def row_from(row_type: type[Row], figures: object, /, **others: object) -> Row:
    """A row whose fields are the figures' attributes of the same names, but for the others.

    Raises AttributeError where the figures have none of the name.
    """
    keys = (field.name for field in fields(row_type) if field.name not in others)
    return row_type(**{key: getattr(figures, key) for key in keys}, **others)


def keys_of(row_type: type) -> list[str]:
    """The keys of a row type as data, in its order."""
    return [
        key
        for field in fields_of(row_type)
        for key in (_interval_keys(field.key) if field.column.interval else (field.key,))
    ]


def items_of(row: object) -> Iterator[tuple[str, Any]]:
    """The keys of `keys_of` with their values."""
    for key, column in fields_of(type(row)):
        value = getattr(row, key)
        if not column.interval:
            yield key, value
            continue
        parts = (None, None, None) if value is None else (value.value, value.low, value.high)
        yield from zip(_interval_keys(key), parts, strict=True)


def _interval_keys(key: str) -> tuple[str, str, str]:
    return key, f"{key}_low", f"{key}_high"


def fields_of(row_type: type) -> tuple[Field, ...]:
    """The fields of a row type, in its order. All of them have a column."""
    hints = get_type_hints(row_type, include_extras=True)
    return tuple(Field(key, hint.__metadata__[0]) for key, hint in hints.items())
