"""Tests which part of a program's output is kept, and how it is shown."""

import asyncio

import pytest

from referee.sandbox.launcher import DEFAULT_KEPT_BYTES, Output


def output_with(*chunks):
    output = Output()
    for chunk in chunks:
        output.add(chunk)
    return output


def test_short_output_is_kept_whole():
    output = output_with(b"one ", b"two\n", b"three")
    assert output.last_bytes() == b"one two\nthree"
    assert output.total == 13


def test_end_of_a_long_output_is_kept():
    chunks = [bytes([number % 256]) * 65_536 for number in range(100)]
    output = output_with(*chunks)
    assert output.last_bytes() == b"".join(chunks)[-DEFAULT_KEPT_BYTES:]
    assert output.total == 100 * 65_536


def test_memory_is_bounded_for_single_bytes():
    output = Output(100)
    for number in range(1000):
        output.add(bytes([number % 251]))
        assert len(output._bytes) <= 200
    assert output.last_bytes() == bytes(number % 251 for number in range(900, 1000))


def test_end_of_a_chunk_larger_than_the_limit_is_kept():
    output = output_with(b"a" * (3 * DEFAULT_KEPT_BYTES) + b"end")
    assert len(output.last_bytes()) == DEFAULT_KEPT_BYTES
    assert output.tail(4) == "aend"


@pytest.mark.parametrize("written", [b"", b"earlier program", b"a" * (3 * DEFAULT_KEPT_BYTES)])
def test_tail_of_no_bytes_is_empty(written):
    assert output_with(written).tail(0) == ""


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (b"plain\n\ttext\n", "plain\n\ttext\n"),
        ("grün → ✓".encode(), "grün → ✓"),
        (b"\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        (b"\x1b]0;title\x07", r"\x1b]0;title\x07"),
        (b"over\rwritten", r"over\rwritten"),
        (b"nul\x00 del\x7f", r"nul\x00 del\x7f"),
        (
            "\u009b31m \u202eright to left\u2028line".encode(),
            r"\x9b31m \u202eright to left\u2028line",
        ),
        (b"\xff\xfe bytes", r"\xff\xfe bytes"),
        (b"a\\b", "a\\b"),
        (b"", ""),
    ],
)
def test_tail_escapes_control_characters(written, text):
    assert output_with(written).tail(4096) == text


def test_tail_that_begins_inside_a_character_is_escaped():
    assert output_with("ab→".encode()).tail(2) == r"\x86\x92"


async def test_draining_a_pipe_that_is_never_empty_lets_other_tasks_run():
    pipe = asyncio.StreamReader()
    pipe.feed_data(b"x" * (1 << 20))
    output = Output()
    draining = asyncio.ensure_future(output.drain(pipe))
    turns = 0
    while output.total < 1 << 20:
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 16
    pipe.feed_eof()
    await draining
