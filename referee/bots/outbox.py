"""Decide what is written to a bot in one message, and when.

The `Outbox` of a bot writes the messages about ended games and the next batch of requests as one message. Only one write is in
progress at a time.

`Cores` says which bot thinks: one bot at a time on each core. When several games are played at the same time, several bots
have requests. If these bots computed at the same time, each would take CPU time from the others. So a bot gets a batch of its
requests only when it gets a core, and keeps the core until the batch is finished. The clock of a batch starts when the batch is
written. A bot can ask in its hello that its requests wait for further requests (`batch_wait_us`). This wait is charged to
the bot, so the clock then starts earlier, at most by `batch_wait_us`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import grpc

from referee.bots.clock import (
    BATCH_LIMIT_US,
    CORE_WAIT_LIMIT_US,
    READY,
    Clock,
    PendingRequest,
)
from referee.bots.server import Stream

MAX_PASSED = 8
"""A bot goes first once other bots have got a core this many times while it waited."""


class Outbox:
    """The messages to one bot.

    A write does nothing before `open`, after `close`, and after the end of the stream.

    Args:
        clock: the source of time.
        on_closed: called if a write finds that the stream has ended.
        on_unread: called if a write takes too long, because the bot does not read its stream.
    """

    def __init__(
        self, clock: Clock, *, on_closed: Callable[[], None], on_unread: Callable[[], None]
    ) -> None:
        self._now_ns = clock.now_ns
        self._call_later = clock.call_later
        self._on_closed = on_closed
        self._on_unread = on_unread
        self._stream: Stream | None = None
        """The bot's stream; None before `open`, after `close` and after the end of the stream."""
        self._ends: list[bytes] = []
        """Ends of games, which wait for the next message."""
        self._requests: dict[PendingRequest, bytes] = {}
        """The requests that wait, each with its message, the oldest first."""
        self._writing: Coroutine[Any, Any, None] | None = None
        """The write in progress; None if there is none."""
        self._next: deque[bytes] = deque()
        """The messages to write after the write in progress, the oldest first."""
        self._writing_since_ns = 0
        """The time, in ns of the clock, at which the current write began; 0 if no write is in progress."""

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        return len(self._requests)

    @property
    def is_empty(self) -> bool:
        """Whether no request and no end of a game waits."""
        return not self._requests and not self._ends

    def open(self, stream: Stream) -> None:
        """Begin to write to the bot's stream."""
        self._stream = stream

    def close(self) -> None:
        """Write nothing more."""
        self._stream = None

    def put_end(self, message: bytes) -> None:
        """Keep a message about the end of a game. It is sent together with the next request, game start or goodbye."""
        self._ends.append(message)

    def put_request(self, message: bytes, request: PendingRequest) -> None:
        """Let a message with a request wait for `take_batch`."""
        self._requests[request] = message

    def remove(self, request: PendingRequest) -> None:
        """Drop a request. Do nothing if it does not wait."""
        self._requests.pop(request, None)

    def take_batch(
        self, reserve_us: int | None, *, alone: bool = False
    ) -> tuple[bytes, list[PendingRequest]]:
        """Remove the next batch and all ends of games. Return them as one message, and the requests in it.

        If no request waits, the ends stay, and the message is empty. A batch has only game starts or only decisions, the
        oldest first. It ends before the request that would increase the sum of the reserved times above `BATCH_LIMIT_US`.
        So a bot is probably in time even if it makes one decision after the other and sends all replies at the end.

        Args:
            reserve_us: how many microseconds to reserve for each decision after the first, but at most the time limit of the
                decision. None to reserve the whole limit. For a game start, the whole limit is always reserved.
            alone: whether the batch must have only one request.
        """
        batch: list[PendingRequest] = []
        left_us = BATCH_LIMIT_US
        for request in self._requests:
            is_ready = request.number == READY
            if not batch:
                wants_ready = is_ready
            elif is_ready is wants_ready:
                needed_us = request.limit_us
                if reserve_us is not None and not is_ready:
                    needed_us = min(needed_us, reserve_us)
                left_us -= needed_us
                if left_us < 0:
                    break
            else:
                continue
            batch.append(request)
            if alone:
                break
        if not batch:
            return b"", batch
        parts, self._ends = self._ends, []
        parts += [self._requests.pop(request) for request in batch]
        return b"".join(parts), batch

    def write_all(self, last: bytes) -> None:
        """Write all messages that wait, and `last` after them."""
        parts = [*self._ends, *self._requests.values(), last]
        self._ends, self._requests = [], {}
        self.write(b"".join(parts))

    def write(self, data: bytes) -> None:
        """Begin to write a message. If a write is in progress, write the message after it, in the order of the calls.

        No caller waits for the end of a write, because a bot that reads only a part of a message could then block its game
        for ever. The clock of a batch also runs while its message waits; see `limit_write`.
        """
        if self._stream is None:
            return
        self._next.append(data)
        self._begin_next()

    def _begin_next(self) -> None:
        if self._writing is None:
            self._go_on_writing()

    def _go_on_writing(self, _ended: object = None) -> None:
        """Write the messages in `_next`, until a write waits for gRPC or no message is left.

        If a write has to wait, it waits for a future of gRPC, which then calls this method again. A task is not used, because
        it would begin each write one iteration of the event loop later. With one game, this delay is a tenth of the time that
        the referee itself needs for a decision.
        """
        while True:
            if self._writing is None:
                if self._stream is None or not self._next:
                    return
                self._writing_since_ns = self._now_ns()
                self._writing = self._stream.write(self._next.popleft())
            try:
                future = self._writing.send(None)
            except BaseException as error:
                self._writing = None
                self._writing_since_ns = 0
                if isinstance(error, grpc.aio.BaseError | asyncio.CancelledError):
                    self._stream = None  # it has ended
                    self._on_closed()
                elif not isinstance(
                    error, StopIteration
                ):  # `StopIteration` means that the message is written
                    asyncio.get_running_loop().call_soon(self._begin_next)
                    raise
            else:
                future.add_done_callback(self._go_on_writing)
                return

    def limit_write(self, limit_us: int) -> None:
        """Call `on_unread` if the current write takes too long. Call this method when a batch is overdue.

        A bot that does not read its stream blocks the write, and nothing else limits the time of a write.

        Args:
            limit_us: the time limit of the overdue batch. A write always has at least `CORE_WAIT_LIMIT_US`.
        """
        if self._writing_since_ns:
            # gRPC's threads may wait for a core before they report that the bot has read the message
            limit_ns = max(limit_us, CORE_WAIT_LIMIT_US) * 1000
            self._check_write(self._writing_since_ns, limit_ns)

    def _check_write(self, since_ns: int, limit_ns: int) -> None:
        if self._writing_since_ns != since_ns:
            return  # the write that began then has ended
        left_ns = since_ns + limit_ns - self._now_ns()
        if left_ns > 0:
            self._call_later(left_ns / 1e9, self._check_write, since_ns, limit_ns)
        else:
            self._on_unread()


