"""Write messages to the stream of one bot, at most one write at a time.

`write` writes a message at once. `send` lets it wait; all messages that wait are then joined into one write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import grpc

from referee.bots.clock import CORE_WAIT_LIMIT_US, Clock, PendingRequest
from referee.bots.server import Stream

WRITE_LIMIT_S = 5.0
"""How many seconds one write of waiting messages may take; `limit_write` can end any write. If the bot does not read
its stream, a write can take for ever."""

# The states of an outbox; at most one write is in progress:
#
#     not writing --send()--> flushing --no message waits--> not writing
#     not writing --write()--> writing --written--> not writing, or flushing if messages wait
#
# Before `open` and after `close`, or after the end of the stream, a write does nothing.


class Outbox:
    """The messages to one bot.

    Args:
        clock: the source of time.
        start_clock: starts the clock of a request at a time in ns. Called just before the request is written, and by
            `close` if the request is dropped, so that no caller waits for ever.
        on_flush: called when `send` begins to flush and when flushing ends.
        on_closed: called if a write finds that the stream has ended.
        on_unread: called if a write takes too long, because the bot does not read its stream.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        start_clock: Callable[[PendingRequest, int], None],
        on_flush: Callable[[], None],
        on_closed: Callable[[], None],
        on_unread: Callable[[], None],
    ) -> None:
        self._now_ns = clock.now_ns
        self._call_later = clock.call_later
        self._start_clock = start_clock
        self._on_flush = on_flush
        self._on_closed = on_closed
        self._on_unread = on_unread
        self._stream: Stream | None = None
        """The bot's stream; None before `open`, after `close` and after the end of the stream."""
        self._waiting: list[tuple[bytes, PendingRequest | None]] = []
        """The messages that wait, each with the request that it contains, or None if it contains none."""
        self._flushing: asyncio.Task[None] | None = None
        self._writing_since_ns = 0
        """The time, in ns of the clock, at which the current write began; 0 if no write is in progress."""

    @property
    def is_flushing(self) -> bool:
        """Whether messages that `send` has taken wait or are being written."""
        return self._flushing is not None

    @property
    def is_writing(self) -> bool:
        """Whether a write is in progress, or messages wait for one."""
        return self._flushing is not None or self._writing_since_ns != 0

    def open(self, stream: Stream) -> None:
        """Begin to write to the bot's stream."""
        self._stream = stream

    def close(self) -> None:
        """Drop the messages that wait, and write nothing more. The clocks of their requests start."""
        self._stream = None
        for _, request in self._waiting:
            if request is not None:
                self._start_clock(request, self._now_ns())
        self._waiting.clear()
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None  # a task that is cancelled before its first step does not do it

    def send(self, message: bytes, request: PendingRequest | None = None) -> None:
        """Let a message wait for the next write and return at once.

        Args:
            message: the serialised message.
            request: the request in the message; its clock starts when the message is written. None if the message has
                no request.
        """
        self._waiting.append((message, request))
        if not self.is_writing:
            self._flushing = asyncio.ensure_future(self._flush())
            self._on_flush()

    async def write(self, data: bytes, now_ns: int) -> None:
        """Write a message at once. Call this only if `is_writing` is false.

        Args:
            data: the serialised message.
            now_ns: the time now, in ns of the clock.
        """
        if self._stream is None:
            return
        self._writing_since_ns = now_ns
        try:
            await self._stream.write(data)
        except grpc.aio.BaseError:
            self._stream = None
            self._on_closed()
        finally:
            self._writing_since_ns = 0
            if self._waiting and self._flushing is None:
                self._flushing = asyncio.ensure_future(self._flush())

    async def _flush(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                for _, request in batch:
                    if request is not None:
                        self._start_clock(request, self._now_ns())
                data = b"".join(message for message, _ in batch)
                async with asyncio.timeout(WRITE_LIMIT_S):
                    await self.write(data, self._now_ns())
        except TimeoutError:
            self._on_unread()
        finally:
            self._flushing = None
            self._on_flush()

    def limit_write(self, limit_us: int) -> None:
        """Call `on_unread` if the current write takes longer than `limit_us`, the limit of an overdue request.

        A write always has at least `CORE_WAIT_LIMIT_US`.
        """
        if self._writing_since_ns:
            # the limit of a write is never below `CORE_WAIT_LIMIT_US`: gRPC's threads may wait for a core before
            # they report that the bot has read the message
            limit_ns = max(limit_us, CORE_WAIT_LIMIT_US) * 1000
            self._check_write(self._writing_since_ns, limit_ns)

    def _check_write(self, since_ns: int, limit_ns: int) -> None:
        if self._writing_since_ns != since_ns:
            return
        left_ns = since_ns + limit_ns - self._now_ns()
        if left_ns > 0:
            self._call_later(left_ns / 1e9, self._check_write, since_ns, limit_ns)
        else:
            self._on_unread()
