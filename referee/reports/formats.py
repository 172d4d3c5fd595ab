"""Format values as short texts for people, and rows as JSON or CSV for programs.

A row is a frozen dataclass. The `Column` beside each field says how a table shows it:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class StandingRow:
        bot: Annotated[str, Column("bot")]
        mu: Annotated[float, Column("mu", right=True, show=decimal(1))]

`RowsTable` in `terminal.py` shows rows as tables; `json_text` and `csv_text` write rows for programs. The name of a
field is its key in JSON and CSV, so it must not change after the first release. It must match the title of the column:
`title_key` has the rule, and a test checks it. `json_text` and `csv_text` do not round numbers.

A text may come from a bot. Before a module prints the text, it must call `visible`, which escapes control characters.
Rich must get the text as `Text`, never as markup, because Rich interprets brackets in markup.
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
from referee.errors import UserError, did_you_mean, is_unseen
from referee.rules.ruleset import Counts, Group, card_name

_SURELY_NOT = 0.001
"""A probability below this value is shown as `< 0.1 %`. A probability above 1 minus this value is shown as `> 99.9 %`.
The same holds for shares, but a share of exactly 0 or 1 is shown as `0.0 %` or `100.0 %`."""
_MINUTE_US = 60 * SECOND_US
_MILLISECOND_US = 1_000
_SLOW = 0.1
"""Below this number of games per second, one decimal place says too little."""
_FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""A spreadsheet treats a text as a formula if the text begins with one of these characters. The last four are the wide
forms of the first four. A tab or a carriage return at the beginning has the same effect, but `visible` escapes both."""
_AS_EMOJI = "\ufe0f"
"""A hidden character. It tells the terminal to show the symbol before it, such as a heart, as a coloured picture."""

NOTHING = "-"
"""The text for a missing value."""


def visible(text: str, *, lines: bool = False) -> str:
    r"""Escape all characters that a terminal would execute or hide.

    The escape character becomes `\x1b`, for example. U+FE0F stays after a symbol, because many emoji end with it. Two
    texts that differ only in such a U+FE0F can therefore look the same.

    Args:
        text: any text.
        lines: True to keep line feeds and replace tabs by spaces.
    """
    if lines:
        return "\n".join(visible(line.expandtabs()) for line in text.split("\n"))
    return "".join(map(_make_visible, text, f" {text}"))


def _make_visible(char: str, before: str) -> str:
    """Escape a character if a terminal would execute or hide it; `before` is the character before it."""
    is_emoji = char == _AS_EMOJI and unicodedata.category(before) == "So"
    return char if is_emoji or not is_unseen(char) else char.encode("unicode_escape").decode()


def quoted(output: str) -> str:
    """Return what a program has printed, with a bar before each line, so that no line looks like a line of the referee.

    Characters that a terminal would execute or hide are escaped. The last line ends with a line feed too. If a terminal wraps a
    long line, the rest of the line has no bar.
    """
    return "".join(
        f"| {line}\n" for line in visible(output, lines=True).removesuffix("\n").split("\n")
    )


