"""Test that visitors hear of changes, that one poll serves all of them, and that nothing is queued for them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from unittest.mock import MagicMock

import pytest
from starlette.exceptions import HTTPException

from referee.errors import UserError
from referee.web import serve
from referee.web.serve import Feed

PATIENCE_S = 20


class Mark:
    """The mark of a league that counts how often it is read."""

    def __init__(self):
        self.value = 0
        self.reads = 0
        self.error = None

    def read(self):
        self.reads += 1
        if self.error is not None:
            raise self.error
        return self.value


@pytest.fixture
def mark(monkeypatch):
    monkeypatch.setattr(serve, "POLL_S", 0.001)
    monkeypatch.setattr(serve, "PAUSE_S", 0.001)
    return Mark()


async def following(events):
    """Return the next event as text."""
    async with asyncio.timeout(PATIENCE_S):
        return (await anext(events)).encode().decode()


async def two_polls(mark):
    """Wait for two polls."""
    before = mark.reads
    async with asyncio.timeout(PATIENCE_S):
        while mark.reads < before + 2:  # noqa: ASYNC110 - the feed has no event for it
            await asyncio.sleep(0.001)


async def test_stream_begins_with_an_event(mark):
    async with aclosing(Feed(mark.read).events()) as events:
        assert "event: change" in await following(events)


async def test_each_change_makes_an_event(mark):
    feed = Feed(mark.read)
    async with aclosing(feed.events()) as events:
        await following(events)
        await following(events)
        for mark.value in range(1, 4):
            assert "event: change" in await following(events)


async def test_no_change_makes_no_event(mark):
    feed = Feed(mark.read)
    async with aclosing(feed.events()) as events:
        await following(events)
        await following(events)  # the first poll
        waiting = asyncio.create_task(anext(events))
        await two_polls(mark)
        assert not waiting.done()
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting


async def test_visitor_that_reads_late_gets_one_event_for_many_changes(mark):
    feed = Feed(mark.read)
    async with aclosing(feed.events()) as late:
        first = await following(late)
        for mark.value in range(1, 50):
            await two_polls(mark)
        second = await following(late)
        waiting = asyncio.create_task(anext(late))
        await two_polls(mark)
        assert not waiting.done()
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
    assert [text.count("event: change") for text in (first, second)] == [1, 1]


async def test_one_poll_serves_all_visitors(mark):
    feed = Feed(mark.read)
    visitors = [feed.events() for _ in range(100)]
    for events in visitors:
        await following(events)
    tasks = [task for task in asyncio.all_tasks() if "_watch" in repr(task)]
    assert (feed.visitors, len(tasks)) == (100, 1)
    for events in visitors:
        await events.aclose()
    assert feed.visitors == 0
    await asyncio.gather(*tasks, return_exceptions=True)
    assert tasks[0].cancelled()


async def test_league_that_cannot_be_read_for_a_while_ends_no_stream(mark):
    feed = Feed(mark.read)
    async with aclosing(feed.events()) as events:
        await following(events)
        mark.error = UserError("the database is busy")
        await two_polls(mark)
        mark.error, mark.value = None, 7
        assert "event: change" in await following(events)


async def test_bug_ends_no_stream_and_is_printed_once(mark, monkeypatch):
    log = MagicMock()
    monkeypatch.setattr(serve, "LOG", log)
    feed = Feed(mark.read)
    async with aclosing(feed.events()) as events:
        await following(events)
        mark.error = RuntimeError("can't start new thread")
        await two_polls(mark)
        await two_polls(mark)
        mark.error, mark.value = None, 7
        assert "event: change" in await following(events)
    log.exception.assert_called_once_with("The changes of the league cannot be read.")


async def test_closed_feed_ends_streams_at_once(mark, monkeypatch):
    monkeypatch.setattr(serve, "PAUSE_S", 1000)
    feed = Feed(mark.read)
    events = feed.events()
    await following(events)
    waiting = asyncio.create_task(anext(events))
    await two_polls(mark)
    feed.close()
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(StopAsyncIteration):
            await waiting


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_one_stream_too_many_is_refused_until_another_one_ends(mark, method):
    feed = Feed(mark.read, limit=1)
    stream = await feed.respond(None)
    with pytest.raises(HTTPException) as caught:
        await feed.respond(None)
    assert caught.value.status_code == 503
    await stream({"type": "http", "method": method}, leave, ignore)
    assert (await feed.respond(None)).status_code == 200


async def leave():
    return {"type": "http.disconnect"}


async def ignore(_message):
    """Take a message of a response."""


async def test_unexpected_error_after_a_good_poll_is_printed_again(mark, monkeypatch):
    log = MagicMock()
    monkeypatch.setattr(serve, "LOG", log)
    async with aclosing(Feed(mark.read).events()) as events:
        await following(events)
        for value in (7, 8):
            mark.error = RuntimeError("broken")
            await two_polls(mark)
            mark.error, mark.value = None, value
            await two_polls(mark)
    assert log.exception.call_count == 2
