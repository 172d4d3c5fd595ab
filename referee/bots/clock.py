"""What a bot has been asked, until when it may answer, and when that time is really over.

No stream and no messages here: those are `session`'s. Time comes from a `Clock`, so that tests make it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Container
from typing import Any, NamedTuple, Protocol

from referee.errors import BotFault, Cause, Evidence, Forfeit, Strike

HELLO = ""
"""In the place of a game id: the question that a hello answers."""
READY = 0
"""In the place of a decision's number: the question that a ready answers."""
SETTLE_US = 2_000
"""How long after its deadline a reply may still come out of gRPC's threads."""
ON_TIME_US = 2_000
"""A timer no later than this found the event loop idle; uvloop's timers count milliseconds."""
SETTLINGS = 5
"""How often a charge is put off because the event loop was late again."""
GRACE_US = 1_000
"""Of the CPU: what a bot that has or awaits a core at its deadline still gets, to have its answer out."""
CORELESS_US = 2_000_000
"""How long it may wait for that. Real-time processes leave others some of every second (Linux)."""
_UNANSWERED = {
    Cause.TIMEOUT: "no reply",
    Cause.GAME_START_TIMEOUT: "no ready",
    Cause.CONNECT_TIMEOUT: "no hello",
}


class Timer(Protocol):
    """What `Clock.call_later` returns."""

    def cancel(self) -> None:
        """Do not call any more."""
        ...


class Clock(NamedTuple):
    """Where time comes from."""

    now_ns: Callable[[], int]
    """Monotonic."""
    call_later: Callable[..., Timer]
    """Seconds, a function and its arguments."""

    @classmethod
    def of_loop(cls) -> Clock:
        """The real time, in the running event loop."""
        return cls(time.monotonic_ns, asyncio.get_running_loop().call_later)


class PendingRequest:
    """Something a bot is asked and somebody waits for."""

    sent_ns = 0
    """When it was written; 0 before."""
    deadline_ns = 0
    expired = False
    busy_ns: int | None = None
    """The bot's CPU time at the deadline, if it was busy then."""

    def __init__(
        self, game_id: str, number: int, limit_us: int, answer: asyncio.Future[Any]
    ) -> None:
        self.game_id = game_id
        """Or `HELLO`."""
        self.number = number
        """Of the decision, or `READY`."""
        self.limit_us = limit_us
        self.answer = answer

    @property
    def cause(self) -> Cause:
        """What it is called when no answer comes."""
        if self.number != READY:
            return Cause.TIMEOUT
        return Cause.GAME_START_TIMEOUT if self.game_id != HELLO else Cause.CONNECT_TIMEOUT


