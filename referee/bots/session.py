"""Speak with one bot over its stream: await its hello, send requests, and await the replies.

`inbox` checks the messages of the bot, `outbox` writes the messages to it, `clock` keeps the deadlines. A session
does not know the process of the bot: `process` calls `Session.fail` when the process has ended.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import grpc

from referee.bots.clock import (
    HELLO,
    READY,
    Batch,
    Clock,
    PendingRequest,
    PendingRequests,
    TimedReply,
    Timer,
)
from referee.bots.inbox import Inbox
from referee.bots.outbox import Cores, Outbox
from referee.bots.server import Sender, Stream
from referee.errors import Cause, Evidence, Forfeit, VoidGame
from referee.pb import play_pb2
from referee.protocol import messages
from referee.sandbox.scheduling import Scheduler, Scheduling

_MAX_FIRST_READS = 4
"""How many streams of the bot may wait for their first message. For each, gRPC can keep `GRPC_LIMIT` bytes in memory."""
STRANGER_LIMIT_S = 1.0
"""After the bot's hello: how many seconds another program has for the first message on a stream that it opens."""

LATE_REPLY_LIMIT_S = 1.0
"""How many seconds after a missed deadline a bot may run on idle cores to send its late reply, even if its game is
over. Otherwise a bot that is late in the last decision of a game would be stopped at once. It could not send the late
reply, so it would stay unresponsive, and be replaced."""

MAX_MISSED = 3
"""If this many batches in a row become overdue without any reply, and the bot plays several games, the session fails,
because the bot hangs. After the first of these batches, each batch has only one request until any reply comes."""
MAX_BATCH_WAIT_US = 1_000_000
"""A larger `batch_wait_us` in a hello counts as this value."""


# The states of a session:
#
#     from          event                                               to
#     connecting    a valid hello                                       idle
#     idle          request() or start_game(), see below                waiting, or thinking
#     waiting       the bot gets a core, and the batch is written       thinking
#     thinking      the batch is finished, and other requests wait      waiting
#     thinking      the batch is finished                               idle
#     any           end of the stream, or fail()                        closed
#
# While connecting, a session can have several streams, because other programs may open streams too. The first stream
# with a valid hello is the bot's stream; all other streams are ended. An invalid hello closes the session only if it is
# known that the bot itself has sent it.
#
# In each game at most one request is pending. While the session is thinking, a batch of requests is written and not
# finished. Further requests wait for the next batches. `Cores` says when the bot gets a core. `request()` goes from idle
# to thinking immediately if the bot plays one game, its outbox is empty, a core is free, and no other bot waits for a
# core.
#
# `closed` is final. When the stream ends, pending requests still wait until `process` has found out why the stream
# has ended and calls `fail` with the reason.
#
# The states of the bot's scheduling. Without pondering, a bot competes with others for a core only while it is
# connecting or thinking:
#
#     NORMAL    from the start of the program to its hello, and while thinking
#     IDLE      otherwise, while the bot plays a game (NORMAL with pondering). Also without a game, after the missed deadline
#               of a decision, until the late reply comes or `LATE_REPLY_LIMIT_S` have passed
#     STOPPED   otherwise: before the first game, and between games
#
# `_update_scheduling` sets `NORMAL` before the clock of a batch starts. It ends `NORMAL` before the caller sees the
# reply, and so before the next bot gets a request. After a failure the session changes nothing, because `process` kills
# the bot. When the referee asks a bot to exit, or searches for a flooder, `process` overrides the scheduling of the session.


