"""Test which bot gets a core next."""

import asyncio

import pytest

from referee.bots.outbox import MAX_PASSED, Cores


class Bot:
    """A bot that wants a core."""

    def __init__(self, cores, name, waiting=1):
        self.cores, self.name, self.waiting = cores, name, waiting
        self.lingers = False
        self.turns = []

    def begin(self):
        self.turns.append(self.name)
        STARTED.append(self)


STARTED = []


@pytest.fixture(autouse=True)
def _forget():
    STARTED.clear()


async def next_names(cores, count):
    """Return the names of the next bots that get a core; each gives it back at once."""
    names = []
    for _ in range(count):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        names += [bot.name for bot in STARTED]
        for _ in STARTED:
            cores.release()
        STARTED.clear()
    return names


async def test_bot_with_the_most_requests_is_first():
    cores = Cores()
    for name, waiting in (("few", 2), ("many", 7), ("some", 3)):
        cores.claim(Bot(cores, name, waiting))
    assert await next_names(cores, 4) == ["many", "some", "few"]


async def test_claims_of_one_iteration_of_the_event_loop_are_compared():
    cores = Cores()
    assert cores.take()
    cores.release()
    loop = asyncio.get_running_loop()
    loop.call_soon(cores.claim, Bot(cores, "few", 1))
    loop.call_soon(cores.claim, Bot(cores, "many", 2))
    assert await next_names(cores, 2) == ["many", "few"]


async def test_bot_is_passed_over_a_limited_number_of_times():
    cores = Cores()
    cores.claim(Bot(cores, "poor", 1))
    names = []
    for _ in range(MAX_PASSED + 2):
        cores.claim(Bot(cores, "rich", 9))
        names += await next_names(cores, 1)
    assert names.index("poor") == MAX_PASSED


async def test_bot_that_lingers_is_last_but_does_not_wait_for_nobody():
    cores = Cores()
    lingering = Bot(cores, "lingers", 9)
    lingering.lingers = True
    cores.claim(lingering)
    cores.claim(Bot(cores, "other", 1))
    assert await next_names(cores, 2) == ["other", "lingers"]


async def test_as_many_bots_think_as_there_are_cores():
    cores = Cores(2)
    bots = [Bot(cores, str(number)) for number in range(3)]
    for bot in bots:
        cores.claim(bot)
    await asyncio.sleep(0.01)
    assert len(STARTED) == 2
    cores.release()
    await asyncio.sleep(0.01)
    assert len(STARTED) == 3


async def test_core_is_taken_at_once_only_if_nobody_waits_for_it():
    cores = Cores()
    assert cores.take()
    assert not cores.take()
    waiting = Bot(cores, "waits")
    cores.claim(waiting)
    cores.release()
    assert not cores.take()
    cores.withdraw(waiting)
    assert cores.take()
