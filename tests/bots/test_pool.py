"""Test which bot processes a pool starts, keeps and stops, with real processes that play no game."""

import asyncio
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from referee.bots import BotSpec, process
from referee.bots.flood import GrpcThreads
from referee.bots.player import BotPool
from referee.clocks import Clocks
from referee.errors import Cause, Evidence, Forfeit, VoidGame
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
    assert not running_pids()
    assert not list(folder.iterdir())


def pid(bot):
    return bot._launched.process.pid


def running_pids():
    return {
        child.pid
        for child in psutil.Process().children(recursive=True)
        if child.status() != psutil.STATUS_ZOMBIE
    }


async def kill(bot):
    """Kill a bot's process and wait until its session is closed."""
    os.kill(pid(bot), 9)
    await bot.session.closed.wait()


async def test_process_of_a_bot_is_used_again(pool):
    first = await pool.acquire(0, spec("a"))
    first.change_games(-1)
    assert await pool.acquire(0, spec("a")) is first
    assert first.games == 1


async def test_lanes_have_separate_processes_and_folders(pool):
    one, other = await asyncio.gather(pool.acquire(0, spec("a")), pool.acquire(1, spec("a")))
    assert pid(one) != pid(other)
    assert one._folder.path != other._folder.path


@pytest.mark.parametrize("transport", ["unix", "tcp"])
async def test_bot_gets_the_address_of_its_transport(pool, transport):
    bot = await pool.acquire(0, replace(spec("a"), transport=transport))
    assert bot.session.said_hello
    address = psutil.Process(pid(bot)).environ()["REFEREE_ADDRESS"]
    assert address.startswith({"unix": "unix:/", "tcp": "127.0.0.1:"}[transport])


async def test_dead_process_is_replaced(pool):
    first = await pool.acquire(0, spec("a"))
    await kill(first)
    second = await pool.acquire(0, spec("a"))
    assert second is not first
    assert second.usable
    assert second.games == 1


@pytest.mark.extended("starts more bots")
async def test_least_recently_used_idle_process_is_stopped_if_there_are_too_many(pool, monkeypatch):
    monkeypatch.setattr(process, "GOODBYE_S", 20.0)
    first, second = [await pool.acquire(0, spec(name)) for name in "ab"]
    first.games = second.games = 0
    (await pool.acquire(0, spec("a"))).change_games(-1)
    third = await pool.acquire(0, spec("c"))
    assert running_pids() == {pid(first), pid(third)}
    assert second.exit_code == 0, "the bot exits by itself after a goodbye"


@pytest.mark.extended("starts more bots")
async def test_concurrent_starts_stop_enough_idle_processes(pool):
    old = [await pool.acquire(0, spec(name)) for name in "ab"]
    for bot in old:
        bot.games = 0
    new = await asyncio.gather(*(pool.acquire(1, spec(name)) for name in "ab"))
    assert running_pids() == {pid(bot) for bot in new}


async def test_process_in_a_game_is_not_stopped_for_another(pool):
    bots = await asyncio.gather(*(pool.acquire(0, spec(name)) for name in "abc"))
    assert running_pids() == {pid(bot) for bot in bots}


@pytest.mark.extended("starts more bots")
async def test_bots_that_failed_in_a_lane_are_listed(pool):
    for lane, name in ((0, "a"), (0, "b"), (1, "c")):
        await pool.acquire(lane, spec(name))
    for key in ((0, "a@1"), (1, "c@1")):
        pool._processes[key].session.fail(Forfeit(Cause.CRASH, Evidence(detail="gone")))
    pool._processes[0, "b@1"].session.fail(VoidGame("ended by the referee"))
    assert pool.list_failed(0) == {"a@1"}


async def test_pending_request_of_a_discarded_bot_raises_void_game(pool):
    bot, other = await asyncio.gather(pool.acquire(0, spec("a")), pool.acquire(1, spec("a")))
    await bot.session.start_game("g", b"\x0a\x03\x0a\x01g", 20_000_000)
    pending = asyncio.ensure_future(bot.session.request("g", 1, b"", 20_000_000))
    await asyncio.sleep(0)
    await pool.discard(0)
    with pytest.raises(VoidGame):
        await pending
    assert running_pids() == {pid(other)}


async def test_discarding_a_lane_waits_for_a_starting_process(pool):
    starting = asyncio.ensure_future(pool.acquire(0, spec("a")))
    await asyncio.sleep(0)
    await pool.discard(0)
    assert (await starting).dead
    assert not running_pids()


async def test_cancelled_start_leaves_no_process_token_or_folder(pool):
    starting = asyncio.ensure_future(pool.acquire(0, spec("a", ("sleep", "1000"))))
    while not running_pids():  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    async with asyncio.timeout(10):  # uvloop kills the program, but does not wait for its end
        while running_pids():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0)
    assert not pool._running
    assert not list(pool._folder.iterdir())


async def test_bot_that_gets_no_folder_is_not_listed(tmp_path):
    pool = BotPool(ProcessGroupLauncher(), Clocks(), max_processes=2, folder=tmp_path / "gone")
    with pytest.raises(VoidGame, match="no room for a bot's folder"):
        await pool.acquire(0, spec("a"))
    assert not pool._running


async def test_no_process_is_started_during_a_search_for_a_flooder(pool, monkeypatch):
    bot = await pool.acquire(0, spec("a"))
    await bot.session.start_game("g", b"\x0a\x03\x0a\x01g", 20_000_000)
    monkeypatch.setattr(GrpcThreads, "cpu_ns", lambda _: time.monotonic_ns())  # always busy
    while not pool._start_lock.locked():  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0)
    starting = asyncio.ensure_future(pool.acquire(0, spec("b")))
    while pool._start_lock.locked():
        assert list(pool._running.values()) == [bot]
        await asyncio.sleep(0)
    assert (await starting).usable


async def test_too_long_socket_path_is_a_void_game(tmp_path):
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    pool = BotPool(ProcessGroupLauncher(), Clocks(), max_processes=2, folder=folder)
    with pytest.raises(VoidGame, match="is longer than 100 bytes"):
        await pool.acquire(0, spec("a"))
    assert not list(folder.iterdir())


async def test_bot_is_not_charged_for_its_own_token_on_the_server_of_another_bot(pool):
    bot, other = await asyncio.gather(*(pool.acquire(0, spec(name)) for name in "ab"))
    fault = Forfeit(Cause.IMPERSONATION, Evidence(detail="stole"))
    other._charge(bot.pid, fault, bot._token)
    assert bot.session.failure is None
    other._charge(bot.pid, fault, other._token)
    assert bot.session.failure is fault
    assert other.session.failure is None


async def test_bot_that_does_not_obey_the_goodbye_gets_sigterm(pool, monkeypatch):
    bot = await pool.acquire(0, spec("a"))
    monkeypatch.setattr(process, "GOODBYE_S", 0)
    monkeypatch.setattr(bot.session, "say_goodbye", lambda _: None)
    await bot.stop()
    assert bot.exit_code == -signal.SIGTERM


async def test_failed_start_is_tried_again_for_the_next_game(pool):
    for _ in range(2):
        with pytest.raises(Forfeit) as raised:
            await pool.acquire(0, spec("a", ("./missing",)))
        assert raised.value.cause is Cause.NO_START
    assert (await pool.acquire(0, spec("a"))).usable


@pytest.mark.extended("starts more bots")
async def test_concurrent_stops_leave_no_process(pool):
    bot = await pool.acquire(0, spec("a"))
    await asyncio.gather(bot.stop(), bot.stop(gently=False))
    assert not running_pids()
