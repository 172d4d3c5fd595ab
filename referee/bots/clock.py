"""Track the pending requests of one bot, charge the time of each reply, and decide when a request is overdue.

Requests that are written in one message are a batch.

`session` reads the messages from the bot, `inbox` checks them, and `outbox` writes messages to the bot. The time comes
from a `Clock`, which tests replace.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from referee.errors import BotFault, Cause, Evidence, Forfeit, Strike

HELLO = ""
"""Used as the game id of the request for a hello, which belongs to no game."""
READY = 0
"""Used as the decision number of a request for a hello or for a ready (the reply to a game start). Decisions have numbers from 1."""
REPLY_GRACE_US = 2_000
"""The grace period after a deadline, in µs. gRPC's threads may still pass on a reply that arrived in time."""
TIMER_TOLERANCE_US = 2_000
"""If a timer fires more than this many µs late, the event loop counts as late. uvloop's timers are exact to 1 ms."""
MAX_GRACE_PERIODS = 5
"""How many grace periods a batch can have, the first one included, if the event loop is late every time. Grace
periods for a bot that runs or waits for a core, and those while the clocks are paused, do not count."""
CPU_GRACE_US = 1_000
"""The CPU time, in µs, that a bot still gets to send its reply if it runs or waits for a core at its deadline."""
CORE_WAIT_LIMIT_US = 2_000_000
"""A bot gets no further grace period to use its `CPU_GRACE_US` when this many µs have passed since its deadline. Two
seconds are enough to get a core, because Linux reserves a part of every second for normal processes, even if real-time
processes use the machine."""
_RESERVE = 4
"""For each decision after its first one, a batch reserves this number times `PendingRequests._slowest_us`, but at most the
limit of the decision. A batch gets no more decisions when its reserved times would add up to more than `BATCH_LIMIT_US`."""
BATCH_LIMIT_US = 60_000_000
"""If a bot is silent for longer than the largest limit in its batch plus this time, the batch is overdue, even before the
sum of the limits has passed. So a bot that hangs does not hold its core for long."""
_PAUSE_CHECK_NS = 10_000_000
"""While the clocks are paused: after how many ns to check again whether they run."""
_MISSING = {
    Cause.TIMEOUT: "no reply",
    Cause.GAME_START_TIMEOUT: "no ready",
    Cause.CONNECT_TIMEOUT: "no hello",
}


class Timer(Protocol):
    """A scheduled call; `Clock.call_later` returns it."""

    def cancel(self) -> None:
        """Cancel the call."""
        ...


class Clock(NamedTuple):
    """A source of time and of timers."""

    now_ns: Callable[[], int]
    """Returns monotonic time in nanoseconds."""
    call_later: Callable[..., Timer]
    """Schedules a call; takes a delay in seconds, a function, and the arguments of the function."""

    @classmethod
    def from_loop(cls) -> Clock:
        """Return the real clock with the timers of the running event loop."""
        return cls(time.monotonic_ns, asyncio.get_running_loop().call_later)


# The states of a batch:
#
#     written --deadline passes--> grace period --grace period ends--> finished: the open requests are overdue
#      |                            |         ^ |
#      |                            |         +-+ starts again: the event loop was late,
#      |                            |             the bot runs or waits for a core,
#      |                            |             or the clocks are paused
#      |<-- deadline was moved -----|
#
# "Finished" follows from both other states when no request is open any more. A request of the batch is open until its
# reply comes, the request is overdue, its caller is cancelled, or the session fails. A malformed message may be the reply
# to any open decision, so it closes all open decisions.


class TimedReply(NamedTuple):
    """A reply with its times."""

    action: bytes
    """The serialised action; empty for a ready."""
    elapsed_us: int
    """The charged time in microseconds: the request's share of the time from `Batch.written_ns` to the last reply of the batch,
    without the lag. At most the limit of the request; at least 1 for a single request."""
    lag_us: int = 0
    """How many microseconds after the deadline of the batch the referee saw its last reply; 0 if within the limit."""
    wall_us: int = 0
    """Microseconds from `Batch.written_ns` to the last reply of a batch of several requests; 0 for a single request."""
    batch_size: int = 1
    """The number of requests in the batch."""


