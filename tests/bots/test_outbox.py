"""Test how an outbox writes: at once, in order, and never after the end of the stream."""

import asyncio

import grpc
import pytest
from fakes import FakeStream, FakeTime

from referee.bots.clock import PendingRequest
from referee.bots.outbox import Outbox


@pytest.fixture
def time():
    return FakeTime()


@pytest.fixture
def heard():
    """What the outbox has said: `closed` or `unread`."""
    return []


@pytest.fixture
def outbox(time, heard):
    return Outbox(
        time.clock,
        on_closed=lambda: heard.append("closed"),
        on_unread=lambda: heard.append("unread"),
    )


async def write_two(outbox, stream):
    """Write two messages, and then let the bot read."""
    outbox.open(stream)
    outbox.write(b"a")
    outbox.write(b"b")
    stream.writable.set()
    await asyncio.sleep(0.01)


async def test_write_begins_at_once(outbox):
    stream = FakeStream()
    outbox.open(stream)
    outbox.write(b"a")
    assert stream.written == [b"a"]


async def test_removed_request_is_in_no_batch(outbox):
    removed, kept = (
        PendingRequest(game, 1, 1_000, asyncio.get_running_loop().create_future()) for game in "ab"
    )
    outbox.put_request(b"a", removed)
    outbox.put_request(b"b", kept)
    outbox.remove(removed)
    assert outbox.waiting == 1
    assert outbox.take_batch(None) == (b"b", [kept])


async def test_many_messages_behind_a_slow_write_are_written_in_order(outbox):
    stream = FakeStream()
    stream.writable.clear()
    outbox.open(stream)
    messages = [str(number).encode() for number in range(5_000)]
    for message in messages:
        outbox.write(message)
    assert stream.written == messages[:1]
    stream.writable.set()
    await asyncio.sleep(0.01)
    assert stream.written == messages


@pytest.mark.parametrize("error", [asyncio.CancelledError(), grpc.aio.UsageError("finished")])
@pytest.mark.parametrize("is_slow", [False, True])
async def test_end_of_the_stream_during_a_write_ends_the_writing(outbox, heard, error, is_slow):
    class EndedStream(FakeStream):
        async def write(self, data):
            await super().write(data)
            raise error

    stream = EndedStream()
    if is_slow:
        stream.writable.clear()
    await write_two(outbox, stream)
    assert heard == ["closed"]
    assert stream.written == [b"a"]


async def test_error_of_the_referee_during_a_write_reaches_the_caller_and_blocks_no_later_write(
    outbox, heard
):
    class BrokenStream(FakeStream):
        async def write(self, data):
            if data == b"a":
                raise ZeroDivisionError
            await super().write(data)

    stream = BrokenStream()
    outbox.open(stream)
    with pytest.raises(ZeroDivisionError):
        outbox.write(b"a")
    outbox.write(b"b")
    assert stream.written == [b"b"]
    assert heard == []


async def test_error_of_the_referee_in_a_slow_write_does_not_block_the_next_message(outbox, heard):
    class BrokenStream(FakeStream):
        async def write(self, data):
            await super().write(data)
            if data == b"a":
                raise ZeroDivisionError

    errors = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _loop, context: errors.append(type(context["exception"]))
    )
    stream = BrokenStream()
    stream.writable.clear()
    await write_two(outbox, stream)
    assert stream.written == [b"a", b"b"]
    assert (errors, heard) == ([ZeroDivisionError], [])


async def test_write_that_ends_after_the_outbox_was_closed_is_not_called_unread(
    outbox, time, heard
):
    stream = FakeStream()
    stream.writable.clear()
    outbox.open(stream)
    outbox.write(b"a")
    outbox.write(b"b")
    outbox.limit_write(1)
    outbox.close()
    stream.writable.set()
    await asyncio.sleep(0.01)
    time.pass_us(10_000_000)
    assert heard == []
    assert stream.written == [b"a"]
