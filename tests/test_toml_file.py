"""Test that TOML files are checked against a model, and that errors name file, key and reason."""

import os
import time
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

from referee import toml_file
from referee.errors import UserError
from referee.toml_file import FileModel


class Entry(FileModel):
    size: Annotated[int, Field(multiple_of=3)] = 3


class File(FileModel):
    entries: Annotated[tuple[Entry, ...], Field(strict=False)] = ()


def error_of(path):
    with pytest.raises(UserError) as caught:
        toml_file.load(path, File)
    return str(caught.value)


def write(tmp_path, text):
    path = tmp_path / "some.toml"
    path.write_text(text)
    return path


def test_valid_file_is_loaded_into_its_model(tmp_path):
    path = write(tmp_path, "[[entries]]\nsize = 6\n[[entries]]\n")
    assert toml_file.load(path, File) == File(entries=(Entry(size=6), Entry()))


def test_error_names_the_dotted_key_with_entries_counted_from_zero(tmp_path):
    path = write(tmp_path, "[[entries]]\n[[entries]]\nshape = 1\n")
    assert error_of(path) == f"{path}: entries[1].shape: unknown key"


def test_other_errors_have_the_message_of_pydantic(tmp_path):
    path = write(tmp_path, "[[entries]]\nsize = 7\n")
    assert error_of(path) == f"{path}: entries[0].size: Input should be a multiple of 3"


def test_each_mistake_has_a_line_and_unknown_keys_come_first(tmp_path):
    path = write(tmp_path, '[[entries]]\nsize = 7\n[[entries]]\nsiez = 3\n"a\\nb" = 1\n')
    assert error_of(path).splitlines() == [
        f"{path}: entries[1].siez: unknown key (did you mean 'size'?)",
        f'{path}: entries[1]."a\\nb": unknown key',
        f"{path}: entries[0].size: Input should be a multiple of 3",
    ]


def test_14_000_unknown_keys_are_reported_quickly(tmp_path):
    path = write(tmp_path, "".join(f"e{number}=1\n" for number in range(14_000)))
    began = time.process_time()
    assert error_of(path).count("unknown key") == 14_000
    assert time.process_time() - began < 2


def test_byte_order_mark_is_named_as_the_reason(tmp_path):
    path = tmp_path / "some.toml"
    path.write_bytes(b"\xef\xbb\xbf[[entries]]\n")
    assert error_of(path) == (
        f"{path}: begins with a byte order mark, which TOML does not allow;"
        " save it as UTF-8 without this mark (without BOM)"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = 1\n  a = 2 # again\n", "line 2: a: given twice"),
        ("a.b-c = 1\na.b-c=2", "end of document: a.b-c: given twice"),
        ('a = 1\n"a" = 2\n', "line 2: Cannot overwrite a value"),
        ("a = 1\na = [\n1]\n", "line 3: Cannot overwrite a value"),
        ('a = 1\na = """\nb = 2"""\n', "line 3: Cannot overwrite a value"),
        ("a = 1\n[a]\nb = 2\n", "line 2: Cannot overwrite a value"),
    ],
)
def test_key_that_is_given_twice_is_named_if_its_line_begins_with_it(tmp_path, text, says):
    path = write(tmp_path, text)
    assert error_of(path) == f"{path}: {says}"


class Needy(FileModel):
    command: str
    place: str


def test_misspelt_key_is_one_mistake_and_no_missing_key(tmp_path):
    path = write(tmp_path, 'comand = "x"\n')
    with pytest.raises(UserError) as caught:
        toml_file.load(path, Needy)
    assert caught.value.args == (
        f"{path}: comand: unknown key (did you mean 'command'?)",
        f"{path}: place: missing",
    )


def test_pipe_is_refused_without_reading_it(tmp_path):
    path = tmp_path / "some.toml"
    os.mkfifo(path)
    assert error_of(path) == f"{path}: not a file"


def test_path_that_is_too_long_is_refused(tmp_path):
    path = tmp_path / ("x" * 300)
    reasons = ("File name too long", "no such file")  # newer Pythons do not tell them apart
    assert error_of(path) in [f"{path}: {reason}" for reason in reasons]


def test_is_folder_is_false_for_missing_and_impossible_paths(tmp_path):
    assert toml_file.is_folder(tmp_path)
    assert not toml_file.is_folder(tmp_path / "nothing")
    assert not toml_file.is_folder(tmp_path / ("x" * 300))
    assert not toml_file.is_folder(tmp_path / "a\0b")


KEY = ".".join("a" * 20_000)
TOO_MUCH = {
    "digits": ("x = 1\ny = " + "9" * 5_000, "line 2: a number has too many digits"),
    "hexadecimal digits": ("x = [1, 0x" + "F" * 60_000 + "]", "x[1]: the number is too large"),
    "dotted key": (f"x = 1\n\n{KEY} = 1", "line 3: a key has at most 32 parts"),
    "dotted key of a table": (f"[{KEY}]", "line 1: a key has at most 32 parts"),
    "dotted key of an inline table": (
        'x = { "a"' + '."a"' * 20_000 + " = 1 }",
        "line 1: a key has at most 32 parts",
    ),
    "spaced key": (" . ".join("a" * 20_000) + " = 1", "line 1: a key has at most 32 parts"),
    "lists": ("x = " + "[" * 60_000, "its lists or tables are nested too deeply"),
    "tables": ("x = " + "{a = " * 20_000, "its lists or tables are nested too deeply"),
    "bytes": ("#" * 200_000, "more than 128 KiB"),
    "name": (f"{'k' * 1_000} = 1", f"{'k' * 150}…{'k' * 150}: unknown key"),
}


@pytest.mark.parametrize("case", TOO_MUCH)
def test_too_large_content_is_refused_with_its_place(tmp_path, case):
    text, says = TOO_MUCH[case]
    path = write(tmp_path, text)
    assert error_of(path) == f"{path}: {says}"


def test_long_texts_and_large_numbers_are_no_error(tmp_path):
    text = f'hash = "{"f" * 64}"\nlink = "{"www.example.org/a.b." * 7}"\n# 1.2.3.4.5\n'
    key = ".".join("a" * 32)
    path = write(tmp_path, f"{text}most = {10**300}\nleast = {-(1 << 63)}\n{key} = 1\n")
    assert toml_file.read(path)["most"] == 10**300


def test_file_that_is_replaced_by_a_pipe_meanwhile_does_not_block(tmp_path):
    path = write(tmp_path, "")

    def replace_and_open(path, flags):
        path.unlink()
        os.mkfifo(path)
        return os.open(path, flags)

    with pytest.raises(UserError) as caught:
        toml_file.read(path, replace_and_open)
    assert str(caught.value) == f"{path}: not a file"


def test_written_content_is_read_again():
    content = {
        "text": 'a "quoted" \\ line\nwith é, \x01 and \x7f',
        "yes": True,
        "numbers": [1, -2.5],
        "inner": [{"a": 1, "b": {"c": "d"}}],
        "clocks": {"bank": "30+0.1", "more": {"x": False}},
        "empty": {},
    }
    assert toml_file.parse(Path("some.toml"), toml_file.write(content)) == content
