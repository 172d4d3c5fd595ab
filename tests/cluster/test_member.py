"""What a Dask worker does for a driver: it refuses what it cannot play, keeps bots, and ends a game process that is idle."""

from __future__ import annotations

import asyncio
import errno
import io
import socket
from contextlib import suppress
from dataclasses import replace

import psutil
import pytest
from distributed.protocol.pickle import dumps, loads
from fake_client import REQUEST
from orders import game_order

from referee.bots import BotSpec
from referee.clocks import Clocks
from referee.cluster import member
from referee.cluster.member import Deployment, MissingCopyError, Place
from referee.errors import Shortage, UserError
from referee.records import BotId
from referee.roster.content import hash_content, write_archive
from referee.rules.ruleset import RULESETS
from referee.sandbox import NO_ISOLATION, Rung, ladder
from referee.tournament.assignments import Assignment, AssignmentResult
from referee.tournament.workers import WorkerLostError

RESULT = AssignmentResult(["a record"])


class FakeWorkers:
    """Game processes that play at once."""

    opened = 0
    closed = 0

    def __init__(self, settings, *, on_worker_lost):
        del on_worker_lost
        assert len(settings) == 1
        FakeWorkers.opened += 1

    async def submit(self, number, _assignment):
        assert number == 0
        return RESULT

    async def aclose(self):
        FakeWorkers.closed += 1


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(member, "_DEPLOYMENTS", {})
    monkeypatch.setattr(member, "_PLACES", [Place(frozenset(), tmp_path)])
    return member._PLACES[0]


@pytest.fixture
def deployment(place, monkeypatch):
    FakeWorkers.opened = FakeWorkers.closed = 0
    monkeypatch.setattr(member, "Workers", FakeWorkers)
    monkeypatch.setattr(member, "make_settings", lambda *_: None)
    return Deployment(REQUEST, place, NO_ISOLATION)


@pytest.mark.usefixtures("place")
async def test_worker_with_weaker_isolation_refuses_by_name(monkeypatch):
    async def select(wanted):
        assert wanted is Rung.FULL
        raise UserError("isolation 'full': bubblewrap is missing")

    monkeypatch.setattr(member, "select_isolation", select)
    with pytest.raises(UserError, match=f"{socket.gethostname()}: isolation 'full': bubblewrap"):
        await member.deploy(REQUEST)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    "cause", [Shortage("no room for another process"), OSError(errno.ENOSPC, "No space left")]
)
async def test_shortage_during_the_tests_of_the_isolation_is_no_refusal(monkeypatch, cause):
    async def find(_wanted):
        raise cause

    monkeypatch.setattr(ladder, "_find_exactly", find)
    with pytest.raises(Shortage) as error:
        await member.deploy(REQUEST)
    expected = f"{socket.gethostname()}: the isolation could not be tested: {cause}"
    assert str(error.value) == expected
    assert str(loads(dumps(error.value))) == expected  # as Dask sends it to the driver


async def test_dask_worker_that_the_referee_has_not_started_refuses(monkeypatch):
    monkeypatch.setattr(member, "_PLACES", [])
    with pytest.raises(UserError, match="was not started by `referee worker`"):
        await member.deploy(REQUEST)


async def test_refusal_can_be_sent_if_the_name_of_the_host_is_not_utf_8(monkeypatch):
    monkeypatch.setattr(member, "_PLACES", [])
    monkeypatch.setattr(socket, "gethostname", lambda: "odd\udcff")
    with pytest.raises(UserError, match=r"^odd\?: this Dask worker"):
        await member.deploy(REQUEST)


async def test_idle_game_process_is_ended_and_started_again_for_the_next_games(
    deployment, monkeypatch
):
    monkeypatch.setattr(member, "IDLE_S", 0.01)
    for number in (1, 2):
        assert await deployment.play(Assignment(0, ())) == RESULT
        assert FakeWorkers.opened == number
        async with asyncio.timeout(60):
            while FakeWorkers.closed < number:  # noqa: ASYNC110 - the fake has no event
                await asyncio.sleep(0.01)


