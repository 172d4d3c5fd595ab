"""When the time for an answer is over: on a fake clock."""

import asyncio

import pytest
from fakes import FakeTime

from referee.bots.clock import (
    CORELESS_US,
    GRACE_US,
    HELLO,
    ON_TIME_US,
    READY,
    SETTLE_US,
    SETTLINGS,
    PendingRequest,
    PendingRequests,
)
from referee.errors import Cause, Forfeit, Strike, VoidGame

LIMIT_US = 1_000_000


class Asked:
    """Questions on a fake clock."""

    def __init__(self):
        self.time = FakeTime()
        self.overdue = []
        self.busy_ns = None
        self.questions = PendingRequests(self.time.clock, self.overdue.append, lambda: self.busy_ns)

    def ask(self, number=1, limit_us=LIMIT_US, game_id="g"):
        future = asyncio.get_running_loop().create_future()
        question = PendingRequest(game_id, number, limit_us, future)
        self.questions.open[game_id] = question
        return question

    def sent(self, *args, **more):
        question = self.ask(*args, **more)
        self.questions.sent(question, self.time.now_ns)
        return question


@pytest.fixture
async def asked():
    return Asked()


async def test_silence_is_a_strike(asked):
    question = asked.sent()
    asked.time.creep_us(LIMIT_US + SETTLE_US - 1000)
    assert not question.answer.done()
    asked.time.creep_us(1000)
    strike = question.answer.exception()
    assert isinstance(strike, Strike)
    assert strike.cause is Cause.TIMEOUT
    assert strike.evidence.detail == "no reply within 1 s"
    assert LIMIT_US <= strike.evidence.elapsed_us <= LIMIT_US + SETTLE_US
    assert asked.overdue == [question]
    assert asked.questions.unanswered == {("g", 1)}


@pytest.mark.parametrize(
    ("game_id", "cause"), [("g", Cause.GAME_START_TIMEOUT), (HELLO, Cause.CONNECT_TIMEOUT)]
)
async def test_silence_at_a_start_is_a_forfeit(asked, game_id, cause):
    question = asked.sent(READY, game_id=game_id)
    asked.time.creep_us(LIMIT_US + SETTLE_US)
    assert isinstance(question.answer.exception(), Forfeit)
    assert question.answer.exception().cause is cause


async def test_an_idle_referee_charges_whoever_is_5_ms_late():
    assert ON_TIME_US + SETTLE_US < 5_000


async def test_what_comes_out_of_the_pipeline_after_the_deadline_is_in_time(asked):
    question = asked.sent()
    asked.time.creep_us(LIMIT_US + SETTLE_US - 1000)
    question.answer.set_result("reply")
    asked.time.creep_us(LIMIT_US)
    assert question.answer.result() == "reply"
    assert not asked.overdue


async def test_a_late_event_loop_gives_as_much_time_as_it_was_late(asked):
    question = asked.sent()
    asked.time.pass_us(LIMIT_US + 300_000)
    asked.time.creep_us(300_000)
    assert not question.answer.done()
    asked.time.creep_us(SETTLE_US)
    assert isinstance(question.answer.exception(), Strike)


async def test_an_event_loop_that_is_late_in_looking_again_looks_once_more(asked):
    question = asked.sent()
    asked.time.creep_us(LIMIT_US)
    asked.time.pass_us(SETTLE_US + 50_000)
    assert not question.answer.done()
    question.answer.set_result("it was there for 50 ms")
    asked.time.creep_us(LIMIT_US)
    assert not asked.overdue


async def test_even_an_event_loop_that_is_always_late_charges_in_the_end(asked):
    question = asked.sent()
    for _ in range(SETTLINGS):
        assert not question.answer.done()
        asked.time.pass_us(10 * LIMIT_US)
        asked.time.pass_us(20 * LIMIT_US)
    assert isinstance(question.answer.exception(), Strike)


async def test_a_bot_that_waits_for_a_core_has_until_it_got_some_of_the_cpu(asked):
    question = asked.sent()
    asked.busy_ns = 7_000_000
    asked.time.creep_us(LIMIT_US + LIMIT_US // 2)
    assert not question.answer.done()
    asked.busy_ns += GRACE_US * 1000 - 1
    asked.time.creep_us(2 * SETTLE_US)
    assert not question.answer.done()
    asked.busy_ns += 1
    asked.time.creep_us(SETTLE_US)
    assert isinstance(question.answer.exception(), Strike)
    assert asked.overdue == [question]


async def test_a_bot_that_reckons_beyond_its_deadline_is_charged_as_soon_as_others(asked):
    question = asked.sent()
    for _ in range((LIMIT_US + SETTLE_US) // 500):
        assert not question.answer.done()
        asked.busy_ns = asked.time.now_ns
        asked.time.creep_us(500)
    assert isinstance(question.answer.exception(), Strike)


async def test_a_bot_that_falls_asleep_after_its_deadline_is_charged(asked):
    question = asked.sent()
    asked.busy_ns = 0
    asked.time.creep_us(LIMIT_US + 10 * SETTLE_US)
    assert not question.answer.done()
    asked.busy_ns = None
    asked.time.creep_us(SETTLE_US)
    assert isinstance(question.answer.exception(), Strike)


async def test_a_bot_that_wakes_up_after_its_deadline_is_charged(asked):
    question = asked.sent()
    asked.time.creep_us(LIMIT_US)
    asked.busy_ns = 0
    asked.time.creep_us(SETTLE_US)
    assert isinstance(question.answer.exception(), Strike)


async def test_nobody_waits_for_ever_for_a_bot_without_a_core(asked):
    question = asked.sent()
    asked.busy_ns = 0
    asked.time.creep_us(LIMIT_US + CORELESS_US - 500)
    assert not question.answer.done()
    asked.time.creep_us(SETTLE_US)
    assert isinstance(question.answer.exception(), Strike)


async def test_one_timer_serves_a_game_of_answers(asked):
    for number in range(1, 1000):
        question = asked.sent(number)
        asked.time.pass_us(500)
        question.answer.set_result("reply")
    assert asked.time.armed == 1


async def test_an_earlier_deadline_is_looked_at_first(asked):
    slow = asked.sent(game_id="slow", limit_us=10 * LIMIT_US)
    fast = asked.sent(game_id="fast", limit_us=LIMIT_US)
    asked.time.creep_us(LIMIT_US + SETTLE_US)
    assert fast.answer.done()
    assert not slow.answer.done()
    asked.time.creep_us(9 * LIMIT_US + 2 * SETTLE_US)
    assert slow.answer.done()


async def test_a_question_that_is_not_sent_has_all_its_time(asked):
    waiting = asked.ask(game_id="waiting")
    asked.sent()
    asked.time.creep_us(2 * LIMIT_US)
    assert not waiting.answer.done()
    assert asked.questions.elapsed_us(waiting) == 0


async def test_nobody_waits_for_a_bot_that_has_failed(asked):
    questions = [asked.sent(game_id="a"), asked.ask(game_id="b")]
    failure = VoidGame("gone")
    asked.questions.fail(failure)
    assert [question.answer.exception() for question in questions] == [failure, failure]
    asked.time.creep_us(2 * LIMIT_US)
    assert not asked.overdue