class Session:
    """The stream of one bot.

    Args:
        token: the token that the bot's hello must contain.
        is_foreign: returns whether a token belongs to another bot.
        clock: the source of time.
        busy_ns: returns the bot's CPU time in ns; None if all threads of the bot sleep now.
        find_sender: returns who has opened a stream.
        cores: gives the cores of the worker to its bots in turn.
        pondering: whether the bot keeps `NORMAL` between the requests of a game instead of `IDLE`.
    """

    def __init__(
        self,
        token: str,
        is_foreign: Callable[[str], bool],
        clock: Clock,
        busy_ns: Callable[[], int | None],
        find_sender: Callable[[Stream], Awaitable[Sender]],
        *,
        cores: Cores,
        pondering: bool,
    ) -> None:
        self._now_ns = clock.now_ns
        self._call_later = clock.call_later
        self._loop = asyncio.get_running_loop()
        self._find_sender = find_sender
        self._cores = cores
        self._has_core = False
        self._pondering = pondering
        self.scheduler: Scheduler | None = None
        """Sets the scheduling of the bot's processes; None before the program is launched."""
        self._stream: Stream | None = None
        """The bot's stream; None before the hello."""
        self._first_reads: set[asyncio.Future[Any]] = set()
        """The reads that wait for the first message of a stream. When the bot has said hello, they are cancelled."""
        self._own_streams = 0
        """While connecting: how many open streams are known to be the bot's own."""
        self.connected = False
        """Whether the bot has ever opened a stream. The stream may have ended since then."""
        self.closed = asyncio.Event()
        """Set when the stream has ended or the session has failed."""
        self._requests = PendingRequests(
            clock, on_overdue=self._on_overdue, on_finished=self._give_core_back, busy_ns=busy_ns
        )
        self._outbox = Outbox(clock, on_closed=self.closed.set, on_unread=self._on_unread)
        self._batch_wait_ns = 0
        """How many ns requests may wait so that others join their batch. The bot sets this in its hello (`batch_wait_us`)."""
        self._waiting_since_ns = 0
        """The time, in ns of the clock, at which the session last began to wait for a core."""
        self._late_timer: Timer | None = None
        """Started when a batch of decisions becomes overdue. Until it ends, a bot without a game may run, to send its late reply."""
        self._games: set[str] = set()
        """The ids of the games that the bot plays now."""
        self._hello = self._add_request(HELLO, READY, 0)
        self._inbox = Inbox(self._requests, games=self._games, token=token, is_foreign=is_foreign)
        self.failure: Exception | None = None
        """The error that `fail` was called with; None before that, even if the stream has ended."""
        self._charged_game: str | None = None
        """The only game that is charged with the failure; None if it is not known yet."""

    @property
    def said_hello(self) -> bool:
        """Whether the bot has sent a valid hello."""
        return self._hello.is_answered

    @property
    def dropped(self) -> int:
        """See `Inbox.dropped`."""
        return self._inbox.dropped

    @property
    def accepted(self) -> int:
        """See `Inbox.accepted`."""
        return self._inbox.accepted

    @property
    def waiting(self) -> int:
        """See `Claimant.waiting`."""
        return self._outbox.waiting

    @property
    def lingers(self) -> bool:
        """See `Claimant.lingers`."""
        waited_ns = self._now_ns() - self._waiting_since_ns
        return waited_ns < self._batch_wait_ns and self._outbox.waiting < len(self._games)

    @property
    def pending_requests(self) -> PendingRequests:
        """The pending requests, whose clock `FloodWatch` pauses."""
        return self._requests

    @property
    def unresponsive(self) -> bool:
        """Whether a request is overdue, and the bot has replied neither to it nor to a later request."""
        return bool(self._requests.overdue_since_reply)

    @property
    def is_needed(self) -> bool:
        """Whether the bot plays a game, or the referee waits for its hello or a late reply. If not, its processes are `STOPPED`."""
        return self._find_scheduling() is not Scheduling.STOPPED

    # The stream

    async def serve(self, stream: Stream) -> None:
        """Read a stream to its end if it is the bot's stream, and end it otherwise.

        The first stream with a valid hello is the bot's stream.
        """
        sender = await self._find_sender(stream)
        if sender.is_own:
            self._count_stream()
        if self._stream is None or not sender.is_own:
            await self._await_hello(stream, sender)
            if self._stream is None:
                return
        if self._stream is not stream:
            # `abort` raises, so only the bot's stream gets past this line
            await stream.abort(grpc.StatusCode.ALREADY_EXISTS, "this bot has its stream already")
        reading = asyncio.ensure_future(self._read(stream))
        try:
            await asyncio.wait((reading,))
            self._fail_after_bug(reading)
        finally:
            reading.cancel()
            self.closed.set()
            self._outbox.close()

    def _count_stream(self) -> None:
        """Note that the bot has opened a stream. Each stream after the first counts as an unsolicited message."""
        if self.connected:
            try:
                self._inbox.count_unsolicited(1)
            except Forfeit as failure:
                self.fail(failure)
        self.connected = True

    async def _await_hello(self, stream: Stream, sender: Sender) -> None:
        """Read the first message of a stream. If it is a valid hello, make the stream the bot's stream.

        If the bot ends all its streams before its hello, close the session. If `_MAX_FIRST_READS` streams of the bot already wait
        for their first message, refuse the stream.
        """
        if sender.is_own and self._own_streams == _MAX_FIRST_READS:
            await stream.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"this bot has {_MAX_FIRST_READS} streams without a hello already",
            )
        reading = asyncio.ensure_future(stream.read())
        self._first_reads.add(reading)
        self._own_streams += sender.is_own
        try:
            await asyncio.wait((reading,), timeout=STRANGER_LIMIT_S if self._stream else None)
            if not reading.done() or reading.cancelled():
                # late or cancelled: another stream is the bot's stream already
                return
            self._fail_after_bug(reading)
            if reading.exception() is None and isinstance(data := reading.result(), bytes):
                await self._receive_hello(stream, sender, data)
        finally:
            reading.cancel()
            self._first_reads.discard(reading)
            self._own_streams -= sender.is_own
            if sender.is_own and not self._own_streams and self._stream is None:
                self.closed.set()

    async def _receive_hello(self, stream: Stream, sender: Sender, data: bytes) -> None:
        """Process the first message of a stream, which must be a valid hello.

        If it is not valid, and the bot itself has sent it, tell the bot the reason and fail the session. What other
        programs send is never charged to the bot.
        """
        try:
            hello = self._inbox.parse_hello(data)
        except Forfeit as failure:
            if sender.is_own:
                try:
                    with suppress(grpc.aio.BaseError):
                        await stream.write(messages.goodbye(failure.evidence.detail))
                finally:  # charge also a bot that disconnects during this write
                    self.fail(failure)
            elif failure.cause is Cause.IMPERSONATION:
                sender.charge_impersonation(messages.parse_bot_message(data).hello.token)
            return
        if not await sender.confirm():
            if self.failure is None:  # after a failure, the referee itself has ended the stream
                sender.charge_impersonation(hello.token)
        elif not self._hello.reply.done():
            # the reply is done already if the bot has said hello before, if the hello is late, or if the session has failed
            self._stream = stream
            self._outbox.open(stream)
            self.connected = True
            self._batch_wait_ns = min(hello.batch_wait_us, MAX_BATCH_WAIT_US) * 1000
            self._hello.reply.set_result(hello)
            for other in self._first_reads:
                other.cancel()

    def _fail_after_bug(self, reading: asyncio.Future[Any]) -> None:
        """Fail the session if reading has raised an error of the referee, which must not be charged to the bot."""
        error = reading.exception()
        if isinstance(error, Exception) and not isinstance(error, grpc.aio.BaseError):
            self.fail(error)

    def fail(self, failure: Exception) -> None:
        """Close the session and raise an error in all callers that await a reply. A second call has no effect.

        If the bot plays several games, a `Forfeit` is charged in only one of them, and the others are void. The charged
        game is chosen by chance among the games in which a caller awaits a reply. But if the charged game is just starting, its
        caller may replace the process and charge nothing. So the games that wait for a ready are candidates only if the bot
        is ready in no game. If there is no candidate, the next game that starts, asks for a decision or becomes void is charged.
        """
        if self.failure is not None:
            return
        self.failure = failure
        self.closed.set()
        self._outbox.close()
        self._cores.withdraw(self)
        if self._has_core:
            self._has_core = False
            self._cores.release()
        # Callers get the replies of a batch together. So a request whose reply has come can still be chosen if its batch is
        # not finished. Otherwise a bot could reply to all requests except one, exit, and so choose the game that it forfeits.
        pending = self._requests.pending.values()
        candidates = [each for each in pending if not each.reply.done()]
        # A start that has just become overdue counts too: its future is done, but the bot is not ready.
        starting = {
            each.game_id for each in pending if each.number == READY and not each.is_answered
        }
        if self._games - starting:
            candidates = [each for each in candidates if each.number != READY]
        if candidates:
            self._charged_game = secrets.choice(candidates).game_id
        self._requests.fail_all(lambda request: self._failure_of(request.game_id))

    def _charge_failure(self, game_id: str) -> Exception:
        """Return the error of a failed session for a game. If it is not known yet which game is charged, charge this one."""
        if self._charged_game is None:
            self._charged_game = game_id
        return self._failure_of(game_id)

    def _failure_of(self, game_id: str) -> Exception:
        """Return the error that a game gets after `fail`. A `Forfeit` becomes a `VoidGame`, except for the charged game."""
        failure = self.failure
        assert failure is not None  # noqa: S101 - the caller has checked it
        if not isinstance(failure, Forfeit):
            return failure
        if self._charged_game != game_id:
            return VoidGame(f"the bot has failed in another game: {failure}")
        return Forfeit(failure.cause, failure.evidence)

    async def _read(self, stream: Stream) -> None:
        inbox = self._inbox
        while isinstance(data := await stream.read(), bytes):  # gRPC returns EOF at the end
            if inbox.receive_sole_reply(data):
                continue
            try:
                inbox.receive(data)
            except Forfeit as failure:
                self.fail(failure)
            if self.failure is not None:
                return
            if self._late_timer is not None:
                self._update_scheduling()  # the message may have the late reply

    def _on_overdue(self, batch: Batch) -> None:
        self._outbox.limit_write(batch.limit_us)
        if batch.requests[0].number != READY:
            if self._late_timer is not None:
                self._late_timer.cancel()
            self._late_timer = self._call_later(LATE_REPLY_LIMIT_S, self._end_late_time)
        if self._requests.missed >= MAX_MISSED and len(self._games) > 1:
            detail = f"the bot has not replied to anything in {MAX_MISSED} messages in a row"
            self.fail(Forfeit(Cause.CRASH, Evidence(detail=detail)))

    def _end_late_time(self) -> None:
        self._late_timer = None
        self._update_scheduling()

    def _on_unread(self) -> None:
        self.fail(Forfeit(Cause.CRASH, Evidence(detail="the bot does not read its stream")))

    # Messages to the bot

    async def wait_for_hello(self, limit_us: int, since_ns: int) -> play_pb2.Hello:
        """Wait for the bot's hello and return it.

        Args:
            limit_us: how many microseconds the bot may take.
            since_ns: the time, in ns of the session's clock, at which the referee began to start the bot.

        Raises `Forfeit` (CONNECT_TIMEOUT) if the hello is late, and `failure` if the session fails.
        """
        if self.failure is not None:
            raise self._charge_failure(HELLO)
        self._hello.limit_us = limit_us
        self._requests.start_clock((self._hello,), since_ns)
        try:
            hello: play_pb2.Hello = await self._hello.reply
        finally:
            self._requests.end_hello()
            self._update_scheduling()
        return hello

    async def start_game(self, game_id: str, start: bytes, limit_us: int) -> None:
        """Send a game start and wait for the bot's ready.

        Raises `Forfeit` (GAME_START_TIMEOUT) if the ready is late, and the errors of `fail` if the session fails.
        """
        if self.failure is not None:
            raise self._charge_failure(game_id)
        request = self._add_request(game_id, READY, limit_us)
        self._games.add(game_id)
        self._update_scheduling()
        is_ready = False
        try:
            self._wait_for_core(start, request)
            await request.reply
            is_ready = True
        except Forfeit as failure:
            raise self._with_times(failure, request) from None
        finally:
            self._forget(request)
            if not is_ready:
                self._games.discard(game_id)
                self._update_scheduling()

    def end_game(self, game_id: str, end: bytes) -> None:
        """Send the end of a game together with the next message to the bot."""
        self._games.discard(game_id)
        self._outbox.put_end(end)
        self._update_scheduling()

    def abandon_game(self, game_id: str) -> Forfeit | None:
        """Forget a void game. The bot is not told, because the protocol has no message for a void game.

        If the bot has failed and no other game is charged with the failure, charge this game and return the failure.
        """
        self._games.discard(game_id)
        self._update_scheduling()
        failure = None if self.failure is None else self._charge_failure(game_id)
        return failure if isinstance(failure, Forfeit) else None

    async def request(self, game_id: str, number: int, message: bytes, limit_us: int) -> TimedReply:
        """Send the request for a decision and wait for the reply.

        Raises `Strike` if the reply is late (TIMEOUT) or unreadable (MALFORMED). Raises the errors of `fail` if the
        session fails.
        """
        if self.failure is not None:
            raise self._charge_failure(game_id)
        request = self._add_request(game_id, number, limit_us)
        try:
            if len(self._games) == 1 and self._outbox.is_empty and self._cores.take():
                self._has_core = True
                self._update_scheduling()
                self._requests.start_clock((request,), self._now_ns())
                self._outbox.write(message)
            else:
                self._wait_for_core(message, request)
            reply: TimedReply = await request.reply
        except Forfeit as failure:
            raise self._with_times(failure, request) from None
        finally:
            self._forget(request)
        return reply

    def say_goodbye(self, goodbye: bytes) -> None:
        """Write all messages that wait, and `goodbye` after them. Do not wait for the end of the write."""
        self._outbox.write_all(goodbye)

    def _wait_for_core(self, message: bytes, request: PendingRequest) -> None:
        """Let a request wait for a later batch. Claim a core for it, unless the bot has a core or has claimed one."""
        if not self._has_core and not self._outbox.waiting:
            self._waiting_since_ns = self._now_ns()
            self._cores.claim(self)
        self._outbox.put_request(message, request)

    def begin(self) -> None:
        """Write a batch of the requests that wait; see `Claimant.begin`."""
        self._has_core = True
        self._update_scheduling()
        data, batch = self._outbox.take_batch(
            self._requests.reserve_us, alone=self._requests.missed > 0
        )
        if not batch:  # all requests were removed while they waited
            self._give_core_back()
            return
        now_ns = self._now_ns()
        waited_ns = min(self._batch_wait_ns, now_ns - self._waiting_since_ns)
        self._requests.start_clock(batch, now_ns - waited_ns)
        self._outbox.write(data)

    def _give_core_back(self) -> None:
        """Give the core back when a batch is finished, and claim one for the requests that wait."""
        if not self._has_core:  # the batch was a hello
            return
        self._has_core = False
        self._update_scheduling()
        self._cores.release()
        if self._outbox.waiting:
            self._waiting_since_ns = self._now_ns()
            self._cores.claim(self)

    def _with_times(self, failure: Forfeit, request: PendingRequest) -> Forfeit:
        return Forfeit(failure.cause, self._requests.add_times(failure.evidence, request))

    def _forget(self, request: PendingRequest) -> None:
        """Remove a request whose caller does not wait for it any more."""
        self._requests.pending.pop(request.game_id, None)
        if request.batch is None:
            self._outbox.remove(request)
        else:
            self._requests.abandon(request)

    def _update_scheduling(self) -> None:
        if self.failure is None and self.scheduler is not None:
            self.scheduler.schedule(self._find_scheduling())

    def _find_scheduling(self) -> Scheduling:
        if self._has_core or HELLO in self._requests.pending:
            return Scheduling.NORMAL
        if self._games:
            return Scheduling.NORMAL if self._pondering else Scheduling.IDLE
        if self._requests.overdue and self._late_timer is not None:
            return Scheduling.IDLE
        return Scheduling.STOPPED

    def _add_request(self, game_id: str, number: int, limit_us: int) -> PendingRequest:
        # a second request would replace the first one, and the first caller would wait forever
        assert game_id not in self._requests.pending  # noqa: S101
        request = PendingRequest(game_id, number, limit_us, self._loop.create_future())
        self._requests.pending[game_id] = request
        return request