async def test_games_that_come_while_the_idle_process_ends_wait_until_it_has_ended(
    deployment, monkeypatch
):
    is_closing, may_close = asyncio.Event(), asyncio.Event()

    async def close_slowly(_workers):
        is_closing.set()
        await may_close.wait()
        FakeWorkers.closed += 1

    monkeypatch.setattr(member, "IDLE_S", 0)
    monkeypatch.setattr(FakeWorkers, "aclose", close_slowly)
    await deployment.play(Assignment(0, ()))
    await is_closing.wait()
    playing = asyncio.ensure_future(deployment.play(Assignment(0, ())))
    await asyncio.sleep(0)
    may_close.set()
    assert await playing == RESULT
    assert (FakeWorkers.opened, FakeWorkers.closed) == (2, 1)
    await deployment.close()


async def test_game_process_stays_for_the_next_games(deployment):
    for _ in range(3):
        assert await deployment.play(Assignment(0, ())) == RESULT
    assert (FakeWorkers.opened, FakeWorkers.closed) == (1, 0)
    await deployment.close()
    assert FakeWorkers.closed == 1


async def test_full_disk_is_no_fault_of_a_bot(deployment, monkeypatch):
    async def unpack(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(deployment._workshop, "unpack", unpack)
    with pytest.raises(OSError, match="No space left"):
        await deployment.add_bot("a@1", b"")


async def test_missing_copy_of_a_bot_names_the_host_and_the_bot(deployment, tmp_path):
    specs = tuple(
        BotSpec(BotId(name, version), tmp_path, ("./bot",)) for name, version in ("a1", "b2")
    )
    task = game_order("cup-1", RULESETS["duel"], specs, clocks=Clocks(), max_strikes=3)
    with pytest.raises(
        MissingCopyError, match=f"^{socket.gethostname()}: .*no copy of a@1 can be read"
    ):
        await deployment.play(Assignment(0, ((task,),)))


@pytest.fixture
def closing(deployment, monkeypatch):
    """Let a `FakeWorkers` close only when it is killed. Return an event that is set when it begins to close."""
    del deployment
    is_closing, is_killed = asyncio.Event(), asyncio.Event()

    async def select(_wanted):
        return NO_ISOLATION

    async def close_after_kill(_workers):
        is_closing.set()
        await is_killed.wait()

    monkeypatch.setattr(member, "select_isolation", select)
    monkeypatch.setattr(FakeWorkers, "aclose", close_after_kill)
    monkeypatch.setattr(FakeWorkers, "kill", lambda _: is_killed.set(), raising=False)
    return is_closing


async def test_kill_ends_games_that_a_new_deployment_waits_for(closing):
    await member.deploy(REQUEST)
    await member.play("s", Assignment(0, ()))
    deploying = asyncio.ensure_future(member.deploy(REQUEST))
    async with asyncio.timeout(5):
        await closing.wait()
        await member.kill("s")
        assert await deploying == ("a@1", "b@2")
        assert await member.play("s", Assignment(0, ())) == RESULT
        await member.leave("s")
    assert FakeWorkers.opened == 2


async def test_games_that_come_while_a_deployment_is_left_start_no_process(closing):
    await member.deploy(REQUEST)
    await member.play("s", Assignment(0, ()))
    leaving = asyncio.ensure_future(member.leave("s"))
    async with asyncio.timeout(5):
        await closing.wait()
        playing = asyncio.ensure_future(member.play("s", Assignment(0, ())))
        await asyncio.sleep(0)
        await member.kill("s")
        await leaving
        with pytest.raises(WorkerLostError, match="has left this run of the tournament"):
            await playing
    assert FakeWorkers.opened == 1


@pytest.mark.usefixtures("deployment")
async def test_new_deployment_of_a_tournament_ends_the_older_one(monkeypatch):
    async def select(_wanted):
        return NO_ISOLATION

    monkeypatch.setattr(member, "select_isolation", select)
    first = member.DeploymentRequest(
        deployment="first", commitment="c", config=None, rung=Rung.NONE, bots={}
    )
    await member.deploy(first)
    await member.play("first", Assignment(0, ()))
    assert await member.deploy(REQUEST) == ("a@1", "b@2")
    assert FakeWorkers.closed == 1
    with pytest.raises(WorkerLostError, match="has left this run of the tournament"):
        await member.play("first", Assignment(0, ()))


@pytest.mark.usefixtures("deployment")
async def test_older_games_are_ended_before_the_isolation_is_tested(monkeypatch):
    """They may use the memory or the processes that the test needs."""

    async def select(_wanted):
        return NO_ISOLATION

    async def fail(_wanted):
        raise UserError("no room") from Shortage("no room for another process")

    monkeypatch.setattr(member, "select_isolation", select)
    await member.deploy(REQUEST)
    await member.play("s", Assignment(0, ()))
    monkeypatch.setattr(member, "select_isolation", fail)
    with pytest.raises(Shortage):
        await member.deploy(REQUEST)
    assert FakeWorkers.closed == 1


@pytest.mark.usefixtures("deployment")
async def test_games_that_start_while_the_isolation_is_tested_are_ended(monkeypatch):
    """The driver may deploy again before an earlier call of `deploy` has returned."""
    tests = [asyncio.get_running_loop().create_future() for _ in range(2)]
    left = iter(tests)

    async def select(_wanted):
        return await next(left)

    monkeypatch.setattr(member, "select_isolation", select)
    deploying = [asyncio.ensure_future(member.deploy(REQUEST)) for _ in tests]
    await asyncio.sleep(0)
    tests[0].set_result(NO_ISOLATION)
    await deploying[0]
    await member.play("s", Assignment(0, ()))
    tests[1].set_result(NO_ISOLATION)
    await deploying[1]
    assert FakeWorkers.closed == 1


MANIFEST = """
name = "slow"
version = "1"
author = "Ann"
language = "sh"

[build]
command = ["sh", "-c", "echo > begun; sleep 60 & sleep 60"]

[run]
command = ["sh"]
"""


@pytest.mark.parametrize("end", [[member.leave], [member.kill, member.leave]])
@pytest.mark.usefixtures("deployment")
async def test_leave_ends_a_build(tmp_path, monkeypatch, end):
    async def select(_wanted):
        return NO_ISOLATION

    monkeypatch.setattr(member, "select_isolation", select)
    source, archive = tmp_path / "source", io.BytesIO()
    source.mkdir()
    (source / "bot.toml").write_text(MANIFEST)
    write_archive(source, archive)
    await member.deploy(replace(REQUEST, bots={"slow@1": hash_content(source)}))
    building = asyncio.ensure_future(member.add_bot("s", "slow@1", archive.getvalue()))
    async with asyncio.timeout(20):
        while not list(tmp_path.glob("bots/slow/*/bot/begun")):
            assert not building.done(), await building
            await asyncio.sleep(0.01)
        await asyncio.gather(*(function("s") for function in end))
        with pytest.raises(WorkerLostError, match="has left this run of the tournament"):
            await building
    assert not list(tmp_path.glob("bots/slow/*/"))
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has just ended
            assert child.name() != "sleep"


async def test_changed_copy_of_a_worker_is_replaced(deployment, tmp_path):
    source, archive = tmp_path / "source", io.BytesIO()
    source.mkdir()
    (source / "bot.toml").write_text(MANIFEST.replace("[build]\ncommand", "#"))
    write_archive(source, archive)
    deployment.request = replace(REQUEST, bots={"slow@1": hash_content(source)})
    assert await deployment.add_bot("slow@1", archive.getvalue()) is None
    assert deployment.missing_bots() == ()
    [copied] = tmp_path.glob("bots/slow/*/bot")
    (copied / "new").touch()
    assert deployment.missing_bots() == ("slow@1",)
    assert await deployment.add_bot("slow@1", archive.getvalue()) is None
    assert deployment.missing_bots() == ()
    assert not (copied / "new").exists()


async def test_deployment_that_was_left_builds_no_bot(deployment):
    await deployment.leave()
    with pytest.raises(WorkerLostError, match="has left this run of the tournament"):
        await deployment.add_bot("a@1", b"")
