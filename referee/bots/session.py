"""The stream of one bot process: its hello, questions out, answers in, and what it must not send.

Everything a bot sends is looked at here and believed only when somebody waits for it. A session knows
no process: `process` tells it when that has died.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import grpc

from referee.bots.server import MESSAGE_LIMIT, Stream
from referee.errors import Cause, Evidence, Forfeit, Strike
from referee.pb import play_pb2
from referee.protocol import decode, encode
from referee.protocol.encode import PROTOCOL_VERSION

FLOOD_QUOTA = 200
"""Unasked messages that a bot may send between two answers."""
SETTLE_US = 1_000
"""How long after an on-time timer a reply may still come out of gRPC's queue."""
_GRACE_US = 2_000
"""The same when the timer itself was late, besides its lateness."""
_ON_TIME_US = 2_000
"""A timer that fires so late or less found the event loop idle (uvloop counts milliseconds)."""


class Answered(NamedTuple):
    """A reply and what it took."""

    reply: play_pb2.Reply
    elapsed_us: int
    """Never more than the limit."""
    lag_us: int
    """How far beyond the limit the referee was when it looked; else 0."""


@dataclass(slots=True)
class _Question:
    """Something a bot has been asked and somebody waits for."""

    number: int
    answer: asyncio.Future[Answered]
    limit_us: int
    sent_ns: int = 0
    expired: bool = False

    @property
    def deadline_ns(self) -> int:
        return self.sent_ns + self.limit_us * 1000

    def elapsed_us(self) -> int:
        return (time.monotonic_ns() - self.sent_ns) // 1000


