"""Rows as data: JSON and CSV, with the field names of the row types as keys.

Every value is there, unrounded, in the unit that its name says. Both texts are safe to print: they
hold no control characters, whatever a bot was called or wrote.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from enum import Enum

from referee.reports.columns import items_of, keys_of
from referee.reports.show import visible


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
