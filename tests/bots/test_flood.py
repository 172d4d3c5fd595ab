"""Test how the bot that floods is found, on a machine of the test: which bots run decides what gRPC has to do."""

import asyncio
import hashlib
import os
import threading
from types import SimpleNamespace

import pytest

from referee.bots import flood
from referee.bots.flood import FloodWatch, GrpcThreads
from referee.bots.player import BotPool
from referee.clocks import Clocks
from referee.errors import Cause
from referee.sandbox.output_pipe import OUTPUT_THREADS, open_output

HALF = 0.5
"""A share of a core that is much for gRPC."""
OUTPUT_BYTES = 1 << 27


class Bot:
    """A bot that makes gRPC work for a share of a core while it runs."""

    def __init__(self, machine, share=0.0, replies_a_second=0):
        self.machine = machine
        self.share, self.replies_a_second = share, replies_a_second
        self.is_held = self.is_paused = False
        self.tried = 0
        self.credited_ns = self.paused_ns = 0
        self.faults = []
        self.session = SimpleNamespace(
            accepted=0, pending_requests=self, fail=self.faults.append, is_needed=True
        )
        machine.bots.append(self)

    def hold(self):
        self.is_held = True

    def run_alone(self):
        assert self.is_held
        self.is_held = False
        self.tried += 1

    def release(self):
        self.is_held = False

    def pause(self):
        assert not self.is_paused
        self.is_paused = True

    def resume(self):
        assert self.is_paused
        self.is_paused = False

    def credit(self, ns):
        self.credited_ns += ns


class Machine:
    """Counts time and the CPU time of gRPC; implements `GrpcThreads`."""

    def __init__(self):
        self.bots = []
        self.now = self.cpu = 0
        self.noise = 0.0
        """The share of a core that something else takes in the threads of gRPC."""
        self.backlog_ns = 0
        """What gRPC has still to do if no bot runs."""
        self.trials = 0
        self.start_lock = asyncio.Lock()

    def cpu_ns(self):
        return self.cpu

    def is_any_runnable(self):
        return self.backlog_ns > 0

    async def sleep(self, seconds):
        ns = int(seconds * 1e9)
        self.now += ns
        running = [bot for bot in self.bots if not bot.is_held]
        self.trials += len(running) == 1 < len(self.bots)
        self.cpu += int(ns * min(1, self.noise + sum(bot.share for bot in running)))
        done = min(ns, self.backlog_ns)
        self.cpu += done
        self.backlog_ns -= done
        for bot in self.bots:
            bot.paused_ns += bot.is_paused * ns
            bot.session.accepted += int(bot.replies_a_second * seconds)
        if self.now > self.end:
            raise asyncio.CancelledError

    async def watch(self, seconds=1.0):
        self.end = self.now + int(seconds * 1e9)
        watch = FloodWatch(lambda: self.bots, self, self.start_lock, lambda: self.now, self.sleep)
        with pytest.raises(asyncio.CancelledError):
            await watch.run()
        assert not any(bot.is_held or bot.is_paused for bot in self.bots)


@pytest.fixture
def machine():
    return Machine()


def causes(bot):
    return [fault.cause for fault in bot.faults]


async def test_bot_that_keeps_grpc_busy_is_charged_and_no_other(machine):
    honest, flooder, other = Bot(machine), Bot(machine, HALF), Bot(machine)
    await machine.watch(0.5)
    assert set(causes(flooder)) == {Cause.FLOOD}
    assert not honest.faults
    assert not other.faults


async def test_two_flooders_are_both_charged(machine):
    bots = [Bot(machine, HALF), Bot(machine), Bot(machine, HALF)]
    await machine.watch(0.5)
    assert [bool(bot.faults) for bot in bots] == [True, False, True]


async def test_time_of_a_flood_and_of_the_trials_does_not_count_for_any_bot(machine):
    honest, _ = Bot(machine), Bot(machine, HALF)
    machine.end = 0
    await machine.watch(0.4)
    assert honest.credited_ns >= flood._TRIAL_AFTER_NS
    assert honest.paused_ns >= 3 * flood._TRIAL_S * 1e9


async def test_nobody_is_charged_if_grpc_is_busy_without_the_bots(machine):
    bots = [Bot(machine), Bot(machine)]
    machine.noise = HALF
    await machine.watch(3)
    assert not any(bot.faults for bot in bots)


async def test_bots_are_seldom_stopped_in_vain(machine):
    bot = Bot(machine)
    Bot(machine)
    machine.noise = HALF
    await machine.watch(10)
    assert 0 < bot.paused_ns < 3e9


async def test_bot_cannot_stretch_its_time_by_short_floods(machine):
    """The bot floods in every fourth period, but never in a trial."""
    bot, _ = Bot(machine), Bot(machine)
    sleep, periods = machine.sleep, 0

    async def burst(seconds):
        nonlocal periods
        if seconds == flood.WATCH_PERIOD_S:
            periods += 1
            machine.noise = 0.8 * (periods % 4 == 0)
        await sleep(seconds)
        machine.noise = 0.0

    machine.sleep = burst
    await machine.watch(20)
    assert 0 < bot.credited_ns < 3e9
    assert 0 < bot.paused_ns < 2e9


async def test_rest_of_a_flood_is_not_charged_to_a_bot_that_runs_alone(machine):
    honest, flooder = Bot(machine), Bot(machine, HALF)
    machine.backlog_ns = 400_000_000
    await machine.watch(1.5)
    assert causes(flooder)
    assert not honest.faults


