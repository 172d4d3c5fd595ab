"""Play bots that flood their own server, each in each seat. Only the flooder may be charged. A healthy game follows."""

import asyncio
import sys
from dataclasses import replace
from inspect import isclass

import pytest
from strongest_isolation import strongest
from test_misbehaving_games import FOLDER, HEALTHY, PATIENT, play_each_seat, run, spec

from referee.errors import Cause
from referee.rules.ruleset import RULESETS
from referee.sandbox.ladder import make_launcher
from referee.sandbox.scheduling import Scheduling

sys.path.insert(0, str(FOLDER))
import bot
import flooder

pytestmark = pytest.mark.unmeasured
__all__ = ["run"]
SLOW = replace(PATIENT, start_up_us=120_000_000, decision_us=120_000_000)
"""A search is repeated only every 2 s, and on a busy machine several searches may be needed."""
LONG = RULESETS["basic"].with_options(max_turns=500)
"""On a busy machine, a game of a few turns can end before the search for the flooder begins."""
MORE = "plays more misbehaving bots"


def names():
    kinds = [each for each in vars(flooder).values() if isclass(each)]
    here = [kind for kind in kinds if kind.__module__ == "flooder" and kind is not flooder.Flooder]
    return sorted(map(bot.name_of, here))


async def check_flooder(run, name):
    wrong = spec(name, sys.executable, "flooder.py", name)
    async for seat, record in play_each_seat(run, wrong, start=SLOW, game=SLOW, rules=LONG):
        (fault,) = record.faults
        assert fault.seat == seat
        assert (fault.cause, fault.forfeit) == (Cause.FLOOD, True)
        assert "busy with HTTP/2 frames" in fault.evidence.detail
        assert record.forfeited == (seat,)


@pytest.mark.extended(MORE)
@pytest.mark.parametrize("name", names())
async def test_flooder_forfeits_and_no_other_bot_is_charged(run, name):
    await check_flooder(run, name)


@pytest.mark.extended(MORE)
@pytest.mark.isolation("full")
@pytest.mark.parametrize("name", ["floods_beside", "floods_pings", "trickles"])
async def test_flooder_in_a_sandbox_forfeits(run, name):
    run.player._launcher = run.player._pool._launcher = make_launcher(strongest())
    await run.player._pool.close()
    await check_flooder(run, name)


async def test_bot_that_was_held_gets_the_core_that_the_session_wants(run):
    process = run.player._pool._processes[0, "healthy@1"]
    scheduler = process._launched.scheduler
    assert scheduler._current is Scheduling.STOPPED  # it plays no game
    process.hold()
    process.release()
    assert scheduler._current is Scheduling.STOPPED
    process.hold()
    scheduler.schedule(Scheduling.NORMAL)
    assert scheduler._current is Scheduling.STOPPED
    process.release()
    assert scheduler._current is Scheduling.NORMAL
    scheduler.schedule(Scheduling.IDLE)
    process.hold()
    process.run_alone()
    assert scheduler._current is Scheduling.NORMAL, "a trial also needs a bot that has just replied"
    process.hold()
    assert scheduler._current is Scheduling.STOPPED
    process.release()
    assert scheduler._current is Scheduling.IDLE
    scheduler.schedule(Scheduling.STOPPED)


async def test_bot_that_is_asked_to_exit_runs_only_after_its_hold(run):
    process = run.player._pool._processes[0, "healthy@1"]
    scheduler = process._launched.scheduler
    process.hold()
    shutdown = asyncio.ensure_future(process.shut_down(goodbye=True))
    await asyncio.sleep(0)
    assert scheduler._current is Scheduling.STOPPED
    process.release()
    assert scheduler._current is Scheduling.NORMAL
    await shutdown


async def test_bot_that_is_held_during_its_launch_is_stopped_after_it(run):
    starting = asyncio.ensure_future(run.player._pool.acquire(5, HEALTHY))
    while not (new := [bot for bot in run.player._pool._running.values() if not bot._launched]):  # noqa: ASYNC110
        await asyncio.sleep(0)
    new[0].hold()
    while new[0]._launched is None:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert new[0]._launched.scheduler._current is Scheduling.STOPPED
    new[0].release()
    (await starting).change_games(-1)