class PendingRequest:
    """A request to a bot, with the future for its reply."""

    batch: Batch | None = None
    """The batch in which it was written; None until then."""
    action: bytes | None = None
    """The serialised action of its reply, which waits here until the batch is finished; None before the reply."""

    def __init__(
        self, game_id: str, number: int, limit_us: int, reply: asyncio.Future[Any]
    ) -> None:
        self.game_id = game_id
        """The game's id, or `HELLO`."""
        self.number = number
        """The number of the decision, or `READY`."""
        self.limit_us = limit_us
        """How many microseconds the bot has for the reply."""
        self.reply = reply
        """The future of the reply. The result is a `Hello` message for a hello, and a `TimedReply` for any other reply."""

    @property
    def is_open(self) -> bool:
        """Whether the bot still has to reply."""
        return self.action is None and not self.reply.done()

    @property
    def is_answered(self) -> bool:
        """Whether the future has the reply."""
        reply = self.reply
        return reply.done() and not reply.cancelled() and reply.exception() is None

    @property
    def cause(self) -> Cause:
        """The cause of the fault if no reply comes in time."""
        if self.number != READY:
            return Cause.TIMEOUT
        return Cause.GAME_START_TIMEOUT if self.game_id != HELLO else Cause.CONNECT_TIMEOUT


class Batch:
    """The requests that were written in one message. They share one clock.

    The bot has the sum of their limits for all replies together, but see `BATCH_LIMIT_US`.

    When the batch is finished, the time from `written_ns` to the last reply, but at most to the deadline, is divided among
    all requests in proportion to their limits. So with k requests of equal limits, each has a share of 1/k. A request
    with a reply is charged its share, which is never above its limit. Time after the deadline is a lag. It is charged only
    for an illegal or malformed reply, and only up to the limit of the request. An overdue request is charged its whole limit.
    """

    expired = False
    """Whether the batch is in a grace period, or has finished in one; see the states above."""
    cpu_at_deadline_ns: int | None = None
    """The bot's CPU time at the deadline; None before the deadline, or if all the bot's threads slept then."""
    last_reply_ns = 0
    """The time of the newest reply, in ns of the clock; 0 before the first. `credit` moves it."""

    def __init__(self, requests: Sequence[PendingRequest], written_ns: int) -> None:
        self.requests = requests
        self.written_ns = written_ns
        """When the clock of the batch started, in ns of the clock. The clock of a hello starts when the referee begins to
        start the bot. The clock of other requests starts when they are written. With a `batch_wait_us` in the bot's hello,
        it starts earlier, by the time that the session has waited for a core, but at most by `batch_wait_us`. `credit`
        moves the start."""
        self.open = len(requests)
        """The number of requests to which the bot still has to reply."""
        self.sum_us = requests[0].limit_us
        """The sum of the limits, in microseconds."""
        self._patience_us = self.sum_us
        """How many microseconds the bot may be silent, from the write or from its newest reply."""
        if len(requests) > 1:
            limits_us = [request.limit_us for request in requests]
            self.sum_us, self._patience_us = sum(limits_us), max(limits_us) + BATCH_LIMIT_US
        self.deadline_ns = 0
        """The time, in ns of the clock, at which the limit ends."""
        self.set_deadline(written_ns)

    def set_deadline(self, now_ns: int) -> None:
        """Set the deadline. `now_ns` is the time of the newest reply so far, or of the write if there is none."""
        limit_ns = self.written_ns + self.sum_us * 1000
        self.deadline_ns = min(limit_ns, now_ns + self._patience_us * 1000)

    @property
    def limit_us(self) -> int:
        """How many microseconds the bot has for all replies."""
        return (self.deadline_ns - self.written_ns) // 1000

    def share_us(self, request: PendingRequest, wall_us: int) -> int:
        """Return the share of a request in `wall_us`, a time in microseconds that the whole batch has taken."""
        if len(self.requests) == 1:
            return wall_us
        return wall_us * request.limit_us // max(1, self.sum_us)


