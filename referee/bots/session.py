"""Speak with one bot over its stream: await its hello, send requests, and await the replies.

`inbox` checks the messages of the bot, `clock` keeps the deadlines. A session does not know the process of the
bot: `process` calls `Session.fail` when the process has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import grpc

from referee.bots.clock import (
    CORE_WAIT_LIMIT_US,
    HELLO,
    READY,
    Clock,
    PendingRequest,
    PendingRequests,
)
from referee.bots.inbox import Inbox
from referee.bots.server import Stream
from referee.errors import Cause, Evidence, Forfeit
from referee.pb import play_pb2
from referee.protocol import encode

WRITE_LIMIT_S = 5.0
"""How many seconds one write may take. If the bot does not read its stream, a write can take for ever."""

TimedReply = tuple[bytes, int, int]
"""A reply with its times: the serialised action, the microseconds until the reply came (at most the limit), and
the lag. The lag is how many microseconds after the limit the referee saw the reply; 0 if within the limit."""


# The states of a session:
#
#     connecting --hello--> idle --request(), start_game()--> waiting
#         |                  |  ^                               |
#         |                  |  +-- reply, ready, overdue, -----+
#         |                  |      malformed message           |
#         |                  |                                  |
#         +------------------+---- end of stream, fail() -------+--> closed
#
# In each game at most one request is pending. The session is waiting while any request is pending.
# `closed` is final. When the stream ends, pending requests still wait until `process` has found out why the stream
# has ended and calls `fail` with the reason.
#
# The states of writing; at most one write is in progress:
#
#     not writing --send()--> flushing the outbox --outbox is empty--> not writing
#     not writing --request() while the bot plays one game--> writing the request --written--> not writing, or
#                                                                          flushing if the outbox is not empty


class Session:
    """The stream of one bot.

    Args:
        token: the token that the bot's hello must contain.
        is_foreign: returns whether a token belongs to another bot.
        clock: the source of time.
        busy_ns: returns the bot's CPU time in ns; None if all threads of the bot sleep now.
    """

    def __init__(
        self,
        token: str,
        is_foreign: Callable[[str], bool],
        clock: Clock,
        busy_ns: Callable[[], int | None],
    ) -> None:
        self._now_ns = clock.now_ns
        self._call_later = clock.call_later
        self._loop = asyncio.get_running_loop()
        self._stream: Stream | None = None
        self._requests = PendingRequests(clock, self._on_overdue, busy_ns)
        self._games: set[str] = set()
        """The ids of the games that the bot plays now."""
        self._hello = self._add_request(HELLO, READY, 0)
        self._inbox = Inbox(
            self._hello, self._requests, games=self._games, token=token, is_foreign=is_foreign
        )
        self._outbox: list[tuple[bytes, PendingRequest | None]] = []
        """The messages that wait to be written, each with the request that it contains, or None if it contains none."""
        self._flushing: asyncio.Task[None] | None = None
        self._writing_since_ns = 0
        """The time, in ns of the clock, at which the current write began; 0 if no write is in progress."""
        self.failure: Exception | None = None
        """The error that `fail` was called with; None before that, even if the stream has ended."""
        self.closed = asyncio.Event()
        """Set when the stream has ended or the session has failed."""

    @property
    def said_hello(self) -> bool:
        """Whether the bot has sent a valid hello."""
        return self._hello.reply.done() and self._hello.reply.exception() is None

    @property
    def connected(self) -> bool:
        """Whether the bot has opened its stream."""
        return self._stream is not None

    @property
    def dropped(self) -> int:
        """See `Inbox.dropped`."""
        return self._inbox.dropped

    @property
    def unresponsive(self) -> bool:
        """Whether a request is overdue, and the bot has replied neither to it nor to a later request of the game."""
        return bool(self._requests.overdue)

    # The stream

    async def serve(self, stream: Stream) -> None:
        """Read the bot's stream to its end. If the bot opens a second stream, refuse it and keep the first."""
        if self._stream is not None:
            try:
                self._inbox.count_unsolicited(1)
            except Forfeit as failure:
                self.fail(failure)
            # `abort` raises an exception, so the first stream is kept
            await stream.abort(grpc.StatusCode.ALREADY_EXISTS, "this bot has its stream already")
        self._stream = stream
        reading = asyncio.ensure_future(self._read(stream))
        try:
            await asyncio.wait((reading,))
            error = reading.exception()
            if isinstance(error, Exception) and not isinstance(error, grpc.aio.BaseError):
                self.fail(error)  # a bug of the referee, which must not be charged to the bot
        finally:
            reading.cancel()
            self.closed.set()

    def fail(self, failure: Exception) -> None:
        """Close the session and raise `failure` in all callers that await a reply. A second call has no effect."""
        if self.failure is not None:
            return
        self.failure = failure
        self.closed.set()
        self._requests.fail_all(failure)
        self._outbox.clear()
        if self._flushing is not None:
            self._flushing.cancel()

    async def _read(self, stream: Stream) -> None:
        inbox = self._inbox
        while isinstance(data := await stream.read(), bytes):  # gRPC returns EOF at the end
            if inbox.receive_sole_reply(data):
                continue
            awaits_hello = not self._hello.reply.done()
            try:
                inbox.receive(data)
            except Forfeit as failure:
                try:
                    if awaits_hello:  # tell the bot's author why the hello is refused
                        await self._write(encode.goodbye(failure.evidence.detail), self._now_ns())
                finally:  # charge also a bot that disconnects during this write
                    self.fail(failure)
            if self.failure is not None:
                return

    def _on_overdue(self, request: PendingRequest) -> None:
        """Fail the session if the current write takes too long, because the bot does not read its stream."""
        if self._writing_since_ns:
            # the limit of a write is never below `CORE_WAIT_LIMIT_US`: gRPC's threads may wait for a core before
            # they report that the bot has read the message
            limit_ns = max(request.limit_us, CORE_WAIT_LIMIT_US) * 1000
            self._check_write(self._writing_since_ns, limit_ns)

    def _check_write(self, since_ns: int, limit_ns: int) -> None:
        """Fail the session as soon as the write that began at `since_ns` has taken as long as the limit."""
        if self._writing_since_ns != since_ns:
            return
        left_ns = since_ns + limit_ns - self._now_ns()
        if left_ns > 0:
            self._call_later(left_ns / 1e9, self._check_write, since_ns, limit_ns)
        else:
            self._fail_unread()

    def _fail_unread(self) -> None:
        self.fail(Forfeit(Cause.CRASH, Evidence(detail="does not read its stream")))

    # Messages to the bot

    async def wait_for_hello(self, limit_us: int, since_ns: int) -> play_pb2.Hello:
        """Wait for the bot's hello and return it.

        Args:
            limit_us: how many microseconds the bot may take.
            since_ns: the time, in ns of the session's clock, at which the referee began to start the bot.

        Raises `Forfeit` (CONNECT_TIMEOUT) if the hello is late, and `failure` if the session fails.
        """
        self._raise_failure()
        self._hello.limit_us = limit_us
        self._requests.start_clock(self._hello, since_ns)
        try:
            hello: play_pb2.Hello = await self._hello.reply
        finally:
            self._requests.pending.pop(HELLO, None)
        return hello

    async def start_game(self, game_id: str, start: bytes, limit_us: int) -> None:
        """Send a game start and wait for the bot's ready.

        Raises `Forfeit` (GAME_START_TIMEOUT) if the ready is late, and `failure` if the session fails.
        """
        self._raise_failure()
        request = self._add_request(game_id, READY, limit_us)
        try:
            self.send(start, request)
            await request.reply
        except Forfeit as failure:
            raise self._with_elapsed(failure, request) from None
        finally:
            self._requests.pending.pop(game_id, None)
        self._games.add(game_id)

    def end_game(self, game_id: str, end: bytes) -> None:
        """Send the end of a game and return at once."""
        self._games.discard(game_id)
        self.send(end)

    async def request(self, game_id: str, number: int, message: bytes, limit_us: int) -> TimedReply:
        """Send the request for a decision and wait for the reply.

        Raises `Strike` if the reply is late (TIMEOUT) or unreadable (MALFORMED). Raises `failure`, usually a `Forfeit`,
        if the session fails.
        """
        if self.failure is not None:
            self._raise_failure()
        request = self._add_request(game_id, number, limit_us)
        try:
            if self._flushing is not None or self._writing_since_ns or len(self._games) > 1:
                self.send(message, request)
            else:
                now_ns = self._now_ns()
                self._requests.start_clock(request, now_ns)
                await self._write(message, now_ns)
            reply: TimedReply = await request.reply
        except Forfeit as failure:
            raise self._with_elapsed(failure, request) from None
        finally:
            self._requests.pending.pop(game_id, None)
        return reply

    def send(self, message: bytes, request: PendingRequest | None = None) -> None:
        """Put a message into the outbox and return at once. The messages in the outbox are written as a batch.

        Args:
            message: the serialised message.
            request: the request in the message; its clock starts when the message is written. None if the message has
                no request.
        """
        self._outbox.append((message, request))
        if self._flushing is None and not self._writing_since_ns:
            self._flushing = asyncio.ensure_future(self._flush())

    async def _flush(self) -> None:
        try:
            while self._outbox:
                batch, self._outbox = self._outbox, []
                for _, request in batch:
                    if request is not None:
                        self._requests.start_clock(request, self._now_ns())
                data = b"".join(message for message, _ in batch)
                async with asyncio.timeout(WRITE_LIMIT_S):
                    await self._write(data, self._now_ns())
        except TimeoutError:
            self._fail_unread()
        finally:
            self._flushing = None

    async def _write(self, data: bytes, now_ns: int) -> None:
        if self._stream is None or self.closed.is_set():
            return
        self._writing_since_ns = now_ns
        try:
            await self._stream.write(data)
        except grpc.aio.BaseError:
            self.closed.set()
        finally:
            self._writing_since_ns = 0
            if self._outbox and self._flushing is None:
                self._flushing = asyncio.ensure_future(self._flush())

    def _add_request(self, game_id: str, number: int, limit_us: int) -> PendingRequest:
        # a second request would replace the first one, and the first caller would wait forever
        assert game_id not in self._requests.pending  # noqa: S101
        request = PendingRequest(game_id, number, limit_us, self._loop.create_future())
        self._requests.pending[game_id] = request
        return request

    def _with_elapsed(self, failure: Forfeit, request: PendingRequest) -> Forfeit:
        elapsed_us = self._requests.elapsed_us(request)
        return Forfeit(failure.cause, replace(failure.evidence, elapsed_us=elapsed_us))

    def _raise_failure(self) -> None:
        if isinstance(self.failure, Forfeit):
            raise Forfeit(self.failure.cause, self.failure.evidence)
        if self.failure is not None:
            raise self.failure
