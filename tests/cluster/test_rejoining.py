"""`referee worker` starts its workers again when the scheduler comes back, and gives up if it cannot start them."""

from __future__ import annotations

import asyncio

import pytest
from distributed.comm.core import CommClosedError

from referee.cluster import connection
from referee.cluster.connection import serve
from referee.errors import RefereeError, UserError


@pytest.fixture
def run(monkeypatch):
    """Return a function that serves with given outcomes of `run_workers`; the last one ends the test. Return what was said."""

    async def reachable(_address, _security):
        await asyncio.sleep(0)

    monkeypatch.setattr(connection, "check_scheduler", reachable)
    monkeypatch.setattr(connection, "wait_for_scheduler", reachable)

    async def run(outcomes):
        left, said = list(outcomes), []

        async def run_workers(*_arguments, **_words):
            outcome = left.pop(0)
            if outcome is not None:
                raise outcome

        monkeypatch.setattr(connection, "run_workers", run_workers)
        with pytest.raises((RefereeError, KeyboardInterrupt)) as error:
            await serve("tcp://s:1", [None, None], host=None, security=None, say=said.append)
        assert not left
        return error.value, said

    return run


def failure(cause):
    """Return the error of a nanny that did not start, as Dask raises it."""
    error = RuntimeError("Nanny failed to start.")
    error.__cause__ = cause
    return error


async def test_workers_are_started_again_whenever_the_scheduler_has_gone(run):
    gone = failure(CommClosedError("Stream is closed"))
    error, said = await run([None, gone, ConnectionRefusedError(), None, KeyboardInterrupt()])
    assert isinstance(error, KeyboardInterrupt)
    assert said == [
        "tcp://s:1: starting 2 workers.",
        "tcp://s:1: the scheduler is gone. Waiting for it.",
    ] * 4 + ["tcp://s:1: starting 2 workers."]


async def test_workers_that_cannot_be_started_end_the_command(run):
    ended, _ = await run([None, failure(OSError("no space"))])
    assert str(ended) == "tcp://s:1: the workers cannot be started: no space"


async def test_scheduler_that_is_never_reached_ends_the_command(monkeypatch):
    async def unreachable(address, _security):
        raise UserError(f"{address}: no scheduler can be reached")

    monkeypatch.setattr(connection, "check_scheduler", unreachable)
    with pytest.raises(UserError, match="no scheduler can be reached"):
        await serve("tcp://s:1", [None], host=None, security=None, say=print)
