"""Test when the time of a request is over, on a fake clock."""

import asyncio

import pytest
from fakes import FakeTime

from referee.bots.clock import (
    BATCH_LIMIT_US,
    CORE_WAIT_LIMIT_US,
    CPU_GRACE_US,
    HELLO,
    MAX_GRACE_PERIODS,
    READY,
    REPLY_GRACE_US,
    TIMER_TOLERANCE_US,
    PendingRequest,
    PendingRequests,
    TimedReply,
)
from referee.errors import Cause, Evidence, Forfeit, Strike, VoidGame

LIMIT_US = 1_000_000
NOTHING = Evidence(detail="")


class Bot:
    """The pending requests of one bot on a fake clock."""

    def __init__(self):
        self.time = FakeTime()
        self.overdue = []
        self.finished = 0
        self.busy_ns = None
        self.requests = PendingRequests(
            self.time.clock,
            on_overdue=self.overdue.append,
            on_finished=self.note_finished,
            busy_ns=lambda: self.busy_ns,
        )

    def note_finished(self):
        self.finished += 1

    def add(self, number=1, limit_us=LIMIT_US, game_id="g"):
        future = asyncio.get_running_loop().create_future()
        request = PendingRequest(game_id, number, limit_us, future)
        self.requests.pending[game_id] = request
        return request

    def write(self, *args, **more):
        request = self.add(*args, **more)
        self.requests.start_clock((request,), self.time.now_ns)
        return request

    def write_batch(self, *limits_us):
        batch = [
            self.add(limit_us=limit_us, game_id=str(at)) for at, limit_us in enumerate(limits_us)
        ]
        self.requests.start_clock(batch, self.time.now_ns)
        return batch

    def reply(self, request, action):
        self.requests.complete(request, action)
        self.requests.end_message()


@pytest.fixture
async def bot():
    return Bot()


async def test_missing_reply_is_a_strike(bot):
    request = bot.write()
    bot.time.creep_us(LIMIT_US + REPLY_GRACE_US - 1000)
    assert not request.reply.done()
    bot.time.creep_us(1000)
    strike = request.reply.exception()
    assert isinstance(strike, Strike)
    assert strike.cause is Cause.TIMEOUT
    assert strike.evidence.detail == "the bot sent no reply within 1 s"
    assert LIMIT_US <= strike.evidence.elapsed_us <= LIMIT_US + REPLY_GRACE_US
    assert [batch.requests for batch in bot.overdue] == [(request,)]
    assert bot.requests.overdue == {("g", 1)}


@pytest.mark.parametrize(
    ("game_id", "cause"), [("g", Cause.GAME_START_TIMEOUT), (HELLO, Cause.CONNECT_TIMEOUT)]
)
async def test_missing_hello_or_ready_is_a_forfeit(bot, game_id, cause):
    request = bot.write(READY, game_id=game_id)
    bot.time.creep_us(LIMIT_US + REPLY_GRACE_US)
    assert isinstance(request.reply.exception(), Forfeit)
    assert request.reply.exception().cause is cause


async def test_bot_5_ms_late_is_charged_by_an_idle_referee():
    assert TIMER_TOLERANCE_US + REPLY_GRACE_US < 5_000


async def test_reply_within_the_grace_period_is_in_time(bot):
    request = bot.write()
    bot.time.creep_us(LIMIT_US + REPLY_GRACE_US - 1000)
    bot.reply(request, b"reply")
    bot.time.creep_us(LIMIT_US)
    assert request.reply.result() == TimedReply(b"reply", LIMIT_US, REPLY_GRACE_US - 1000)
    assert not bot.overdue


async def test_grace_period_is_extended_by_the_delay_of_the_event_loop(bot):
    request = bot.write()
    bot.time.pass_us(LIMIT_US + 300_000)
    bot.time.creep_us(300_000)
    assert not request.reply.done()
    bot.time.creep_us(REPLY_GRACE_US)
    assert isinstance(request.reply.exception(), Strike)


async def test_grace_period_starts_again_if_the_event_loop_is_late_at_its_end(bot):
    request = bot.write()
    bot.time.creep_us(LIMIT_US)
    bot.time.pass_us(REPLY_GRACE_US + 50_000)
    assert not request.reply.done()
    bot.reply(request, b"reply that waited in the socket for 50 ms")
    bot.time.creep_us(LIMIT_US)
    assert not bot.overdue


