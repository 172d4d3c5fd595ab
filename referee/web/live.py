"""Send an event to open pages when the league has changed (server-sent events).

One task polls the league for all visitors, and only while there are visitors. It counts the changes. Each visitor's stream
compares the count with the count of its last event. So nothing is queued for a visitor who does not read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from referee.errors import RefereeError

POLL_S = 0.5
"""Seconds between two polls of the league."""
PAUSE_S = 1.0
"""Minimum time between two events for a visitor, in seconds."""
STREAMS = 200
"""The limit of open streams."""
_PING_S = 15
"""Seconds between two comments that show both sides that the connection is alive."""
_SEND_S = 20.0
"""Timeout for sending an event, in seconds. It ends the stream of a visitor who does not read, when all buffers are full."""
_RETRY_MS = 1_000
"""How long a browser waits before it connects again."""


class Feed:
    """The stream of changes, for all visitors. Use it in one event loop.

    Args:
        read_mark: returns `League.change_mark()`. It is called in a thread.
        limit: how many visitors can have a stream at a time.
    """

    def __init__(self, read_mark: Callable[[], int], *, limit: int = STREAMS) -> None:
        self._read_mark = read_mark
        self._limit = limit
        self.visitors = 0
        """Number of open streams."""
        self._changes = 0
        self._mark: int | None = None
        self._news = asyncio.Event()
        """Set at the next change, and then replaced."""
        self._poll: asyncio.Task[None] | None = None
        self._closed = asyncio.Event()

    async def respond(self, _request: Request) -> Response:
        """Return a stream of events. Raises HTTPException if too many streams are open."""
        if self.visitors >= self._limit:
            raise HTTPException(
                503,
                "Too many pages are open: this page does not update itself.",
                {"retry-after": "60"},
            )
        return EventSourceResponse(self.events(), ping=_PING_S, send_timeout=_SEND_S)

    async def events(self) -> AsyncIterator[ServerSentEvent]:
        """Yield an event `change` at once, and then whenever the league has changed.

        The first event is for changes between the making of the page and this call.
        """
        self.visitors += 1
        try:
            if self._poll is None:
                self._poll = asyncio.create_task(self._watch())
            while not self._closed.is_set():
                seen = self._changes
                yield ServerSentEvent(str(seen), event="change", retry=_RETRY_MS)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closed.wait(), PAUSE_S)
                while seen == self._changes and not self._closed.is_set():
                    await self._news.wait()
        finally:
            self.visitors -= 1
            if not self.visitors and self._poll is not None:
                self._poll.cancel()
                self._poll = None

    def close(self) -> None:
        """End all streams."""
        self._closed.set()
        self._news.set()

    async def _watch(self) -> None:
        """Poll the league. An error ends no stream: the league may be readable again at the next poll."""
        while True:
            with suppress(RefereeError):
                mark = await run_in_threadpool(self._read_mark)
                if (
                    mark != self._mark
                ):  # also at the first poll, because the first event was sent before
                    self._mark = mark
                    self._changes += 1
                    self._news.set()
                    self._news = asyncio.Event()
            await asyncio.sleep(POLL_S)
