"""Read a TOML file into a pydantic model, which checks the file, and report each mistake in one line. Write TOML files.

The files come from strangers. So this module has limits, which keep the time to read a file short, whatever the file
contains.

The models are defined in `bots.manifest` and `tournament.config_file`. They say which keys a file may have. This
module knows only how to read a file and how to word an error.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails

from referee.errors import UserError, cut_middle, find_similar, is_unseen

MAX_KIB = 128
"""The largest size of a file, in KiB."""
MAX_NAME = 32
"""The largest number of characters of a `Name`."""
MAX_KEY_PARTS = 32
"""The largest number of parts in a dotted key. The time to read a key grows with the square of the number of parts."""
_LONG_KEY = re.compile(
    rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MAX_KEY_PARTS}}}"""
)
"""Matches the beginning of a dotted key with more than `MAX_KEY_PARTS` parts. It cannot tell keys from texts and
comments, so it also matches words with that many dots between them there."""
_LONG_NUMBER = re.compile(r"[0-9][0-9_]{4299}")
"""Matches a number with 4,300 or more digits, and also shorter numbers with many underscores. Python refuses to convert
more than 4,300 digits to a whole number, but does not name the line of the number. So the error names the line of the
first match. This is a guess, because the match may be another number, or part of a text or a comment."""
_MAX_BITS = 1024
"""The largest number of bits in a whole number. Python cannot write a number with more than 4,300 decimal digits into a
message, but it reads such a number if the file has it in hexadecimal."""
_MAX_MESSAGE = 300
"""A key or a reason with more characters is shortened in messages, because it may contain a long part of the file."""
_MAX_SUGGESTIONS = 20
"""Only this many unknown keys can get a suggestion. A file can have thousands of unknown keys, and each search for a
similar known key takes a part of a millisecond."""
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_NAME = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{MAX_NAME - 1}}}")
_LINE = re.compile(r"(?=.*\S)[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,200}")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
"""Python decodes each byte of the command line that is not UTF-8 to a surrogate."""
_SYNTAX_ERROR = re.compile(
    r"(?P<reason>.*) \(at (?P<place>line (?P<line>\d+)|.*?)(?:, column \d+)?\)", re.DOTALL
)
_DUPLICATE_KEY_REASON = "Cannot overwrite a value"
"""What Python says about a key that is given twice."""
_KEY_OF_LINE = re.compile(r"""[ \t]*+(?P<key>[\w.-]++)[ \t]*+=(?!.*(?:\"{3}|'{3}))""")
"""Matches the beginning of a line with a key and a value. A line with three quotes after the `=` does not match, because
it may be the last line of a text with several lines. In such a line, the word before the `=` is no key."""

_REASONS = {
    "missing": "missing",
    "model_type": "must be a table",
    "tuple_type": "must be a list",
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "enum": "must be {expected}",
    "literal_error": "must be {expected}",
    "too_short": "must not be empty",
    "too_long": "must have at most {max_length} entries",
    "string_too_long": "must have at most {max_length} characters",
    "greater_than": "must be more than {gt:.12g}",
    "greater_than_equal": "must be at least {ge:.12g}",
    "less_than_equal": "must be at most {le:.12g}",
    "value_error": "{error}",
}
"""The message for each of pydantic's error types. Pydantic gives the values for placeholders such as `{gt}`."""