class PendingRequests:
    """The open questions of one bot, at most one for each game.

    A reply that reached the referee's socket before its deadline is in time, however late the event
    loop looks. gRPC owns the socket, so nobody can ask when bytes arrived; but what had arrived comes out
    of its threads soon after. Therefore a question is charged a while after its deadline, a longer one the
    later the loop was, and whatever has come by then counts as in time.

    A bot that would answer at once but waits for a core is not late either: others have the machine. At
    its deadline it sleeps (then it is charged), or it is busy: then it has until it got a little of the CPU,
    though not for ever. So who reckons beyond the deadline is charged as soon as a sleeper.

    Args:
        clock: where time comes from.
        overdue: is told of each question that is charged.
        busy_ns: the CPU time that the bot has taken, while a thread of it has or awaits a core; else None.
    """

    def __init__(
        self,
        clock: Clock,
        overdue: Callable[[PendingRequest], None],
        busy_ns: Callable[[], int | None],
    ) -> None:
        self.open: dict[str, PendingRequest] = {}
        """By game id."""
        self.unanswered: set[tuple[str, int]] = set()
        """Game id and number of what was charged and has been neither answered nor given up since."""
        self._clock = clock
        self._now_ns = clock.now_ns
        self._overdue = overdue
        self._busy_ns = busy_ns
        self._timer: Timer | None = None
        self._timer_ns = 0

    def sent(self, question: PendingRequest, since_ns: int) -> None:
        """The time of a question began at that moment, when it was written."""
        question.sent_ns = since_ns
        question.deadline_ns = deadline_ns = since_ns + question.limit_us * 1000
        if self._timer is None or deadline_ns < self._timer_ns:
            self._look_at(deadline_ns)

    def elapsed_us(self, question: PendingRequest) -> int:
        """Microseconds since a question was written; 0 before."""
        return (self._now_ns() - question.sent_ns) // 1000 if question.sent_ns else 0

    def excuse(self, game_id: str, games: Container[str]) -> None:
        """A bot has answered in a game: what it let pass there before it has given up, and is alive.

        So it is for games that are over, those that are not among `games`.
        """
        self.unanswered = {key for key in self.unanswered if key[0] != game_id and key[0] in games}

    def fail(self, failure: Exception) -> None:
        """Tell everybody who waits that no answer can come."""
        for question in self.open.values():
            resolve(question, failure)
        self.open.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_at(self, deadline_ns: int) -> None:
        """See that somebody looks at the clock at a deadline.

        One timer for all questions, armed for the earliest deadline and not touched by answers: making
        and cancelling one for each question took as long as the rest of asking it.
        """
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ns = deadline_ns
        delay_ns = max(0, deadline_ns - self._now_ns())
        self._timer = self._clock.call_later(delay_ns / 1e9, self._look)

    def _look(self) -> None:
        self._timer = None
        now_ns = self._now_ns()
        later_ns: list[int] = []
        for question in self.open.values():
            if not question.sent_ns or question.expired:
                continue
            if question.deadline_ns > now_ns:
                later_ns.append(question.deadline_ns)
            else:
                question.expired = True
                question.busy_ns = self._busy_ns()
                self._settle(question, now_ns - question.deadline_ns, SETTLINGS)
        if later_ns:
            self._look_at(min(later_ns))

    def _settle(self, question: PendingRequest, late_ns: int, settlings: int) -> None:
        """Let what has reached the socket come out, now that the loop was late by so much."""
        pause_ns = SETTLE_US * 1000 + (late_ns if late_ns > ON_TIME_US * 1000 else 0)
        due_ns = self._now_ns() + pause_ns
        self._clock.call_later(pause_ns / 1e9, self._charge, question, due_ns, settlings - 1)

    def _charge(self, question: PendingRequest, due_ns: int, settlings: int) -> None:
        if question.answer.done():
            return
        late_ns = self._now_ns() - due_ns
        if late_ns > ON_TIME_US * 1000 and settlings:
            self._settle(question, late_ns, settlings)
        elif self._waits_for_a_core(question):
            self._settle(question, 0, settlings + 1)
        else:
            self._give_up(question)

    def _waits_for_a_core(self, question: PendingRequest) -> bool:
        over_us = self.elapsed_us(question) - question.limit_us
        if question.busy_ns is None or over_us >= CORELESS_US:
            return False
        busy_ns = self._busy_ns()
        return busy_ns is not None and busy_ns - question.busy_ns < GRACE_US * 1000

    def _give_up(self, question: PendingRequest) -> None:
        self.unanswered.add((question.game_id, question.number))
        resolve(question, unanswered(question, self.elapsed_us(question)))
        self._overdue(question)


def resolve(question: PendingRequest, failure: Exception) -> None:
    """Let a question fail, if nothing else has happened to it."""
    if not question.answer.done():
        question.answer.set_exception(failure)
        question.answer.exception()  # who asked may have stopped waiting


def unanswered(question: PendingRequest, elapsed_us: int) -> BotFault:
    """The fault of a bot that did not answer: a strike for a decision, else a forfeit."""
    kind = Strike if question.cause is Cause.TIMEOUT else Forfeit
    detail = f"{_UNANSWERED[question.cause]} within {question.limit_us / 1e6:g} s"
    return kind(
        question.cause, Evidence(detail=detail, elapsed_us=max(elapsed_us, question.limit_us))
    )