def plain(value: object) -> str:
    """Return a value as text: `yes` for True, and `no` for False.

    A tuple becomes its values with spaces between them; an empty tuple becomes a dash.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return spaced(map(plain, value)) if isinstance(value, tuple) else str(value)


def decimal(places: int) -> Callable[[float], str]:
    """Return a function that formats a number with `places` decimal places."""
    return lambda value: f"{value:z.{places}f}"  # z: never -0.0


def estimate(places: int) -> Callable[[Estimate], str]:
    """Return a function that formats an estimate and its interval with `places` decimal places.

    If only one end of the interval is known, the text has only this end, such as `< 3.1`, because the value says little
    without a limit on the other side.
    """

    def show(each: Estimate) -> str:
        if each.low is None and each.high is not None:
            return f"< {decimal(places)(each.high)}"
        if each.low is not None and each.high is None:
            return f"> {decimal(places)(each.low)}"
        return _with_interval(each.value, each.low, each.high, places)

    return show


def percent_estimate(share: Estimate) -> str:
    """Return a share between 0 and 1 with its interval, such as `42 % [38, 46]`."""
    low = None if share.low is None else 100 * share.low
    high = None if share.high is None else 100 * share.high
    return _with_interval(100 * share.value, low, high, 0, " %")


def _with_interval(
    value: float, low: float | None, high: float | None, places: int, unit: str = ""
) -> str:
    """Return a value as text. If both ends of its interval are known, the interval follows.

    If two different ends would be rounded to the same number, all numbers have one more decimal place than `places`.
    """
    show = decimal(places)
    if low is None or high is None:
        return f"{show(value)}{unit}"
    if low < high and show(low) == show(high):
        show = decimal(places + 1)
    return f"{show(value)}{unit} [{show(low)}, {show(high)}]"


def chance(probability: float) -> str:
    """Return a probability as a text such as `42.0 %`. If it is close to 0 or 1, return `< 0.1 %` or `> 99.9 %`."""
    if not _SURELY_NOT <= probability <= 1 - _SURELY_NOT:
        return "> 99.9 %" if probability > _SURELY_NOT else "< 0.1 %"
    return _percentage(probability, 1)


def percent(share: float) -> str:
    """Return a share between 0 and 1 as a text such as `42.0 %`. Only exactly 0 is `0.0 %`, and only exactly 1 is `100.0 %`."""
    return chance(share) if 0 < share < 1 else _percentage(share, 1)


def distinct_percents(one: float, other: float, places: int) -> tuple[str, str]:
    """Return two shares as texts such as `64 %`. Different shares have different texts.

    Both texts have `places` decimal places, or more if needed. A text says 0 % or 100 % only if the share is exactly 0 or 1.
    """
    texts = _percentage(one, places), _percentage(other, places)
    is_rounded_to_0 = min(one, other) > 0 and _percentage(0, places) in texts
    is_rounded_to_1 = max(one, other) < 1 and _percentage(1, places) in texts
    if is_rounded_to_0 or is_rounded_to_1 or (texts[0] == texts[1] and one != other):
        return distinct_percents(one, other, places + 1)
    return texts


def _percentage(share: float, places: int) -> str:
    return f"{share:z.{places}%}".replace("%", " %")


def duration(duration_us: int) -> str:
    """Return microseconds as `120 µs`, `4.2 ms`, `4.2 s`, `3:07 min` or `2:03:07 h`."""
    if duration_us < _MILLISECOND_US:
        return f"{duration_us} µs"
    for unit_us, next_us, name in (
        (_MILLISECOND_US, SECOND_US, "ms"),
        (SECOND_US, _MINUTE_US, "s"),
    ):
        if duration_us < next_us - unit_us / 20:  # else the text would be `1000.0 ms` or `60.0 s`
            return f"{duration_us / unit_us:.1f} {name}"
    minutes, seconds = divmod(round(duration_us / SECOND_US), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02} h" if hours else f"{minutes}:{seconds:02} min"


def game_speed(games_per_s: float) -> str:
    """Return a speed as `2.5 games/s`, and a speed below 0.1 with two digits, as `0.034 games/s`."""
    return f"{games_per_s:{'.1f' if games_per_s >= _SLOW else '.2g'}} games/s"


def memory(size_kib: int) -> str:
    """Return kibibytes as `12.5 MiB`."""
    return f"{size_kib / 1024:.1f} MiB"


def moment(time_us: int) -> str:
    """Return microseconds since 1970 as `2026-01-31 12:59:59 UTC`."""
    return datetime.fromtimestamp(time_us // SECOND_US, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def group_name(cards: Group) -> str:
    """Return the cards of a display slot, bottom card first: `7`, `7+13+J`, or a dash if the slot is empty."""
    return "+".join(map(card_name, cards)) or NOTHING


def counts_name(counts: Counts) -> str:
    """Return cards by value, lowest first, such as `2×3 7 3×12 J`."""
    return spaced(
        card_name(card) if copies == 1 else f"{copies}×{card_name(card)}"
        for card, copies in enumerate(counts)
        if copies
    )


def spaced(parts: Iterable[Any]) -> str:
    """Return the parts with spaces between them, or a dash if `parts` is empty."""
    return " ".join(map(str, parts)) or NOTHING


if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from referee.ratings.intervals import Estimate  # loads numpy and scipy

Row = TypeVar("Row", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class Column:
    """How a table shows a field of a row."""

    title: str
    right: bool = False
    """Align right, for numbers."""
    wrap: bool = False
    """Allow the text to wrap."""
    show: Callable[[Any], str] = plain
    """The function that formats a value other than None."""
    empty: str = NOTHING
    """The text for None."""
    drop: int = 0
    """Columns are hidden on a narrow terminal in the order of `drop`: first 1, then 2, and so on. A column with 0 is never hidden."""
    section: bool = False
    """The field is not a column. Rows with equal values of the field form one table, with the value in the title."""
    data_only: bool = False
    """The field is in JSON and CSV. A table has it only on request: with `--columns`, or with `data` in `web/tables.py`."""
    interval: bool = False
    """The field is an `Estimate`. In JSON and CSV it has three keys: `NAME`, `NAME_low` and `NAME_high`."""


class Field(NamedTuple):
    """A field of a row type: its key in JSON and CSV, and its `Column`."""

    key: str
    column: Column


def row_from(row_type: type[Row], figures: object, /, **others: object) -> Row:
    """Make a row from an object whose attributes have the names of the row's fields.

    Args:
        row_type: the type of the row.
        figures: the object with the attributes.
        others: values of fields. They replace attributes of `figures` with the same name.

    Raises AttributeError if an attribute is missing.
    """
    keys = (field.name for field in fields(row_type) if field.name not in others)
    return row_type(**{key: getattr(figures, key) for key in keys}, **others)


def keys_of(row_type: type, fields: Iterable[Field] | None = None) -> list[str]:
    """Return the keys of `fields` in JSON and CSV, in their order; by default the keys of all fields of the row type."""
    return [
        key
        for field in fields or fields_of(row_type)
        for key in (_interval_keys(field.key) if field.column.interval else (field.key,))
    ]


def items_of(row: object, fields: Iterable[Field] | None = None) -> Iterator[tuple[str, Any]]:
    """Yield each key of a row, in the order of `keys_of`, with its value."""
    for key, column in fields or fields_of(type(row)):
        value = getattr(row, key)
        if not column.interval:
            yield key, value
            continue
        parts = (None, None, None) if value is None else (value.value, value.low, value.high)
        yield from zip(_interval_keys(key), parts, strict=True)


def _interval_keys(key: str) -> tuple[str, str, str]:
    return key, f"{key}_low", f"{key}_high"


def fields_of(row_type: type) -> tuple[Field, ...]:
    """Return the fields of a row type, in the order of their declaration."""
    hints = get_type_hints(row_type, include_extras=True)
    return tuple(Field(key, hint.__metadata__[0]) for key, hint in hints.items())


def find_fields(row_type: type, names: str) -> tuple[Field, ...]:
    """Return the fields that a user asks for, in the order of `names`.

    Args:
        row_type: the type of the rows.
        names: the names of columns, with commas between them. A column is named by one of its keys, or by its title in the
            table, with or without the bracket: `fit`, `fit_low` and `fit [95 %]` all name the column with the keys `fit`,
            `fit_low` and `fit_high`. Case is ignored; a space counts as `_`.

    Raises UserError if a name belongs to no column.
    """
    fields = fields_of(row_type)
    known = {_as_key(field.column.title): field for field in fields}
    known |= {title_key(field.column): field for field in fields}
    known |= {key: field for field in fields for key in keys_of(row_type, [field])}
    wanted = [_as_key(name.strip()) for name in names.split(",")]
    for name in wanted:
        if name not in known:
            keys = [field.key for field in fields]
            raise UserError(
                f"--columns: no column {name!r}{did_you_mean(name, known)}; there are {', '.join(keys)}"
            )
    return tuple(dict.fromkeys(known[name] for name in wanted))


def title_key(column: Column) -> str:
    """Return the key that belongs to the title of a column: `points_more` for `points more [95 %]`.

    If the values have a unit, the name of the field is this key with a suffix: `_us` or `_kib`, or `_at_us` for a
    moment. The column `#` is an exception, because `#` cannot be a key: its field is `rank`.
    """
    return _as_key(column.title.partition(" [")[0])


def _as_key(name: str) -> str:
    return name.lower().replace(" ", "_")


def json_text(value: object) -> str:
    """Return a value as JSON, without a line feed at the end. The value may contain rows."""
    return json.dumps(_json_value(value), indent=2)


def csv_text(row_type: type, rows: Iterable[object], fields: Iterable[Field] | None = None) -> str:
    """Return rows as CSV: a line of keys, then a line for each row.

    The format is RFC 4180, but lines end with a line feed only. The values of a tuple have spaces between them. None
    is an empty cell. The authors of bots choose some of the texts, and must not be able to run formulas in a spreadsheet.
    So a text that a spreadsheet would treat as a formula gets an apostrophe before it. Numbers get none.

    Args:
        row_type: the type of the rows.
        rows: the rows.
        fields: the fields to write; by default all.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(keys_of(row_type, fields))
    writer.writerows([_cell(value) for _, value in items_of(row, fields)] for row in rows)
    return text.getvalue()


def _json_value(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {key: _json_value(part) for key, part in items_of(value)}
    if isinstance(value, Mapping):
        return {str(key): _json_value(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [_json_value(part) for part in value]
    return value


def _cell(value: object) -> str:
    text = _cell_text(value)
    first = value[0] if isinstance(value, tuple) and value else value
    return f"'{text}" if isinstance(first, str) and text.startswith(_FORMULA_STARTS) else text


def _cell_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return " ".join(map(_cell_text, value))
    return visible(str(value))