class FileModel(BaseModel):
    """A table of a TOML file. Unknown keys are errors. A value of a wrong type is an error too, such as a number in quotes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _check_name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise ValueError(
            f"{text!r} is not a valid name: use 1 to {MAX_NAME} of a-z, 0-9, - and _, beginning with a letter or digit"
        )
    return text


def _check_line(text: str) -> str:
    if _SURROGATE.search(text) is not None:
        raise ValueError("must be UTF-8 text")
    is_blank = all(char.isspace() or is_unseen(char) for char in text)
    if is_blank or _LINE.fullmatch(text) is None:
        raise ValueError(
            "must be 1 to 200 characters on one line, at least one of them visible, without control characters"
        )
    return text


def text_schema(pattern: re.Pattern[str]) -> WithJsonSchema:
    """Return the JSON Schema of a text that must match `pattern` as a whole."""
    return WithJsonSchema({"type": "string", "pattern": f"^(?:{pattern.pattern})$"})


Name = Annotated[str, AfterValidator(_check_name), text_schema(_NAME)]
"""The name of a bot or a tournament: easy to type in a shell and safe in a file name."""
Line = Annotated[str, AfterValidator(_check_line), text_schema(_LINE)]
"""One line of 1 to 200 characters without control characters. At least one character is visible. Others may be hidden,
so pass the line through `reports.formats.visible` before you print it."""

Model = TypeVar("Model", bound=BaseModel)
Opener = Callable[[Path, int], int]
"""Opens a path with flags, as `os.open` does, and returns the descriptor."""


class Mistakes:
    """Collect mistakes that the model of a file cannot find, such as values that contradict each other.

    The code that reads the file notes each mistake with `add`. At the end it calls `raise_all`.

    Args:
        path: the path of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: list[str] = []

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, key: str, reason: str) -> None:
        """Note a mistake. A mistake that is noted already does not count again."""
        line = f"{self._path}: {key}: {reason}"
        if line not in self._lines:
            self._lines.append(line)

    def raise_all(self) -> None:
        """Raise UserError with one line for each noted mistake. Do nothing if there is no mistake."""
        if self._lines:
            raise UserError(*self._lines)


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a file, for editors: its keys, with their types, ranges and default values.

    An editor with this schema checks each value alone. `check` and the functions that use the model find more mistakes.
    """
    schema: dict[str, Any] = _without_null(model.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _without_null(schema: Any) -> Any:
    """Remove null from a schema, because TOML has no null: a key without a value is left out.

    Remove also the titles of keys. Remove also the default value of a whole table, because the keys of the table have
    their own default values.
    """
    if isinstance(schema, list):
        return [_without_null(part) for part in schema if part != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: _without_null(part)
        for key, part in schema.items()
        if not (key == "default" and (part is None or isinstance(part, dict)))
        and not (key == "title" and isinstance(part, str))
    }
    only = kept.get("anyOf", ())
    return (
        {**only[0], **{key: kept[key] for key in kept if key != "anyOf"}}
        if len(only) == 1
        else kept
    )


def load(path: Path, model: type[Model], opener: Opener = os.open) -> Model:
    """Read the TOML file `path`, check its content against `model`, and return the content as a `model`.

    Raises `UserError` if the file cannot be read or is not TOML (`FILE: reason`), or if its content does not fit
    the model (`FILE: KEY: reason`, one line for each mistake).
    """
    return check(read(path, opener), model, path)


def read(path: Path, opener: Opener = os.open) -> dict[str, Any]:
    """Parse a TOML file and return its content. `opener` opens the file.

    Raises `UserError` if the file is missing, cannot be read, is not TOML, or exceeds a limit of this module. For a
    syntax error the message names the line, or says that the error is at the end of the document.
    """
    try:
        data = _read_bytes(path, opener)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UserError(f"{path}: no such file") from error
    except OSError as error:
        reason = "not a file" if error.errno == errno.ENXIO else error.strerror  # ENXIO: a socket
        raise UserError(f"{path}: {reason}") from error
    if len(data) > MAX_KIB << 10:
        raise UserError(f"{path}: more than {MAX_KIB} KiB")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text") from error
    if text.startswith("\ufeff"):
        raise UserError(
            f"{path}: begins with a byte order mark, which TOML does not allow;"
            " save it as UTF-8 without this mark (without BOM)"
        )
    return parse(path, text)


def _read_bytes(path: Path, opener: Opener) -> bytes:
    """Return the content of a file, but at most `MAX_KIB` KiB and one byte.

    The extra byte shows the caller that the file is too large. Raises `UserError` if the path is no regular file. This is
    checked only after `open`, because a program could replace the file between a check and `open`.
    """
    descriptor = opener(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UserError(f"{path}: not a file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read((MAX_KIB << 10) + 1)
    finally:
        os.close(descriptor)


def parse(path: Path, text: str) -> dict[str, Any]:
    """Return the content of the file `path`, whose text is `text`. Raises `UserError` as `read` does."""
    refuse_long_keys(path, text)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: {_shorten(_syntax_reason(str(error), text))}") from error
    except RecursionError as error:
        raise UserError(f"{path}: its lists or tables are nested too deeply") from error
    except ValueError as error:
        number = _LONG_NUMBER.search(text)
        place = "" if number is None else f"{_place(number)}: "
        raise UserError(f"{path}: {place}a number has too many digits") from error
    for location, value in _values(content):
        if isinstance(value, int) and value.bit_length() > _MAX_BITS:
            raise UserError(f"{path}: {_dotted(location)}: the number is too large")
    return content


def refuse_long_keys(path: Path, text: str) -> None:
    """Raise `UserError` if a dotted key of a TOML file has more than `MAX_KEY_PARTS` parts."""
    if (key := _LONG_KEY.search(text)) is not None:
        raise UserError(f"{path}: {_place(key)}: a key has at most {MAX_KEY_PARTS} parts")


def write(content: Mapping[str, Any]) -> str:
    """Return the text of a TOML file: first all plain values, then each table under its name in brackets.

    Args:
        content: values as `read` returns them. Tables inside of tables and lists are written on one line.
    """
    tables = {key: value for key, value in content.items() if isinstance(value, Mapping)}
    lines = [_assignment(key, value) for key, value in content.items() if key not in tables]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(_assignment(*each) for each in table.items())]
    return "".join(f"{line}\n" for line in lines)


def _assignment(key: str, value: object) -> str:
    return f"{key} = {write_value(value)}"


def write_value(value: object) -> str:
    """Return a value as TOML on one line. Strings are as in JSON, except that TOML escapes the character DEL too."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(_assignment(*each) for each in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(write_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _place(match: re.Match[str]) -> str:
    return f"line {match.string.count(chr(10), 0, match.start()) + 1}"