class PendingRequests:
    """The pending requests of one bot, at most one for each game. At most one batch of them is written and not finished.

    A reply is in time if it reached the referee's socket before the deadline, however late the event loop
    sees the reply. gRPC reads the socket and does not say when a reply arrived, but it passes the reply on soon.
    So a bot is charged only after a grace period, which is longer if the event loop was late. A reply that the
    event loop sees within the grace period counts as in time.

    A bot may have its reply ready and wait for a core that another program uses. The bot is not charged for such a
    wait. If the bot runs or waits for a core at its deadline, it still gets `CPU_GRACE_US` of CPU time, but no later
    than `CORE_WAIT_LIMIT_US` after the deadline. If the bot goes on computing, it has soon used up this CPU time,
    and is charged.

    Args:
        clock: the source of time.
        on_overdue: called with each batch that has overdue requests.
        on_finished: called when a batch is finished, except by `fail_all` and `end_hello`.
        busy_ns: returns the bot's CPU time in ns; None if all threads of the bot sleep now.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        on_overdue: Callable[[Batch], None],
        on_finished: Callable[[], None],
        busy_ns: Callable[[], int | None],
    ) -> None:
        self.pending: dict[str, PendingRequest] = {}
        """The pending requests by game id, also those that are not written yet, the oldest first."""
        self.overdue: set[tuple[str, int]] = set()
        """Game id and decision number of each overdue request; the bot may still send a late reply to the request."""
        self.overdue_since_reply: set[tuple[str, int]] = set()
        """The requests that became overdue after the last reply in time, whatever the game of this reply. They are all in
        `overdue` too. A late reply removes its request from this set, and earlier requests of the same game."""
        self.batch: Batch | None = None
        """The batch that is written and not finished."""
        self._slowest_us: int | None = None
        """The mean time for a decision in the slowest batch of decisions so far, in microseconds; None before the first. The
        mean is the time until the last reply, divided by the number of replies. For an overdue batch, it is the limit of the
        batch, divided by the number of its replies plus one, because the bot was still busy with the next decision.
        Malformed replies are not counted here."""
        self.missed = 0
        """How many batches in a row were overdue without any reply."""
        self._clock = clock
        self._now_ns = clock.now_ns
        self._on_overdue = on_overdue
        self._on_finished = on_finished
        self._busy_ns = busy_ns
        self._timer: Timer | None = None
        self._timer_ns = 0
        self._paused_ns: int | None = None
        """The time, in ns of the clock, at which the clocks were paused; None if they run."""

    @property
    def reserve_us(self) -> int | None:
        """How many microseconds of a batch to reserve for a decision, see `_RESERVE`; None to reserve its whole limit."""
        return None if self._slowest_us is None else _RESERVE * self._slowest_us

    def pause(self) -> None:
        """Pause the clock. Until `resume` no batch becomes overdue, not even one that is written during the pause."""
        self._paused_ns = self._now_ns()

    def resume(self) -> None:
        """Let the clock run again, and do not count the time since `pause`."""
        assert self._paused_ns is not None  # noqa: S101 - the caller has paused the clocks
        paused_ns, self._paused_ns = self._paused_ns, None
        self.credit(self._now_ns() - paused_ns)

    def credit(self, ns: int) -> None:
        """Exclude the last `ns` nanoseconds from the time of the batch, at most the time since it was written."""
        batch, now_ns = self.batch, self._now_ns()
        if batch is not None:
            more_ns = min(ns, now_ns - batch.written_ns)
            batch.written_ns += more_ns
            batch.deadline_ns += more_ns
            # if the reply came during the last `ns`, only the part before the reply is excluded from the reply's time
            if batch.last_reply_ns:
                batch.last_reply_ns = min(batch.last_reply_ns + more_ns, now_ns)

    def start_clock(self, requests: Sequence[PendingRequest], written_ns: int) -> None:
        """Make a batch of these requests, and start its clock at `written_ns`."""
        self.batch = batch = Batch(requests, written_ns)
        for request in requests:
            request.batch = batch
        if self._timer is None or batch.deadline_ns < self._timer_ns:
            self._arm_timer(batch.deadline_ns)

    def add_times(self, evidence: Evidence, request: PendingRequest) -> Evidence:
        """Return the evidence with the time since a request was written; 0 if it was not written yet.

        If several requests are in the batch, this time is the request's share, and the time and the size of the batch are added.
        """
        batch = request.batch
        if batch is None:
            return replace(evidence, elapsed_us=0)
        now_ns = self._now_ns() if self._paused_ns is None else self._paused_ns
        wall_us, size = max(0, now_ns - batch.written_ns) // 1000, len(batch.requests)
        return replace(
            evidence,
            elapsed_us=batch.share_us(request, wall_us),
            wall_us=wall_us if size > 1 else 0,
            batch_size=size,
        )

    def complete(self, request: PendingRequest, action: bytes) -> None:
        """Note the reply to an open request of the batch. After the last reply of a message, call `end_message`."""
        assert request.batch is not None  # noqa: S101 - only written requests are open
        request.action = action
        request.batch.open -= 1

    def end_message(self) -> None:
        """Note when the replies of a message came. The callers that await them get them when the batch is finished."""
        batch, self.missed = self.batch, 0
        assert batch is not None  # noqa: S101 - its replies were noted before
        batch.last_reply_ns = self._now_ns() if self._paused_ns is None else self._paused_ns
        if batch.open:
            batch.set_deadline(batch.last_reply_ns)
        else:
            self._finish(batch)

    def fail(self, request: PendingRequest, failure: Exception) -> None:
        """Raise `failure` in the caller of an open request of the batch."""
        assert request.batch is not None  # noqa: S101 - only written requests are open
        fail_request(request, failure)
        self._close(request.batch)

    def abandon(self, request: PendingRequest) -> None:
        """Note that nobody awaits a request any more. Do nothing if its reply has come or its batch is finished."""
        batch = request.batch
        if batch is not None and batch is self.batch and request.action is None:
            request.reply.cancel()
            self._close(batch)

    def _close(self, batch: Batch) -> None:
        """Note that a request of the batch is not open any more. Finish the batch if it was the last one."""
        batch.open -= 1
        if not batch.open:
            self._finish(batch)

    def _finish(self, batch: Batch) -> None:
        """Pass the replies of a batch to the callers that await them.

        If the last reply came in the grace period, the time from the deadline to this reply is the lag of all replies. A batch
        takes at least 1 µs, even if it is both written and answered while the clocks are paused: in a record, 0 µs means that
        there was no request.
        """
        wall_us = max(1, (batch.last_reply_ns - batch.written_ns) // 1000)
        lag_us = max(0, wall_us - batch.limit_us)
        size = len(batch.requests)
        actions = [request.action for request in batch.requests]
        replies = size - actions.count(None)
        if replies and batch.requests[0].number != READY:
            self._slowest_us = max(self._slowest_us or 0, wall_us // replies)
        for request, action in zip(batch.requests, actions, strict=True):
            if action is not None and not request.reply.done():
                elapsed_us = batch.share_us(request, wall_us - lag_us)
                timed = TimedReply(action, elapsed_us, lag_us, wall_us if size > 1 else 0, size)
                request.reply.set_result(timed)
        if self.batch is batch:
            self.batch = None
            self._on_finished()

    def end_hello(self) -> None:
        """Stop the clock of the hello."""
        self.pending.pop(HELLO, None)
        self.batch = None

    def forget_overdue(self, game_id: str, games: Container[str]) -> None:
        """Forget the overdue requests of a game after the bot has replied to a later request of this game.

        The bot will not reply to the overdue requests any more. The overdue requests of finished games are
        forgotten too. Those of other games stay, but do not count as `overdue_since_reply` any more.

        Args:
            game_id: the game of the reply.
            games: the ids of the games that the bot plays now.
        """
        self.overdue = {key for key in self.overdue if key[0] != game_id and key[0] in games}
        self.overdue_since_reply.clear()

    def fail_all(self, describe: Callable[[PendingRequest], Exception]) -> None:
        """Raise an error in all callers that await a reply, and remove all requests. `describe` returns the error of a request."""
        for request in self.pending.values():
            fail_request(request, describe(request))
        self.pending.clear()
        self.batch = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm_timer(self, deadline_ns: int) -> None:
        """Set the timer so that it calls `_check_deadline` at `deadline_ns`.

        One timer serves all batches, one after the other, because a timer for each would double the cost of a request. A reply
        does not cancel it. If it fires before the deadline of the current batch, it is set again.
        """
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ns = deadline_ns
        delay_ns = max(0, deadline_ns - self._now_ns())
        self._timer = self._clock.call_later(delay_ns / 1e9, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        now_ns = self._now_ns()
        if self._paused_ns is not None:
            self._arm_timer(now_ns + _PAUSE_CHECK_NS)
            return
        batch = self.batch
        if batch is None or batch.expired:
            return
        if batch.deadline_ns > now_ns:
            self._arm_timer(batch.deadline_ns)
        else:
            batch.expired = True
            batch.cpu_at_deadline_ns = self._busy_ns()
            self._start_grace(batch, now_ns - batch.deadline_ns, MAX_GRACE_PERIODS - 1)

    def _start_grace(self, batch: Batch, late_ns: int, periods_left: int) -> None:
        """Start a grace period, in which the event loop may still see a reply that came before the deadline.

        Args:
            batch: the batch whose deadline has passed.
            late_ns: how many ns late the event loop was. If it was later than `TIMER_TOLERANCE_US`, the grace period
                is longer by `late_ns`.
            periods_left: how many grace periods the batch can have after the new one; see `MAX_GRACE_PERIODS`.
        """
        grace_ns = REPLY_GRACE_US * 1000 + (late_ns if late_ns > TIMER_TOLERANCE_US * 1000 else 0)
        end_ns = self._now_ns() + grace_ns
        self._clock.call_later(grace_ns / 1e9, self._end_grace, batch, end_ns, periods_left)

    def _end_grace(self, batch: Batch, end_ns: int, periods_left: int) -> None:
        if self.batch is not batch:  # finished
            return
        late_ns = self._now_ns() - end_ns
        left_ns = batch.deadline_ns - self._now_ns()
        if self._paused_ns is not None:
            self._start_grace(batch, 0, periods_left)
        elif left_ns > 0:  # `credit` or a reply has moved the deadline
            batch.expired, batch.cpu_at_deadline_ns = False, None
            self._arm_timer(batch.deadline_ns)
        elif late_ns > TIMER_TOLERANCE_US * 1000 and periods_left:
            self._start_grace(batch, late_ns, periods_left - 1)
        elif self._may_go_on(batch):
            self._start_grace(batch, 0, periods_left)
        else:
            self._charge(batch)

    def _may_go_on(self, batch: Batch) -> bool:
        """Return whether the bot gets another grace period to use its `CPU_GRACE_US`.

        The bot must have run or waited for a core at its deadline, must do so now, and must have used less than `CPU_GRACE_US` in
        between. After `CORE_WAIT_LIMIT_US`, return False in any case.
        """
        over_us = (self._now_ns() - batch.deadline_ns) // 1000
        if batch.cpu_at_deadline_ns is None or over_us >= CORE_WAIT_LIMIT_US:
            return False
        cpu_ns = self._busy_ns()
        return cpu_ns is not None and cpu_ns - batch.cpu_at_deadline_ns < CPU_GRACE_US * 1000

    def take_late_reply(self, game_id: str, number: int) -> bool:
        """Forget an overdue request because its late reply has come. Return False if the reply is not for an overdue request."""
        if (game_id, number) not in self.overdue:
            return False
        self.overdue.discard((game_id, number))
        self.overdue_since_reply = {
            key for key in self.overdue_since_reply if key[0] != game_id or key[1] > number
        }
        self.missed = 0
        return True

    def _charge(self, batch: Batch) -> None:
        """Raise a fault in the callers of the requests that are still open. Replies to the others are valid."""
        if batch.last_reply_ns:
            self.missed = 0
        else:
            self.missed += 1
        if batch.requests[0].number != READY:
            replies = sum(request.action is not None for request in batch.requests)
            self._slowest_us = max(self._slowest_us or 0, batch.limit_us // (replies + 1))
        wall_us = (self._now_ns() - batch.written_ns) // 1000
        for request in batch.requests:
            if request.is_open:
                self.overdue.add((request.game_id, request.number))
                self.overdue_since_reply.add((request.game_id, request.number))
                fail_request(request, overdue_fault(request, batch, wall_us))
        self._on_overdue(batch)
        self._finish(batch)


def fail_request(request: PendingRequest, failure: Exception) -> None:
    """Raise `failure` in the caller that awaits the reply. Do nothing if the future of the reply is done."""
    if not request.reply.done():
        request.reply.set_exception(failure)
        request.reply.exception()  # else asyncio logs the exception if the caller has stopped waiting


def overdue_fault(request: PendingRequest, batch: Batch, wall_us: int) -> BotFault:
    """Return the fault for an overdue request: a strike for a decision, a forfeit for a hello or a ready.

    `wall_us` is the time since the batch was written, in microseconds.
    """
    kind = Strike if request.cause is Cause.TIMEOUT else Forfeit
    detail = f"the bot sent {_MISSING[request.cause]} within {request.limit_us / 1e6:g} s"
    if len(batch.requests) > 1:
        what = "game starts" if request.number == READY else "requests"
        detail += (
            f", nor within {batch.limit_us / 1e6:g} s for {len(batch.requests)} {what} together"
        )
    return kind(
        request.cause,
        Evidence(
            detail=detail,
            elapsed_us=request.limit_us + max(0, wall_us - batch.limit_us),
            wall_us=wall_us if len(batch.requests) > 1 else 0,
            batch_size=len(batch.requests),
        ),
    )
