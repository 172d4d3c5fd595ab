"""How values are written for people: one function a kind of value, each to one short piece of text.

Much of what is shown was written by bots. `visible` makes it harmless for a terminal; the modules
that build rich renderables hand over `Text`, never markup, so that brackets mean nothing either.

Columns: what a table needs to know of each field of a row, said once, beside the field.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class StandingRow:
        bot: Annotated[str, Column("bot")]
        mu: Annotated[float, Column("mu", right=True, show=decimal(1))]

A row type declared so can be shown (`terminal`), and written as JSON and as CSV (`data`). Field names
are the keys of the data and do not change; titles are for people.

Rows as data: JSON and CSV, with the field names of the row types as keys.

Every value is there, unrounded, in the unit that its name says. Both texts are safe to print: they
hold no control characters, whatever a bot was called or wrote.
"""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_type_hints

from referee.clocks import SECOND_US
from referee.rules.cards import JOKER, Counts, Group, Layer, card_name

_SURELY_NOT = 0.001
_MINUTE_US = 60 * SECOND_US
_HOUR_US = 60 * _MINUTE_US
_MILLISECOND_US = 1_000
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode's categories of what a terminal obeys or hides instead of showing it."""

NOTHING = "-"
"""What stands where there is no value."""


def visible(text: str, *, lines: bool = False) -> str:
    r"""The text with nothing in it that a terminal would obey or hide instead of showing it.

    Control and format characters and lone surrogates become `\x1b`, `\u202e` and the like. With `lines`, line feeds are kept, and tabs become spaces.
    """
    if lines:
        return "\n".join(visible(line.expandtabs()) for line in text.split("\n"))
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in _UNSEEN else char
        for char in text
    )


def plain(value: object) -> str:
    """Any value as it is, several with spaces between them."""
    if isinstance(value, tuple):
        return " ".join(map(plain, value)) or NOTHING
    return str(value)


def decimal(places: int) -> Callable[[float], str]:
    """Numbers with so many places."""
    return lambda value: f"{value:.{places}f}"


def estimate(places: int) -> Callable[[Estimate], str]:
    """Figures with so many places, and their intervals."""
    return lambda each: _with_interval(each, decimal(places))


def percent_estimate(share: Estimate) -> str:
    """A share of 1 as `42 % [38, 46]`."""
    shown = f"{share.value:.0%}".replace("%", " %")
    if share.low is None or share.high is None:
        return shown
    return f"{shown} [{100 * share.low:.0f}, {100 * share.high:.0f}]"


def _with_interval(each: Estimate, show: Callable[[float], str]) -> str:
    if each.low is None or each.high is None:
        return show(each.value)
    return f"{show(each.value)} [{show(each.low)}, {show(each.high)}]"


def chance(probability: float) -> str:
    """How sure something is, as a share of 1; never more than `> 99.9 %`."""
    if not _SURELY_NOT <= probability <= 1 - _SURELY_NOT:
        return "> 99.9 %" if probability > _SURELY_NOT else "< 0.1 %"
    return percent(probability)


def percent(share: float) -> str:
    """A share of 1 as `42.0 %`."""
    return f"{share:.1%}".replace("%", " %")


def duration(duration_us: int) -> str:
    """Microseconds as `120 µs`, `4.2 ms`, `4.2 s`, `3:07 min` or `2:03:07 h`."""
    if duration_us < _MILLISECOND_US:
        return f"{duration_us} µs"
    if duration_us < SECOND_US:
        return f"{duration_us / _MILLISECOND_US:.1f} ms"
    if duration_us < _MINUTE_US:
        return f"{duration_us / SECOND_US:.1f} s"
    hours, rest_us = divmod(duration_us, _HOUR_US)
    minutes, seconds = divmod(rest_us // SECOND_US, 60)
    return f"{hours}:{minutes:02}:{seconds:02} h" if hours else f"{minutes}:{seconds:02} min"


def memory(size_kib: int) -> str:
    """Kibibytes as `12.5 MiB`."""
    return f"{size_kib / 1024:.1f} MiB"


def moment(time_us: int) -> str:
    """Microseconds since 1970 as `2026-01-31 12:59:59 UTC`."""
    return datetime.fromtimestamp(time_us // SECOND_US, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def layer_name(layer: Layer) -> str:
    """A layer as `7`, `3×7`, `3×7+J`, `2×7+2×J`, or `2×J` for one of jokers only."""
    return "+".join(
        card_name(card) if copies == 1 else f"{copies}×{card_name(card)}"
        for card, copies in ((layer.value, layer.naturals), (JOKER, layer.jokers))
        if copies
    )


def group_name(cards: Group) -> str:
    """What lies in a slot of the display: a card as `7`, a group, bottom card first, as `7+13+J`."""
    return "+".join(map(card_name, cards)) or NOTHING


def counts_name(counts: Counts) -> str:
    """A multiset of cards as `2×3 7 3×12 J`, lowest first."""
    return spaced(
        card_name(card) if copies == 1 else f"{copies}×{card_name(card)}"
        for card, copies in enumerate(counts)
        if copies
    )


def spaced(parts: Iterable[Any]) -> str:
    """Parts with spaces between them, or a dash for none."""
    return " ".join(map(str, parts)) or NOTHING


if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from referee.ratings.intervals import Estimate  # loads numpy and scipy

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


def json_text(value: object) -> str:
    """A row, rows, or anything plain made of them, as JSON, without a line feed at the end."""
    return json.dumps(_plain(value), indent=2)


def csv_text(row_type: type, rows: Iterable[object]) -> str:
    """Rows as CSV (RFC 4180 with line feeds): a line of keys, then one line a row.

    Several values of one field have spaces between them; nothing is an empty cell.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(keys_of(row_type))
    writer.writerows([_cell(value) for _, value in items_of(row)] for row in rows)
    return text.getvalue()


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {key: _plain(part) for key, part in items_of(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in value]
    return value


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return " ".join(map(_cell, value))
    return visible(str(value))