def _values(content: object) -> Iterator[tuple[tuple[int | str, ...], object]]:
    """Yield each value in tables and lists, with its location."""
    waiting: list[tuple[tuple[int | str, ...], object]] = [((), content)]
    while waiting:
        location, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*location, key), part) for key, part in value.items()]
        elif isinstance(value, list):
            waiting += [((*location, number), part) for number, part in enumerate(value)]
        else:
            yield location, value


def is_folder(path: Path) -> bool:
    """Return whether `path` is an existing folder; False also if the system rejects the path."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def explain_no_folder(path: Path) -> str:
    """Return why `is_folder` is False for `path`: it is a file, or it does not exist."""
    try:
        return "is a file; name its folder" if path.is_file() else "no such folder"
    except (OSError, ValueError):
        return "no such folder"


def check(data: Mapping[str, Any], model: type[Model], path: Path) -> Model:
    """Check `data`, the parsed content of the file `path`, against `model`, and return it as a `model`.

    Raises `UserError` (`FILE: KEY: reason`, one line for each mistake) if the data does not fit.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = _list_mistakes(error.errors(), model)
        raise UserError(*(f"{path}: {line}" for line in lines)) from error


def _syntax_reason(message: str, text: str) -> str:
    """Return the reason of a syntax error with its place in front, from Python's `message` about the file with this `text`.

    If a key is given twice, the reason names the key, if this key can be found in the line of the error.
    """
    match = _SYNTAX_ERROR.fullmatch(message)
    if match is None:
        return message
    place = match["place"]
    if match["reason"] == _DUPLICATE_KEY_REASON:
        # at the end of the document, Python names no line; index -1 is the last one
        line = text.split("\n")[int(match["line"] or 0) - 1]
        if (key := _KEY_OF_LINE.match(line)) is not None:
            return f"{place}: {key['key']}: given twice"
    return f"{place}: {match['reason']}"