async def test_bot_is_charged_after_the_last_grace_period_though_the_event_loop_is_always_late(bot):
    request = bot.write()
    for _ in range(MAX_GRACE_PERIODS):
        assert not request.reply.done()
        bot.time.pass_us(10 * LIMIT_US)
        bot.time.pass_us(20 * LIMIT_US)
    assert isinstance(request.reply.exception(), Strike)


async def test_bot_waiting_for_a_core_is_charged_only_after_some_cpu_time(bot):
    request = bot.write()
    bot.busy_ns = 7_000_000
    bot.time.creep_us(LIMIT_US + LIMIT_US // 2)
    assert not request.reply.done()
    bot.busy_ns += CPU_GRACE_US * 1000 - 1
    bot.time.creep_us(2 * REPLY_GRACE_US)
    assert not request.reply.done()
    bot.busy_ns += 1
    bot.time.creep_us(REPLY_GRACE_US)
    assert isinstance(request.reply.exception(), Strike)
    assert [batch.requests for batch in bot.overdue] == [(request,)]


async def test_bot_computing_at_its_deadline_is_charged_after_the_usual_grace_period(bot):
    request = bot.write()
    for _ in range((LIMIT_US + REPLY_GRACE_US) // 500):
        assert not request.reply.done()
        bot.busy_ns = bot.time.now_ns
        bot.time.creep_us(500)
    assert isinstance(request.reply.exception(), Strike)


async def test_busy_bot_that_sleeps_after_its_deadline_is_charged(bot):
    request = bot.write()
    bot.busy_ns = 0
    bot.time.creep_us(LIMIT_US + 10 * REPLY_GRACE_US)
    assert not request.reply.done()
    bot.busy_ns = None
    bot.time.creep_us(REPLY_GRACE_US)
    assert isinstance(request.reply.exception(), Strike)


async def test_sleeping_bot_that_becomes_busy_after_its_deadline_is_charged(bot):
    request = bot.write()
    bot.time.creep_us(LIMIT_US)
    bot.busy_ns = 0
    bot.time.creep_us(REPLY_GRACE_US)
    assert isinstance(request.reply.exception(), Strike)


async def test_bot_without_a_core_is_charged_after_the_core_wait_limit(bot):
    request = bot.write()
    bot.busy_ns = 0
    bot.time.creep_us(LIMIT_US + CORE_WAIT_LIMIT_US - 500)
    assert not request.reply.done()
    bot.time.creep_us(REPLY_GRACE_US)
    assert isinstance(request.reply.exception(), Strike)


async def test_many_replies_in_time_arm_one_timer(bot):
    for number in range(1, 1000):
        request = bot.write(number)
        bot.time.pass_us(500)
        bot.reply(request, b"reply")
    assert bot.time.armed == 1


async def test_earlier_deadline_of_a_later_request_is_checked_first(bot):
    slow = bot.write(limit_us=10 * LIMIT_US)
    bot.reply(slow, b"")
    fast = bot.write(limit_us=LIMIT_US)
    bot.time.creep_us(LIMIT_US + REPLY_GRACE_US)
    assert fast.reply.exception().cause is Cause.TIMEOUT


async def test_unwritten_request_does_not_expire(bot):
    waiting = bot.add(game_id="waiting")
    bot.write()
    bot.time.creep_us(2 * LIMIT_US)
    assert not waiting.reply.done()
    assert bot.requests.add_times(NOTHING, waiting).elapsed_us == 0


async def test_failure_reaches_all_callers_and_stops_the_clocks(bot):
    requests = [bot.write(game_id="a"), bot.add(game_id="b")]
    bot.requests.fail_all(lambda request: VoidGame(request.game_id))
    assert [str(request.reply.exception()) for request in requests] == ["a", "b"]
    bot.time.creep_us(2 * LIMIT_US)
    assert not bot.overdue


async def test_paused_clock_stands_still(bot):
    request = bot.write()
    bot.time.creep_us(LIMIT_US // 2)
    bot.requests.pause()
    bot.time.creep_us(3 * LIMIT_US)
    assert not request.reply.done()
    assert bot.requests.add_times(NOTHING, request).elapsed_us == LIMIT_US // 2
    bot.requests.resume()
    assert bot.requests.add_times(NOTHING, request).elapsed_us == LIMIT_US // 2
    bot.time.creep_us(LIMIT_US // 2 - 1000)
    assert not request.reply.done()
    bot.time.creep_us(1000 + REPLY_GRACE_US)
    assert request.reply.done()


async def test_grace_period_does_not_end_while_the_clock_is_paused(bot):
    request = bot.write()
    bot.time.creep_us(LIMIT_US + REPLY_GRACE_US // 2)
    bot.requests.pause()
    bot.time.creep_us(10 * REPLY_GRACE_US)
    assert not request.reply.done()
    bot.requests.resume()
    bot.time.creep_us(2 * REPLY_GRACE_US)
    assert request.reply.done()


async def test_request_that_is_written_during_a_pause_gets_only_the_rest_of_it(bot):
    bot.requests.pause()
    bot.time.creep_us(5000)
    request = bot.write()
    bot.time.creep_us(3000)
    assert bot.requests.add_times(NOTHING, request).elapsed_us == 0
    bot.requests.resume()
    assert bot.requests.add_times(NOTHING, request).elapsed_us == 0
    bot.time.creep_us(1000)
    assert bot.requests.add_times(NOTHING, request).elapsed_us == 1000


async def test_reply_to_a_request_that_is_written_during_a_pause_takes_a_microsecond(bot):
    """A record with 0 µs would say that there was no request, and `verify` would compute another rest of the bank."""
    bot.requests.pause()
    bot.time.creep_us(5000)
    request = bot.write()
    bot.time.creep_us(3000)
    bot.reply(request, b"reply")
    assert request.reply.result() == TimedReply(b"reply", 1)


async def test_credit_in_the_grace_period_moves_the_charge(bot):
    request = bot.write()
    bot.time.creep_us(LIMIT_US + REPLY_GRACE_US // 2)
    bot.requests.credit(10 * REPLY_GRACE_US * 1000)
    bot.time.creep_us(9 * REPLY_GRACE_US)
    assert not request.reply.done()
    bot.time.creep_us(3 * REPLY_GRACE_US)
    assert request.reply.done()


async def test_bot_that_waits_for_a_core_at_a_moved_deadline_gets_some_cpu_time(bot):
    request = bot.write()
    bot.time.creep_us(LIMIT_US + REPLY_GRACE_US // 2)
    bot.requests.credit(10 * REPLY_GRACE_US * 1000)
    bot.time.creep_us(REPLY_GRACE_US)
    bot.busy_ns = 7_000_000
    bot.time.creep_us(20 * REPLY_GRACE_US)
    assert not request.reply.done()
    bot.busy_ns += CPU_GRACE_US * 1000
    bot.time.creep_us(REPLY_GRACE_US)
    assert request.reply.done()


async def test_credit_gives_no_more_time_than_has_passed(bot):
    request = bot.write()
    bot.time.creep_us(1000)
    bot.requests.credit(400_000)
    assert bot.requests.add_times(NOTHING, request).elapsed_us == 600
    bot.requests.credit(1_000_000_000)
    assert bot.requests.add_times(NOTHING, request).elapsed_us == 0


# Batches


async def test_requests_of_a_batch_share_the_time_to_the_last_reply(bot):
    batch = bot.write_batch(*[LIMIT_US] * 4)
    for request in batch:
        bot.time.creep_us(LIMIT_US * 9 // 10)  # a bot that answers one after the other
        assert not batch[0].reply.done()
        bot.reply(request, b"")
    assert [each.reply.result().elapsed_us for each in batch] == [LIMIT_US * 9 // 10] * 4
    assert {each.reply.result()[2:] for each in batch} == {(0, 4 * LIMIT_US * 9 // 10, 4)}
    assert bot.finished == 1


async def test_bot_that_answers_a_batch_at_once_keeps_the_time_it_saves(bot):
    batch = bot.write_batch(*[LIMIT_US] * 4)
    bot.time.creep_us(LIMIT_US // 2)
    for request in batch:
        bot.reply(request, b"")
    assert sum(each.reply.result().elapsed_us for each in batch) == LIMIT_US // 2


async def test_shares_of_a_batch_fit_unequal_limits(bot):
    poor, rich = bot.write_batch(LIMIT_US, 9 * LIMIT_US)
    bot.time.creep_us(5 * LIMIT_US)
    bot.reply(rich, b"")
    bot.reply(poor, b"")
    assert (poor.reply.result().elapsed_us, rich.reply.result().elapsed_us) == (
        LIMIT_US // 2,
        9 * LIMIT_US // 2,
    )


async def test_batch_is_overdue_after_the_sum_of_its_limits(bot):
    batch = bot.write_batch(LIMIT_US, 2 * LIMIT_US)
    bot.time.creep_us(3 * LIMIT_US + REPLY_GRACE_US - 500)
    assert not batch[0].reply.done()
    bot.time.creep_us(500)
    assert {each.reply.exception().cause for each in batch} == {Cause.TIMEOUT}
    assert bot.finished == 1


async def test_reply_to_a_batch_in_its_grace_period_is_in_time(bot):
    batch = bot.write_batch(LIMIT_US, LIMIT_US)
    bot.time.creep_us(2 * LIMIT_US + 1000)
    for request in batch:
        bot.reply(request, b"")
    for request in batch:
        assert request.reply.result() == TimedReply(b"", LIMIT_US, 1000, 2 * LIMIT_US + 1000, 2)


async def test_batch_without_a_reply_is_overdue_a_minute_after_the_largest_limit(bot):
    batch = bot.write_batch(*[40_000_000] * 3)
    bot.time.creep_us(40_000_000 + BATCH_LIMIT_US, step_us=5_000)
    assert not batch[1].reply.done()
    bot.time.creep_us(REPLY_GRACE_US + 500)
    assert {each.reply.exception().cause for each in batch} == {Cause.TIMEOUT}
    assert batch[1].reply.exception().evidence.elapsed_us >= 40_000_000


async def test_bot_that_goes_on_replying_has_the_sum_of_all_limits(bot):
    batch = bot.write_batch(*[40_000_000] * 5)
    for request in batch[:4]:
        bot.time.creep_us(39_000_000, step_us=5_000)
        bot.reply(request, b"")
    assert not batch[0].reply.done()
    bot.time.creep_us(43_000_000, step_us=5_000)
    bot.reply(batch[4], b"")
    assert batch[4].reply.result().elapsed_us == (4 * 39_000_000 + 43_000_000) // 5


async def test_reply_before_a_pause_keeps_its_time(bot):
    first, second = bot.write_batch(LIMIT_US, LIMIT_US)
    bot.time.creep_us(LIMIT_US)
    bot.reply(first, b"")
    bot.requests.pause()
    bot.time.creep_us(5 * LIMIT_US)
    bot.requests.resume()
    bot.time.creep_us(LIMIT_US + REPLY_GRACE_US)
    assert first.reply.result()[1:] == (LIMIT_US // 2, 0, LIMIT_US, 2)
    assert second.reply.exception().evidence.elapsed_us >= LIMIT_US


@pytest.mark.parametrize(
    ("after_us", "charged_us"),
    [(500_000, 600_000), (200_000, 500_000), (0, 300_000)],
    ids=["before", "within", "after"],
)
async def test_credit_counts_only_the_part_of_it_before_a_reply(bot, after_us, charged_us):
    """The last 300 ms before the credit do not count."""
    first, second = bot.write_batch(LIMIT_US, LIMIT_US)
    bot.time.creep_us(600_000)
    bot.reply(first, b"")
    bot.time.creep_us(after_us)
    bot.requests.credit(300_000_000)
    bot.time.creep_us(2 * LIMIT_US)
    assert second.reply.exception().cause is Cause.TIMEOUT
    assert first.reply.result().wall_us == charged_us


async def test_missed_batches_are_counted_until_any_reply(bot):
    for missed in (1, 2):
        bot.write_batch(LIMIT_US, LIMIT_US)
        bot.time.creep_us(2 * LIMIT_US + REPLY_GRACE_US)
        assert bot.requests.missed == missed
    assert bot.requests.take_late_reply("0", 1)
    assert not bot.requests.take_late_reply("0", 1)
    assert bot.requests.missed == 0


async def test_batch_is_finished_if_nobody_awaits_its_open_requests(bot):
    first, second, third = bot.write_batch(*[LIMIT_US] * 3)
    first.reply.cancel()
    bot.requests.abandon(first)
    bot.reply(second, b"")
    assert bot.finished == 0
    third.reply.cancel()
    bot.requests.abandon(third)
    assert second.reply.result().batch_size == 3
    assert bot.finished == 1


async def test_abandoned_reply_does_not_finish_a_batch_with_an_open_request(bot):
    first, second = bot.write_batch(LIMIT_US, LIMIT_US)
    bot.reply(first, b"")
    first.reply.cancel()
    bot.requests.abandon(first)
    assert bot.finished == 0
    bot.reply(second, b"")
    assert second.reply.result().batch_size == 2
    assert bot.finished == 1


async def test_reply_to_a_later_request_of_a_game_forgets_the_overdue_ones_of_this_game(bot):
    bot.write_batch(LIMIT_US, LIMIT_US)
    bot.time.creep_us(2 * LIMIT_US + REPLY_GRACE_US)
    assert bot.requests.overdue == {("0", 1), ("1", 1)}
    bot.requests.forget_overdue("0", games=("0", "1"))
    assert bot.requests.overdue == {("1", 1)}
    assert not bot.requests.take_late_reply("0", 1)


async def test_reply_in_the_grace_period_gives_the_batch_more_time(bot):
    batch = bot.write_batch(*[40_000_000] * 4)
    bot.time.creep_us(40_000_000 + BATCH_LIMIT_US + REPLY_GRACE_US // 2, step_us=1_000)
    bot.reply(batch[0], b"")
    bot.time.creep_us(50_000_000, step_us=5_000)
    for request in batch[1:]:
        bot.reply(request, b"")
    assert {each.reply.result().lag_us for each in batch} == {0}


async def test_slowest_decision_of_the_bot_says_how_much_time_to_reserve(bot):
    assert bot.requests.reserve_us is None
    for took_us, slowest_us in ((3000, 3000), (1000, 3000), (5000, 5000)):
        request = bot.write()
        bot.time.creep_us(took_us)
        bot.reply(request, b"")
        assert bot.requests.reserve_us == 4 * slowest_us


@pytest.mark.parametrize("end", ["fail", "abandon"])
async def test_request_without_a_reply_says_nothing_about_the_slowest_decision(bot, end):
    request = bot.write()
    bot.time.creep_us(3000)
    if end == "fail":
        bot.requests.fail(request, Strike(Cause.MALFORMED, Evidence(detail="nonsense")))
    else:
        bot.requests.abandon(request)
    assert bot.requests.reserve_us is None


async def test_requests_without_a_reply_do_not_make_the_decisions_of_their_batch_quicker(bot):
    batch = bot.write_batch(LIMIT_US, LIMIT_US, LIMIT_US)
    bot.time.creep_us(3000)
    bot.reply(batch[0], b"")
    for request in batch[1:]:
        bot.requests.abandon(request)
    assert bot.requests.reserve_us == 4 * 3000


@pytest.mark.parametrize("end", ["fail", "abandon"])
async def test_requests_without_a_reply_do_not_make_an_overdue_batch_quicker(bot, end):
    batch = bot.write_batch(LIMIT_US, LIMIT_US, LIMIT_US)
    for request in batch[1:]:
        if end == "fail":
            bot.requests.fail(request, Strike(Cause.MALFORMED, NOTHING))
        else:
            bot.requests.abandon(request)
    bot.time.creep_us(3 * LIMIT_US + REPLY_GRACE_US)
    assert bot.requests.reserve_us == 4 * 3 * LIMIT_US


async def test_batch_that_is_overdue_counts_as_its_replies_and_one_more_slow_decision(bot):
    for replies in (1, 0):
        batch = bot.write_batch(LIMIT_US, LIMIT_US, LIMIT_US)
        for request in batch[:replies]:
            bot.reply(request, b"")
        bot.time.creep_us(3 * LIMIT_US + REPLY_GRACE_US)
        assert bot.requests.reserve_us == 4 * 3 * LIMIT_US // (replies + 1)
