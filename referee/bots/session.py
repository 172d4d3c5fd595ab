"""The stream of one bot process: its hello, questions out, and whoever waits told of the answers.

What the bot says is `inbox`'s. A session knows no process: `process` tells it when that has died.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import grpc

from referee.bots.clock import CORELESS_US, HELLO, READY, Clock, PendingRequest, PendingRequests
from referee.bots.inbox import Inbox
from referee.bots.server import Stream
from referee.errors import Cause, Evidence, Forfeit
from referee.pb import play_pb2
from referee.protocol import encode

WRITE_LIMIT_S = 5.0
"""How long a message that nobody waits for may lie in a stream that its bot does not read."""

TimedReply = tuple[bytes, int, int]
"""A reply and what it took: its action, serialised as the bot sent it, at which nobody has looked; the
microseconds until it came, never more than the limit; and how far beyond the limit the referee was when it
saw the reply, or the bot for want of a core, else 0."""


class Session:
    """One stream.

    Args:
        token: what the bot has to show.
        is_foreign: whether a token is another bot's.
        clock: where time comes from.
        busy_ns: see `PendingRequests`.
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
        self._questions = PendingRequests(clock, self._overdue, busy_ns)
        self._games: set[str] = set()
        """Those that have started."""
        self._hello = self._question(HELLO, READY, 0)
        self._inbox = Inbox(
            self._hello, self._questions, games=self._games, token=token, is_foreign=is_foreign
        )
        self._outbox: list[tuple[bytes, PendingRequest | None]] = []
        self._flushing: asyncio.Task[None] | None = None
        self._writing_since_ns = 0
        """0 when nothing is being written."""
        self.failure: Exception | None = None
        """Why the stream is of no more use."""
        self.closed = asyncio.Event()
        """Set when the stream is gone or of no more use."""

    @property
    def greeted(self) -> bool:
        """Whether the bot has said hello."""
        return self._hello.answer.done() and self._hello.answer.exception() is None

    @property
    def connected(self) -> bool:
        """Whether the bot has opened its stream."""
        return self._stream is not None

    @property
    def dropped(self) -> int:
        """What came too late, twice, or for something else: replies, and hellos after the first."""
        return self._inbox.dropped

    @property
    def silent(self) -> bool:
        """Whether it let a limit pass and has said nothing since in that game: it may never do so again."""
        return bool(self._questions.unanswered)

    # The stream

    async def serve(self, stream: Stream) -> None:
        """Hold a stream to its end. A second one is refused; the first stays the owner."""
        if self._stream is not None:
            try:
                self._inbox.count_unasked(1)
            except Forfeit as failure:
                self.fail(failure)
            await stream.abort(grpc.StatusCode.ALREADY_EXISTS, "this bot has its stream already")
        self._stream = stream
        reading = asyncio.ensure_future(self._read(stream))
        try:
            await asyncio.wait((reading,))
            error = reading.exception()
            if isinstance(error, Exception) and not isinstance(error, grpc.aio.BaseError):
                self.fail(error)  # not the bot's fault, and not to be charged to it
        finally:
            reading.cancel()
            self.closed.set()

    def fail(self, failure: Exception) -> None:
        """Nothing more can come from this bot: everybody who waits is told, the first reason."""
        if self.failure is not None:
            return
        self.failure = failure
        self.closed.set()
        self._questions.fail(failure)
        self._outbox.clear()
        if self._flushing is not None:
            self._flushing.cancel()

    async def _read(self, stream: Stream) -> None:
        inbox = self._inbox
        while isinstance(data := await stream.read(), bytes):  # else it is EOF
            if inbox.answers(data):
                continue
            unknown = not self._hello.answer.done()
            try:
                inbox.take(data)
            except Forfeit as failure:
                try:
                    if unknown:  # its author may read why it is not wanted
                        await self._write(encode.goodbye(failure.evidence.detail), self._now_ns())
                finally:  # who leaves meanwhile is charged with this all the same
                    self.fail(failure)
            if self.failure is not None:
                return

    def _overdue(self, question: PendingRequest) -> None:
        """A bot that has not even read what was written for a whole limit does not read any more."""
        if self._writing_since_ns:
            limit_ns = max(question.limit_us, CORELESS_US) * 1000  # gRPC's threads may await a core
            self._unread(self._writing_since_ns, limit_ns)

    def _unread(self, since_ns: int, limit_ns: int) -> None:
        """Give a bot up that does not read what is being written since that moment, after a limit."""
        if self._writing_since_ns != since_ns:
            return
        left_ns = since_ns + limit_ns - self._now_ns()
        if left_ns > 0:
            self._call_later(left_ns / 1e9, self._unread, since_ns, limit_ns)
        else:
            self._fail(Cause.CRASH, "does not read its stream")

    def _fail(self, cause: Cause, detail: str) -> None:
        self.fail(Forfeit(cause, Evidence(detail=detail)))

    # What the referee says

    async def hello(self, limit_us: int, since_ns: int) -> play_pb2.Hello:
        """The bot's hello, within a limit since it was started.

        Raises `Forfeit`: CONNECT_TIMEOUT, or the session's failure.
        """
        self._check()
        self._hello.limit_us = limit_us
        self._questions.sent(self._hello, since_ns)
        try:
            hello: play_pb2.Hello = await self._hello.answer
        finally:
            self._questions.open.pop(HELLO, None)
        return hello

    async def start_game(self, game_id: str, start: bytes, limit_us: int) -> None:
        """Send a game start and wait for the bot's ready.

        Raises `Forfeit`: GAME_START_TIMEOUT, or the session's failure.
        """
        self._check()
        question = self._question(game_id, READY, limit_us)
        try:
            self.post(start, question)
            await question.answer
        except Forfeit as failure:
            raise self._timed(failure, question) from None
        finally:
            self._questions.open.pop(game_id, None)
        self._games.add(game_id)

    def end_game(self, game_id: str, end: bytes) -> None:
        """Send the end of a game, without waiting."""
        self._games.discard(game_id)
        self.post(end)

    async def ask(self, game_id: str, number: int, request: bytes, limit_us: int) -> TimedReply:
        """Send a request and wait for its reply.

        Raises `Strike` (TIMEOUT, MALFORMED) and the session's failure, mostly a `Forfeit`.
        """
        if self.failure is not None:
            self._check()
        question = self._question(game_id, number, limit_us)
        try:
            if self._flushing is not None or self._writing_since_ns or len(self._games) > 1:
                self.post(request, question)
            else:
                now_ns = self._now_ns()
                self._questions.sent(question, now_ns)
                await self._write(request, now_ns)
            answered: TimedReply = await question.answer
        except Forfeit as failure:
            raise self._timed(failure, question) from None
        finally:
            self._questions.open.pop(game_id, None)
        return answered

    def post(self, message: bytes, question: PendingRequest | None = None) -> None:
        """Send a message without waiting; what is posted in one turn of the loop goes together."""
        self._outbox.append((message, question))
        if self._flushing is None and not self._writing_since_ns:
            self._flushing = asyncio.ensure_future(self._flush())

    async def _flush(self) -> None:
        try:
            while self._outbox:
                letters, self._outbox = self._outbox, []
                for _, question in letters:
                    if question is not None:
                        self._questions.sent(question, self._now_ns())
                data = b"".join(message for message, _ in letters)
                async with asyncio.timeout(WRITE_LIMIT_S):
                    await self._write(data, self._now_ns())
        except TimeoutError:
            self._fail(Cause.CRASH, "does not read its stream")
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

    def _question(self, game_id: str, number: int, limit_us: int) -> PendingRequest:
        assert game_id not in self._questions.open  # noqa: S101 - who waits would wait for ever
        question = PendingRequest(game_id, number, limit_us, self._loop.create_future())
        self._questions.open[game_id] = question
        return question

    def _timed(self, failure: Forfeit, question: PendingRequest) -> Forfeit:
        elapsed_us = self._questions.elapsed_us(question)
        return Forfeit(failure.cause, replace(failure.evidence, elapsed_us=elapsed_us))

    def _check(self) -> None:
        if isinstance(self.failure, Forfeit):
            raise Forfeit(self.failure.cause, self.failure.evidence)
        if self.failure is not None:
            raise self.failure