def _list_mistakes(errors: Sequence[ErrorDetails], model: type[BaseModel]) -> list[str]:
    """Return a line for each mistake, unknown keys first.

    A misspelt key causes two errors, an unknown key and a missing key. Only the unknown key is reported, with the missing
    key as a suggestion. A top-level key that was written below a `[table]` also causes both errors, and also gets one line.
    """
    unknown = {
        error["loc"]: error["input"] for error in errors if error["type"] == "extra_forbidden"
    }
    hints: dict[tuple[int | str, ...], str] = {}
    """What to write instead of an unknown key, by the location of the unknown key."""
    missing: set[tuple[int | str, ...]] = set()
    """The locations of the known keys in `hints`."""
    for number, ((*table, key), value) in enumerate(unknown.items()):
        if table and key in model.model_fields and not isinstance(value, Mapping):
            hints[*table, key] = f" (write {key!r} above the first [table])"
            missing.add((key,))
        elif number < _MAX_SUGGESTIONS:
            similar = find_similar(str(key), _find_keys(model, table))
            if similar is not None:
                hints[*table, key] = f" (did you mean {similar!r}?)"
                missing.add((*table, similar))
    return [
        f"{_shorten(_dotted(location))}: unknown key{hints.get(location, '')}"
        for location in unknown
    ] + [
        f"{_shorten(_dotted(error['loc']))}: {_shorten(_reason(error))}"
        for error in errors
        if error["type"] != "extra_forbidden"
        and (error["type"] != "missing" or error["loc"] not in missing)
        and (error["type"] != "too_short" or not _has_inner(error["loc"], errors))
    ]


def _has_inner(location: Sequence[int | str], errors: Sequence[ErrorDetails]) -> bool:
    """Return True if there is an error in an entry of the list at `location`.

    Pydantic does not count wrong entries. If all entries are wrong, it also says that the list is too short, though the
    list is not empty.
    """
    size = len(location)
    return any(
        len(error["loc"]) > size and error["loc"][:size] == tuple(location) for error in errors
    )


def _find_keys(model: type[BaseModel], table: Sequence[int | str]) -> list[str]:
    """Return the keys that the table at the location `table` may have."""
    for part in table:
        if isinstance(part, str):
            model = next(_models_in(model.model_fields[part].annotation))
    return list(model.model_fields)


def is_text(model: type[BaseModel], key: str) -> bool:
    """Return True if `model` allows a text as the value of the dotted key `key`. Parts of the key may have quotes."""
    *table, last = (part.strip(" \t\"'") for part in key.split("."))
    for part in table:
        field = model.model_fields.get(part)
        inner = None if field is None else next(_models_in(field.annotation), None)
        if inner is None:
            return False
        model = inner
    return last in model.model_fields and _has_text(model.model_fields[last].annotation)


def _has_text(annotation: object) -> bool:
    """Return True if `str` is one of the types in a type such as `Annotated[str, …] | None`."""
    return annotation is str or any(map(_has_text, get_args(annotation)))


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models in a type such as `tuple[StageTable, ...] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _shorten(text: str) -> str:
    return cut_middle(text, _MAX_MESSAGE)


def _dotted(location: tuple[int | str, ...]) -> str:
    """Return a location as text, such as `run.command` or `stage[1].seats`; entries of a list count from 0.

    A key that TOML requires in quotes is written with quotes and with its line breaks escaped, so that the text has only
    one line.
    """
    key = "".join(
        f"[{part}]" if isinstance(part, int) else f".{_quoted(part)}" for part in location
    )
    return key.removeprefix(".")


def _quoted(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else json.dumps(key)


def _reason(error: ErrorDetails) -> str:
    reason = _REASONS.get(error["type"])
    return error["msg"] if reason is None else reason.format(**error.get("ctx", {}))
