"""Track the pending requests of one bot and decide when each request is overdue.

`session` and `inbox` read and write the messages. The time comes from a `Clock`, which tests replace.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Container
from typing import Any, NamedTuple, Protocol

from referee.errors import BotFault, Cause, Evidence, Forfeit, Strike

HELLO = ""
"""Used as the game id of the request for a hello, which belongs to no game."""
READY = 0
"""Used as the decision number of a request for a hello or a ready. Decisions count from 1."""
REPLY_GRACE_US = 2_000
"""The grace period after a deadline, in µs. gRPC's threads may still pass on a reply that arrived in time."""
TIMER_TOLERANCE_US = 2_000
"""How many µs late a timer may fire before the event loop counts as late. uvloop's timers are exact to 1 ms."""
MAX_GRACE_PERIODS = 5
"""How many grace periods a request can have, the first one included, if the event loop is late every time. Not
counted are grace periods for a bot that waits for a core, and grace periods while the clocks are paused."""
CPU_GRACE_US = 1_000
"""The CPU time, in µs, that a bot still gets to send its reply if it runs or waits for a core at its deadline."""
CORE_WAIT_LIMIT_US = 2_000_000
"""How many µs after its deadline a bot is charged, even if it has not had `CPU_GRACE_US`. Two seconds are enough: Linux
reserves a part of every second for normal processes, even if real-time processes use the machine."""
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


# The states of a pending request:
#
#     created --start_clock()--> written --deadline passes--> grace period --grace period ends--> overdue
#        |                          |                          |         ^ |
#        |                          |                          |         +-+ starts again: the event loop was late,
#        |                          |                          |             the bot waits for a core,
#        |                          |                          |             or the clocks are paused
#        |                          |<-- deadline was moved ---|
#        +------------------------- + ------- reply ---------- + --> completed
#        +------------------------- + -- malformed, failure -- + --> failed
#
# In the states overdue, completed and failed the future `reply` is done. A reply can come before the request is
# written: the bot may say hello before `wait_for_hello` is called, or guess the number of a decision.


class PendingRequest:
    """A request to a bot, with its clock and with the future for its reply."""

    written_ns = 0
    """The time, in ns of the clock, at which the request was written to the stream; 0 until then."""
    deadline_ns = 0
    """The time, in ns of the clock, at which the limit ends; 0 until the request is written."""
    expired = False
    """True once the deadline has passed, until it is moved into the future."""
    cpu_at_deadline_ns: int | None = None
    """The bot's CPU time at the deadline; None before the deadline, or if all the bot's threads slept then."""

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
    def cause(self) -> Cause:
        """The cause of the fault if no reply comes in time."""
        if self.number != READY:
            return Cause.TIMEOUT
        return Cause.GAME_START_TIMEOUT if self.game_id != HELLO else Cause.CONNECT_TIMEOUT


