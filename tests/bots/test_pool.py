"""Which processes a worker keeps. Real processes, which only say hello and wait."""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from referee.bots import process
from referee.bots.manifest import BotSpec
from referee.bots.player import BotPool
from referee.clocks import Clocks
from referee.errors import Cause, Forfeit, VoidGame
from referee.records import BotId
from referee.sandbox.process_group import ProcessGroupLauncher

FOLDER = Path(__file__).parents[1] / "misbehaving"
FAIR = (sys.executable, "bot.py", "fair")


def spec(name, command=FAIR):
    return BotSpec(BotId(name, "1"), FOLDER, command)


@pytest.fixture
async def pool(tmp_path_factory, monkeypatch):
    monkeypatch.setattr(process, "GOODBYE_S", 1.0)
    folder = tmp_path_factory.mktemp("p")
    pool = BotPool(ProcessGroupLauncher(), Clocks(), max_processes=2, folder=folder)
    yield pool
    await pool.close()
    assert not alive()
    assert not list(folder.iterdir())


def pid(bot):
    return bot._launched.process.pid


def alive():
    return {
        child.pid
        for child in psutil.Process().children(recursive=True)
        if child.status() != psutil.STATUS_ZOMBIE
    }


async def gone(bot):
    """Wait until the death of a bot's process has been noticed."""
    os.kill(pid(bot), 9)
    await bot.session.closed.wait()


async def test_a_bot_keeps_its_process(pool):
    first = await pool.acquire(0, spec("a"))
    first.games -= 1
    assert await pool.acquire(0, spec("a")) is first
    assert first.games == 1


async def test_lanes_share_no_process(pool):
    one, other = await asyncio.gather(pool.acquire(0, spec("a")), pool.acquire(1, spec("a")))
    assert pid(one) != pid(other)
    assert one._folder.path != other._folder.path


@pytest.mark.parametrize("transport", ["unix", "tcp"])
async def test_a_bot_may_come_by_either_transport(pool, transport):
    bot = await pool.acquire(0, replace(spec("a"), transport=transport))
    assert bot.session.said_hello
    address = psutil.Process(pid(bot)).environ()["REFEREE_ADDRESS"]
    assert address.startswith({"unix": "unix:/", "tcp": "127.0.0.1:"}[transport])


async def test_a_dead_process_is_replaced(pool):
    first = await pool.acquire(0, spec("a"))
    await gone(first)
    second = await pool.acquire(0, spec("a"))
    assert second is not first
    assert second.usable
    assert second.games == 1


async def test_the_least_recently_used_idle_process_makes_room(pool):
    first, second = [await pool.acquire(0, spec(name)) for name in "ab"]
    first.games = second.games = 0
    await pool.acquire(0, spec("a"))
    third = await pool.acquire(0, spec("c"))
    assert alive() == {pid(first), pid(third)}
    assert second.exit_code == 0, "it was told goodbye"


async def test_processes_that_start_at_once_make_room_for_each_other(pool):
    old = [await pool.acquire(0, spec(name)) for name in "ab"]
    for bot in old:
        bot.games = 0
    new = await asyncio.gather(*(pool.acquire(1, spec(name)) for name in "ab"))
    assert alive() == {pid(bot) for bot in new}


async def test_what_has_a_seat_is_not_closed(pool):
    bots = await asyncio.gather(*(pool.acquire(0, spec(name)) for name in "abc"))
    assert alive() == {pid(bot) for bot in bots}


async def test_who_waits_for_a_discarded_bot_gets_a_void_game(pool):
    bot, other = await asyncio.gather(pool.acquire(0, spec("a")), pool.acquire(1, spec("a")))
    await bot.session.start_game("g", b"\x0a\x03\x0a\x01g", 20_000_000)
    asking = asyncio.ensure_future(bot.session.request("g", 1, b"", 20_000_000))
    await asyncio.sleep(0)
    await pool.discard(0)
    with pytest.raises(VoidGame):
        await asking
    assert alive() == {pid(other)}


async def test_discarding_waits_for_what_is_just_starting(pool):
    starting = asyncio.ensure_future(pool.acquire(0, spec("a")))
    await asyncio.sleep(0)
    await pool.discard(0)
    assert (await starting).dead
    assert not alive()


async def test_a_start_that_is_cancelled_leaves_nothing(pool):
    starting = asyncio.ensure_future(pool.acquire(0, spec("a", ("sleep", "1000"))))
    while not alive():  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not alive()
    assert not pool._tokens
    assert not list(pool._folder.iterdir())


async def test_a_path_that_is_too_long_for_a_socket_is_nobodys_fault(tmp_path):
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    pool = BotPool(ProcessGroupLauncher(), Clocks(), max_processes=2, folder=folder)
    with pytest.raises(VoidGame, match="is longer than 100 characters"):
        await pool.acquire(0, spec("a"))
    assert not list(folder.iterdir())


async def test_a_bot_that_does_not_start_is_tried_again(pool):
    for _ in range(2):
        with pytest.raises(Forfeit) as raised:
            await pool.acquire(0, spec("a", ("./missing",)))
        assert raised.value.cause is Cause.NO_START
    assert (await pool.acquire(0, spec("a"))).usable


async def test_stopping_twice_at_once(pool):
    bot = await pool.acquire(0, spec("a"))
    await asyncio.gather(bot.stop(), bot.stop(gently=False))
    assert not alive()