class Claimant(Protocol):
    """A bot that wants a core; `Session` is one."""

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        ...

    @property
    def lingers(self) -> bool:
        """Whether the bot's requests still wait for further requests, as the bot has asked in its hello (`batch_wait_us`).

        Bots that do not linger get a core first, unless a bot that lingers was passed over `MAX_PASSED` times. If no other bot
        wants a free core, a bot that lingers gets it at once.
        """
        ...

    def begin(self) -> None:
        """Use a core. The claimant calls `Cores.release` when its batch is finished or the bot has failed."""
        ...


class Cores:
    """The cores on which the bots of a worker think; one, unless the tournament sets `cores_per_game`.

    Args:
        count: how many bots may think at the same time.
    """

    def __init__(self, count: int = 1) -> None:
        self._free = count
        self._passed: dict[Claimant, int] = {}
        """For each claimant: how often others got a core while it waited. The oldest claim is first."""
        self._is_granting_soon = False

    def take(self) -> bool:
        """Take a core immediately, if one is free and no bot waits for it. Return whether it was taken."""
        if not self._free or self._passed:
            return False
        self._free -= 1
        return True

    def claim(self, claimant: Claimant) -> None:
        """Call `begin` of the claimant when it gets a core, but not during this call.

        When a batch is finished, many games continue, and send their next requests in the same iteration of the event loop. A
        core is granted only after these requests, because the number of waiting requests decides which bot gets it.
        """
        self._passed.setdefault(claimant, 0)
        self._grant_soon()

    def withdraw(self, claimant: Claimant) -> None:
        """Forget a claim, if there is one."""
        self._passed.pop(claimant, None)

    def release(self) -> None:
        """Give a core back."""
        self._free += 1
        self._grant_soon()

    def _grant_soon(self) -> None:
        if self._free and self._passed and not self._is_granting_soon:
            self._is_granting_soon = True
            asyncio.get_running_loop().call_soon(self._grant)

    def _grant(self) -> None:
        """Give each free core to a claimant; see `_urgency`."""
        self._is_granting_soon = False
        while self._free and self._passed:
            chosen = max(self._passed, key=self._urgency)
            del self._passed[chosen]
            for claimant in self._passed:
                self._passed[claimant] += 1
            self._free -= 1
            chosen.begin()

    def _urgency(self, claimant: Claimant) -> tuple[bool, bool, int]:
        """Return a larger value for a more urgent claimant.

        Claimants that were passed over `MAX_PASSED` times come first, then those that do not linger, then those with the most
        requests.
        """
        return self._passed[claimant] >= MAX_PASSED, not claimant.lingers, claimant.waiting