class PendingRequests:
    """The pending requests of one bot, at most one for each game.

    A reply is in time if it reached the referee's socket before the deadline, however late the event loop
    sees the reply. gRPC reads the socket and does not say when a reply arrived, but it passes the reply on soon.
    So a bot is charged only after a grace period, which is longer if the event loop was late. A reply that the
    event loop sees within the grace period counts as in time.

    A bot may have its reply ready and wait for a core that another program uses. The bot is not charged for such a
    wait. If the bot runs or waits for a core at its deadline, it still gets `CPU_GRACE_US` of CPU time, but no later
    than `CORE_WAIT_LIMIT_US` after the deadline. A bot that goes on computing soon uses up this CPU time
    and is charged.

    Args:
        clock: the source of time.
        on_overdue: called with each request that becomes overdue.
        busy_ns: returns the bot's CPU time in ns; None if all threads of the bot sleep now.
    """

    def __init__(
        self,
        clock: Clock,
        on_overdue: Callable[[PendingRequest], None],
        busy_ns: Callable[[], int | None],
    ) -> None:
        self.pending: dict[str, PendingRequest] = {}
        """The pending requests by game id."""
        self.overdue: set[tuple[str, int]] = set()
        """Game id and decision number of each overdue request; the bot may still send a late reply to the request."""
        self._clock = clock
        self._now_ns = clock.now_ns
        self._on_overdue = on_overdue
        self._busy_ns = busy_ns
        self._timer: Timer | None = None
        self._timer_ns = 0
        self._paused_ns: int | None = None
        """The time, in ns of the clock, at which the clocks were paused; None if they run."""

    def pause(self) -> None:
        """Pause the clocks of all requests, also of requests that are written before `resume`: none becomes overdue."""
        self._paused_ns = self._now_ns()

    def resume(self) -> None:
        """Let the clocks run again, and do not count the time since `pause`."""
        assert self._paused_ns is not None  # noqa: S101 - the caller has paused the clocks
        paused_ns, self._paused_ns = self._paused_ns, None
        self.credit(self._now_ns() - paused_ns)

    def credit(self, ns: int) -> None:
        """Give each pending request `ns` more time, but not more than the time since it was written."""
        now_ns = self._now_ns()
        for request in self.pending.values():
            if request.written_ns:
                more_ns = min(ns, now_ns - request.written_ns)
                request.written_ns += more_ns
                request.deadline_ns += more_ns

    def start_clock(self, request: PendingRequest, written_ns: int) -> None:
        """Start the clock of a request that is written to the stream at `written_ns`."""
        request.written_ns = written_ns
        request.deadline_ns = deadline_ns = written_ns + request.limit_us * 1000
        if self._timer is None or deadline_ns < self._timer_ns:
            self._arm_timer(deadline_ns)

    def elapsed_us(self, request: PendingRequest) -> int:
        """Return the microseconds since a request was written; 0 if it was not written yet."""
        if not request.written_ns:
            return 0
        now_ns = self._now_ns() if self._paused_ns is None else self._paused_ns
        return max(0, now_ns - request.written_ns) // 1000

    def forget_overdue(self, game_id: str, games: Container[str]) -> None:
        """Forget the overdue requests of a game after the bot has replied to a later request of this game.

        The bot will not reply to the overdue requests any more. The overdue requests of finished games are
        forgotten too.

        Args:
            game_id: the game of the reply.
            games: the ids of the games that the bot plays now.
        """
        self.overdue = {key for key in self.overdue if key[0] != game_id and key[0] in games}

    def fail_all(self, failure: Exception) -> None:
        """Raise `failure` in all callers that await a reply, and remove all requests."""
        for request in self.pending.values():
            fail_request(request, failure)
        self.pending.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm_timer(self, deadline_ns: int) -> None:
        """Set the timer so that it calls `_check_deadlines` at `deadline_ns`.

        All requests share this timer, because a timer for each request would double the cost of a request. The
        timer is set to the earliest deadline. A reply does not cancel the timer.
        """
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ns = deadline_ns
        delay_ns = max(0, deadline_ns - self._now_ns())
        self._timer = self._clock.call_later(delay_ns / 1e9, self._check_deadlines)

    def _check_deadlines(self) -> None:
        self._timer = None
        now_ns = self._now_ns()
        if self._paused_ns is not None:
            self._arm_timer(now_ns + _PAUSE_CHECK_NS)
            return
        later_ns: list[int] = []
        for request in self.pending.values():
            if not request.written_ns or request.expired:
                continue
            if request.deadline_ns > now_ns:
                later_ns.append(request.deadline_ns)
            else:
                request.expired = True
                request.cpu_at_deadline_ns = self._busy_ns()
                self._start_grace(request, now_ns - request.deadline_ns, MAX_GRACE_PERIODS)
        if later_ns:
            self._arm_timer(min(later_ns))

    def _start_grace(self, request: PendingRequest, late_ns: int, periods_left: int) -> None:
        """Start a grace period, in which the event loop may still see a reply that came before the deadline.

        Args:
            request: the request whose deadline has passed.
            late_ns: how many ns late the event loop was. If it was later than `TIMER_TOLERANCE_US`, the grace period
                is longer by `late_ns`.
            periods_left: how many grace periods the request can still have, the new one included; see
                `MAX_GRACE_PERIODS`.
        """
        grace_ns = REPLY_GRACE_US * 1000 + (late_ns if late_ns > TIMER_TOLERANCE_US * 1000 else 0)
        end_ns = self._now_ns() + grace_ns
        self._clock.call_later(grace_ns / 1e9, self._end_grace, request, end_ns, periods_left - 1)

    def _end_grace(self, request: PendingRequest, end_ns: int, periods_left: int) -> None:
        if request.reply.done():
            return
        late_ns = self._now_ns() - end_ns
        left_ns = request.deadline_ns - self._now_ns()
        if self._paused_ns is not None:
            self._start_grace(request, 0, periods_left + 1)
        elif left_ns > 0:  # `credit` has moved the deadline
            request.expired, request.cpu_at_deadline_ns = False, None
            if self._timer is None or request.deadline_ns < self._timer_ns:
                self._arm_timer(request.deadline_ns)
        elif late_ns > TIMER_TOLERANCE_US * 1000 and periods_left:
            self._start_grace(request, late_ns, periods_left)
        elif self._awaits_core(request):
            self._start_grace(request, 0, periods_left + 1)
        else:
            self._charge(request)

    def _awaits_core(self, request: PendingRequest) -> bool:
        """Return whether the bot still runs or waits for a core, and may go on until it has had `CPU_GRACE_US`."""
        over_us = self.elapsed_us(request) - request.limit_us
        if request.cpu_at_deadline_ns is None or over_us >= CORE_WAIT_LIMIT_US:
            return False
        cpu_ns = self._busy_ns()
        return cpu_ns is not None and cpu_ns - request.cpu_at_deadline_ns < CPU_GRACE_US * 1000

    def _charge(self, request: PendingRequest) -> None:
        self.overdue.add((request.game_id, request.number))
        fail_request(request, overdue_fault(request, self.elapsed_us(request)))
        self._on_overdue(request)


def fail_request(request: PendingRequest, failure: Exception) -> None:
    """Raise `failure` in the caller that awaits the reply. Do nothing if the future of the reply is done."""
    if not request.reply.done():
        request.reply.set_exception(failure)
        request.reply.exception()  # if the caller has stopped waiting, asyncio would log the failure


def overdue_fault(request: PendingRequest, elapsed_us: int) -> BotFault:
    """Return the fault for an overdue request: a strike for a decision, a forfeit for a hello or a ready."""
    kind = Strike if request.cause is Cause.TIMEOUT else Forfeit
    detail = f"{_MISSING[request.cause]} within {request.limit_us / 1e6:g} s"
    return kind(
        request.cause, Evidence(detail=detail, elapsed_us=max(elapsed_us, request.limit_us))
    )