class Session:
    """One stream.

    Args:
        token: what the bot has to show.
        is_foreign: whether a token is another bot's.
    """

    def __init__(self, token: str, is_foreign: Callable[[str], bool]) -> None:
        self._token = token
        self._is_foreign = is_foreign
        self._loop = asyncio.get_running_loop()
        self._stream: Stream | None = None
        self._hello: asyncio.Future[play_pb2.Hello] = self._loop.create_future()
        self._questions: dict[str, _Question] = {}
        self._readies: dict[str, asyncio.Future[None]] = {}
        self._outbox: list[bytes] = []
        self._sending = False
        self._writing_since_ns = 0
        """0 when nothing is being written."""
        self._over = asyncio.Event()
        self._unasked = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ns = 0
        self.dropped = 0
        """Replies that came too late, twice, or for something else."""
        self.silent = False
        """It let a limit pass and has not said anything since."""
        self.failure: Forfeit | None = None
        """Why the stream is of no more use."""
        self.closed = asyncio.Event()
        """Set when the stream is gone or of no more use."""

    @property
    def greeted(self) -> bool:
        """Whether the bot has said hello."""
        return self._hello.done() and self._hello.exception() is None

    # The stream

    async def serve(self, stream: Stream) -> None:
        """Hold a stream to its end. A second one is refused; the first stays the owner."""
        if self._stream is not None:
            await stream.abort(grpc.StatusCode.ALREADY_EXISTS, "this bot has its stream already")
        self._stream = stream
        reading = asyncio.ensure_future(self._read(stream))
        over = asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait((reading, over), return_when=asyncio.FIRST_COMPLETED)
        finally:
            reading.cancel()
            over.cancel()
            self.closed.set()

    def end(self) -> None:
        """Let go of the stream."""
        self._over.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def fail(self, failure: Forfeit) -> None:
        """Nothing more can come from this bot: everybody who waits is told, the first reason."""
        if self.failure is not None:
            return
        self.failure = failure
        self.closed.set()
        waiting: list[asyncio.Future[Any]] = [self._hello, *self._readies.values()]
        for future in (*waiting, *(question.answer for question in self._questions.values())):
            if not future.done():
                future.set_exception(failure)
                future.exception()  # somebody may have stopped waiting
        self._readies.clear()
        self._questions.clear()

    async def _read(self, stream: Stream) -> None:
        while isinstance(data := await stream.read(), bytes):  # else it is EOF
            if len(data) > MESSAGE_LIMIT:
                self._fail(Cause.TOO_LARGE, f"a message of {len(data)} bytes")
                return
            try:
                message = decode.bot_message(data)
            except ValueError as error:
                if self._hello.done():
                    self._malformed(str(error))
                else:
                    await self._refuse(Cause.HANDSHAKE, f"the first message is no hello: {error}")
            else:
                if self._hello.done():
                    self._receive(message)
                else:
                    await self._receive_hello(message)
            if self.failure is not None:
                return

    def _receive(self, message: play_pb2.BotMessage) -> None:
        self.silent = False
        expected = unasked = 0
        for reply in message.replies:
            if self._receive_reply(reply):
                expected += 1
            else:
                unasked += 1
        if self._readies or not expected:  # else nobody waits for a ready
            for ready in message.ready:
                if self._receive_ready(ready):
                    expected += 1
                else:
                    unasked += 1
        if expected:
            self._unasked = 0
        if unasked or not expected:
            self._count_unasked(unasked or 1)

    async def _receive_hello(self, message: play_pb2.BotMessage) -> None:
        if not message.HasField("hello"):
            await self._refuse(Cause.HANDSHAKE, "the first message has no hello")
        elif message.hello.protocol_version != PROTOCOL_VERSION:
            await self._refuse(
                Cause.HANDSHAKE,
                f"the bot speaks protocol version {message.hello.protocol_version},"
                f" the referee {PROTOCOL_VERSION}",
            )
        elif self._is_foreign(message.hello.token):
            await self._refuse(Cause.IMPERSONATION, "the hello has another bot's token")
        elif message.hello.token != self._token:
            await self._refuse(Cause.HANDSHAKE, "the hello has a wrong token")
        else:
            self._hello.set_result(message.hello)

    async def _refuse(self, cause: Cause, detail: str) -> None:
        """Say why the bot is not wanted, for its author to read, and have no more to do with it."""
        await self._write(encode.goodbye(detail))
        self._fail(cause, detail)

    def _receive_ready(self, ready: play_pb2.Ready) -> bool:
        """Tell who waits for a game to start; whether there was somebody."""
        future = self._readies.pop(ready.game_id, None)
        if future is None or future.done():
            return False
        future.set_result(None)
        return True

    def _receive_reply(self, reply: play_pb2.Reply) -> bool:
        """Hand a reply to who waits for it; whether there was somebody."""
        question = self._questions.get(reply.game_id)
        if question is None or question.number != reply.decision_id or question.answer.done():
            self.dropped += 1
            return False
        elapsed_us, limit_us = question.elapsed_us(), question.limit_us
        if elapsed_us <= limit_us:
            question.answer.set_result(Answered(reply, elapsed_us, 0))
        else:
            question.answer.set_result(Answered(reply, limit_us, elapsed_us - limit_us))
        return True

    def _malformed(self, why: str) -> None:
        waiting = [each for each in self._questions.values() if not each.answer.done()]
        for question in waiting:
            evidence = Evidence(detail=why, elapsed_us=question.elapsed_us())
            question.answer.set_exception(Strike(Cause.MALFORMED, evidence))
        if not waiting:
            self._count_unasked(1)

    def _count_unasked(self, count: int) -> None:
        self._unasked += count
        if self._unasked > FLOOD_QUOTA:
            self._fail(Cause.FLOOD, f"more than {FLOOD_QUOTA} messages that nobody asked for")

    def _fail(self, cause: Cause, detail: str) -> None:
        self.fail(Forfeit(cause, Evidence(detail=detail)))

    # What the referee says

    async def hello(self) -> play_pb2.Hello:
        """The bot's hello. Raises the session's failure."""
        return await asyncio.shield(self._hello)

    async def start_game(self, game_id: str, start: bytes, limit_us: int) -> None:
        """Send a game start and wait for the bot's ready.

        Raises `Forfeit`: GAME_START_TIMEOUT, or the session's failure.
        """
        self._check()
        ready = self._readies[game_id] = self._loop.create_future()
        try:
            async with asyncio.timeout(limit_us / 1e6):
                await self.send(start)
                await ready
        except TimeoutError:
            self.silent = True
            evidence = Evidence(detail="no ready for the game in time", elapsed_us=limit_us)
            raise Forfeit(Cause.GAME_START_TIMEOUT, evidence) from None
        finally:
            self._readies.pop(game_id, None)

    async def ask(self, game_id: str, number: int, request: bytes, limit_us: int) -> Answered:
        """Send a request and wait for its reply.

        Raises `Strike` (TIMEOUT, MALFORMED) and the session's failure, a `Forfeit`.
        """
        self._check()
        question = _Question(number, self._loop.create_future(), limit_us)
        self._questions[game_id] = question
        try:
            await self.send(request, question)
            return await question.answer
        except Forfeit as failure:
            known = replace(failure.evidence, elapsed_us=question.elapsed_us())
            raise Forfeit(failure.cause, known) from None
        finally:
            self._questions.pop(game_id, None)

    async def send(self, message: bytes, question: _Question | None = None) -> None:
        """Send a message; what is sent meanwhile, and what several games send at once, goes together."""
        self._outbox.append(message)
        if question is not None:
            question.sent_ns = time.monotonic_ns()
            self._watch_until(question.deadline_ns)
        if self._sending:
            return
        self._sending = True
        try:
            if len(self._questions) > 1:
                await asyncio.sleep(0)  # the other games' requests come in this turn of the loop
            while self._outbox:
                data = b"".join(self._outbox)
                self._outbox.clear()
                self._writing_since_ns = time.monotonic_ns()
                await self._write(data)
        finally:
            self._sending = False
            self._writing_since_ns = 0

    async def _write(self, data: bytes) -> None:
        if self._stream is None or self.closed.is_set():
            return
        try:
            await self._stream.write(data)
        except (grpc.aio.UsageError, grpc.aio.AbortError, grpc.RpcError, asyncio.InvalidStateError):
            self.closed.set()

    def _check(self) -> None:
        if self.failure is not None:
            raise Forfeit(self.failure.cause, self.failure.evidence)

    # Time

    def _watch_until(self, deadline_ns: int) -> None:
        """See that somebody looks at the clock at a deadline.

        One timer for all questions, armed for the earliest deadline and not touched by answers: making
        and cancelling one for each question took as long as the rest of asking it.
        """
        if self._timer is not None:
            if self._timer_ns <= deadline_ns:
                return
            self._timer.cancel()
        self._timer_ns = deadline_ns
        delay_ns = deadline_ns - time.monotonic_ns()
        self._timer = self._loop.call_later(max(0, delay_ns) / 1e9, self._look_at_clock)

    def _look_at_clock(self) -> None:
        self._timer = None
        now_ns = time.monotonic_ns()
        later: list[int] = []
        for question in self._questions.values():
            if question.deadline_ns > now_ns:
                later.append(question.deadline_ns)
            elif not question.expired:
                self._expire(question, (now_ns - question.deadline_ns) // 1000)
        if later:
            self._watch_until(min(later))

    def _expire(self, question: _Question, late_us: int) -> None:
        """The limit is over. What has reached the socket by now is still in time."""
        question.expired = True
        settle = SETTLE_US if late_us <= _ON_TIME_US else late_us + _GRACE_US
        self._loop.call_later(settle / 1e6, self._charge, question)

    def _charge(self, question: _Question) -> None:
        if not question.answer.done():
            self.silent = True
            evidence = Evidence(
                detail=f"no reply within {question.limit_us / 1e6:g} s",
                elapsed_us=max(question.elapsed_us(), question.limit_us),
            )
            question.answer.set_exception(Strike(Cause.TIMEOUT, evidence))
            writing_ns = time.monotonic_ns() - self._writing_since_ns
            if self._writing_since_ns and writing_ns >= question.limit_us * 1000:
                self._fail(Cause.CRASH, "does not read its stream")