async def test_bots_with_many_replies_are_not_stopped(machine):
    bots = [Bot(machine, 0.2, replies_a_second=2000), Bot(machine, 0.2, replies_a_second=2000)]
    await machine.watch()
    assert not any(bot.paused_ns or bot.credited_ns or bot.faults for bot in bots)


async def test_flood_beside_replies_is_found(machine):
    flooder, honest = Bot(machine, 0.9, replies_a_second=500), Bot(machine)
    await machine.watch()
    assert causes(flooder)
    assert not honest.faults


async def test_bot_that_the_referee_does_not_need_is_held_but_not_tried(machine):
    idle, flooder = Bot(machine), Bot(machine, HALF)
    idle.session.is_needed = False
    await machine.watch(0.5)
    assert causes(flooder)
    assert idle.paused_ns
    assert not idle.tried


async def test_bot_that_starts_during_a_search_has_no_part_in_the_trials_of_others(machine):
    """The flooder exits when the search begins. Its next process floods whenever a bot has a trial."""
    honest, flooder = Bot(machine), Bot(machine, HALF)
    sleep, late = machine.sleep, []

    async def start():
        async with machine.start_lock:
            late.append(Bot(machine))

    async def restart_flooder(seconds):
        if flooder in machine.bots and flooder.is_held:
            machine.bots.remove(flooder)
            flooder.share = 0.0
            machine.starting = asyncio.ensure_future(start())
        await asyncio.sleep(0)
        for bot in late:
            bot.share = HALF * (seconds == flood._TRIAL_S)
        await sleep(seconds)

    machine.sleep = restart_flooder
    await machine.watch(1)
    assert machine.starting.done()
    assert honest.tried
    assert not honest.faults


async def test_watch_goes_on_after_an_error_of_the_system_and_lets_all_bots_run(machine):
    honest, flooder = Bot(machine), Bot(machine, HALF)
    errors = [OSError("too many open files")] * 2
    machine.is_any_runnable = lambda: raise_next(errors)
    await machine.watch(7)
    assert not errors
    assert causes(flooder)
    assert not honest.faults


def raise_next(errors):
    if errors:
        raise errors.pop()
    return False


async def test_bots_run_on_if_one_of_them_cannot_be_stopped(machine):
    Bot(machine, HALF)
    wrong = Bot(machine)

    def fail():
        raise OSError

    wrong.hold = fail
    Bot(machine)
    await machine.watch(1)  # checks that no bot is held


async def test_watch_that_an_error_has_ended_is_started_again(tmp_path, monkeypatch):
    pool = BotPool(None, Clocks(), max_processes=2, folder=tmp_path)
    watches = iter([fail_at_once, asyncio.Event().wait])
    monkeypatch.setattr(FloodWatch, "run", lambda _: next(watches)())
    pool._start_flood_watch()
    first = pool._flood_watch
    await asyncio.wait((first,))
    pool._start_flood_watch()
    assert pool._flood_watch is not first
    await pool.close()
    with pytest.raises(ZeroDivisionError):
        first.result()


async def fail_at_once():
    raise ZeroDivisionError


async def test_watch_does_not_run_where_the_time_of_a_thread_cannot_be_measured(
    tmp_path, monkeypatch
):
    monkeypatch.delattr(flood.time, "pthread_getcpuclockid")
    pool = BotPool(None, Clocks(), max_processes=2, folder=tmp_path)
    pool._start_flood_watch()
    assert pool._flood_watch is None


async def test_work_of_the_executor_is_not_work_of_grpc():
    threads = GrpcThreads()
    before = threads.cpu_ns()
    await asyncio.to_thread(sum, range(5_000_000))
    sum(range(5_000_000))
    assert threads.cpu_ns() - before < 20_000_000


async def test_reading_outputs_is_not_work_of_grpc():
    threads = GrpcThreads()
    before = threads.cpu_ns()
    with open_output() as (end, reader):
        program = await asyncio.create_subprocess_exec(
            "head", "-c", str(OUTPUT_BYTES), "/dev/zero", stdout=end
        )
    size = 0
    while chunk := await reader.read(1 << 20):
        size += len(chunk)
    assert size == OUTPUT_BYTES
    await program.wait()
    assert threads.cpu_ns() - before < 20_000_000


async def test_thread_that_reads_an_output_is_no_thread_of_grpc(monkeypatch):
    threads = GrpcThreads()
    # the call holds no lock of Python
    busy = threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"", b"", 1_000_000))
    busy.start()
    is_runnable = threads.is_any_runnable()
    monkeypatch.setattr(OUTPUT_THREADS, "native_ids", {busy.native_id})
    was_idle = False
    while busy.is_alive() and not was_idle:  # a thread of an earlier test may run now and then
        was_idle = not threads.is_any_runnable()
    assert busy.is_alive()
    busy.join()
    assert is_runnable
    assert was_idle


async def test_output_threads_are_known_while_they_run():
    earlier = set(threading.enumerate())
    with open_output() as (end, reader):
        own_end = os.dup(end)
    (reading,) = set(threading.enumerate()) - earlier
    os.write(own_end, b"x")
    assert await reader.read(1)
    assert reading.native_id in OUTPUT_THREADS.native_ids
    os.close(own_end)
    assert not await reader.read()
    reading.join()
    assert reading.native_id not in OUTPUT_THREADS.native_ids
