"""Tests what happens to a program whose start is cancelled."""

import asyncio

import pytest

from referee.errors import Cause, Evidence, Forfeit
from referee.sandbox.start import finish_or_kill


class Program:
    def __init__(self):
        self.kills = 0

    async def kill(self):
        await asyncio.sleep(0.02)
        self.kills += 1


async def start(program, seen):
    try:
        await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise
    seen.append("started")
    return program


@pytest.mark.parametrize("times", [1, 2, 5, 20])
async def test_program_whose_start_is_cancelled_again_and_again_is_killed(times):
    program, seen = Program(), []
    caller = asyncio.ensure_future(finish_or_kill(start(program, seen)))
    for _ in range(times):  # 20 cancellations last longer than start and kill together
        await asyncio.sleep(0.005)
        caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert seen == ["started"]
    assert program.kills == 1


async def test_failed_start_that_was_cancelled_ends_as_cancelled():
    async def fail():
        await asyncio.sleep(0.02)
        raise Forfeit(Cause.NO_START, Evidence(detail="no program"))

    caller = asyncio.ensure_future(finish_or_kill(fail()))
    await asyncio.sleep(0.005)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
