"""`referee worker` starts its workers again when the scheduler comes back, and gives up if it cannot start them."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest
from distributed.comm.core import CommClosedError
from fake_client import settle

from referee.cluster import connection, host
from referee.cluster.connection import serve
from referee.cluster.host import places, run_workers
from referee.errors import RefereeError, UserError


@pytest.fixture
def run(monkeypatch):
    """Return a function that serves with given outcomes of `run_workers`; the last one ends the test. Return what was said.

    The scheduler is reached at first. Afterwards, `is_gone` says whether it is gone when the workers have ended.
    """
    monkeypatch.setattr(connection, "_RETRY_S", 0.0)

    async def run(outcomes, *, is_gone):
        left, said = list(outcomes), []
        is_reached = True

        async def check_scheduler(address, _security):
            if not is_reached:
                raise UserError(f"{address}: no scheduler can be reached")

        async def wait_for_scheduler(_address, _security):
            nonlocal is_reached
            is_reached = True

        async def run_workers(*_arguments, **_words):
            nonlocal is_reached
            is_reached = not is_gone
            outcome = left.pop(0)
            if outcome is not None:
                raise outcome

        monkeypatch.setattr(connection, "check_scheduler", check_scheduler)
        monkeypatch.setattr(connection, "wait_for_scheduler", wait_for_scheduler)

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
    outcomes = [None, gone, ConnectionRefusedError(), None, KeyboardInterrupt()]
    error, said = await run(outcomes, is_gone=True)
    assert isinstance(error, KeyboardInterrupt)
    assert said == [
        "tcp://s:1: starting 2 workers.",
        "tcp://s:1: the scheduler is gone. Waiting for it.",
    ] * 4 + ["tcp://s:1: starting 2 workers."]


async def test_workers_that_have_ended_beside_a_scheduler_are_started_again(run):
    error, said = await run([None, KeyboardInterrupt()], is_gone=False)
    assert isinstance(error, KeyboardInterrupt)
    assert said == [
        "tcp://s:1: starting 2 workers.",
        "tcp://s:1: a worker or its connection was lost. All workers are started again.",
        "tcp://s:1: starting 2 workers.",
    ]


@pytest.fixture
def nannies(monkeypatch):
    """Give a list of the nannies that `run_workers` starts. They start no process."""
    started = []

    class FakeNanny:
        def __init__(self, *_, name, **__):
            self.name = name
            self.ended = asyncio.Event()
            started.append(self)

        async def __aenter__(self):
            return self

        async def __aexit__(self, *_):
            await self.close()

        async def close(self):
            self.ended.set()

        async def finished(self):
            await self.ended.wait()

    monkeypatch.setattr(host, "QuietNanny", FakeNanny)
    return started


async def test_all_workers_end_when_one_is_not_started_again(nannies, tmp_path):
    """Otherwise its core would be lost until the last worker ends."""
    running = asyncio.create_task(start_workers(tmp_path))
    await settle()
    nannies[0].ended.set()
    async with asyncio.timeout(10):
        await running
    assert nannies[1].ended.is_set()


async def test_workers_of_two_containers_have_different_names(nannies, tmp_path, monkeypatch):
    """A scheduler refuses a second worker with the same name. The command may be process 1 in each container."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    for _ in range(2):  # not at once, because each changes settings of this process until it ends
        running = asyncio.create_task(start_workers(tmp_path))
        await settle()
        nannies[-1].ended.set()
        async with asyncio.timeout(10):
            await running
    assert len({nanny.name for nanny in nannies}) == 4


async def test_name_of_a_worker_can_be_sent_if_the_name_of_its_host_is_not_utf_8(
    nannies, tmp_path, monkeypatch
):
    monkeypatch.setattr(socket, "gethostname", lambda: "odd\udcff")
    running = asyncio.create_task(start_workers(tmp_path))
    await settle()
    nannies[0].ended.set()
    async with asyncio.timeout(10):
        await running
    assert nannies[0].name.startswith("odd?-0-")


def test_folder_for_copies_of_bots_is_absolute(tmp_path, monkeypatch):
    """A bot starts in another working directory, where a relative path names nothing."""
    monkeypatch.chdir(tmp_path)
    [place] = places(1, Path("copies"))
    assert place.folder == tmp_path / "copies"


async def start_workers(folder):
    await run_workers("tcp://127.0.0.1:1", places(2, folder), host=None, security=None)


async def test_scheduler_whose_name_cannot_be_resolved_any_more_is_waited_for():
    """`serve` repeats a start after a ConnectionError."""
    with pytest.raises(ConnectionError):
        await run_workers("tcp://no-such-host.invalid:1", [], host=None, security=None)


async def test_unknown_address_for_the_workers_ends_the_command(run):
    unknown = socket.gaierror(-2, "Name or service not known")
    ended, _ = await run([failure(unknown)], is_gone=False)
    assert str(ended) == (
        "tcp://s:1: the workers cannot be started: [Errno -2] Name or service not known"
    )


async def test_workers_that_cannot_be_started_end_the_command(run):
    ended, _ = await run([None, failure(OSError("no space"))], is_gone=True)
    assert str(ended) == "tcp://s:1: the workers cannot be started: no space"


async def test_error_without_a_text_is_named_by_its_class(run):
    ended, _ = await run([failure(OSError())], is_gone=False)
    assert str(ended) == "tcp://s:1: the workers cannot be started: OSError"


KILLED = failure(RuntimeError("Nanny failed to start worker process"))
"""Dask's error if the process of a worker ends during its start."""


async def test_workers_that_are_killed_during_their_start_are_started_again(run):
    gone = failure(CommClosedError("Stream is closed"))
    outcomes = [KILLED, KILLED, None, KILLED, KILLED, gone, KILLED, KeyboardInterrupt()]
    error, said = await run(outcomes, is_gone=False)
    assert isinstance(error, KeyboardInterrupt)
    again = "tcp://s:1: a worker or its connection was lost. All workers are started again."
    assert said == ["tcp://s:1: starting 2 workers.", again] * 7 + [
        "tcp://s:1: starting 2 workers."
    ]


async def test_workers_that_end_during_each_start_end_the_command(run):
    ended, _ = await run([None, KILLED, KILLED, KILLED], is_gone=False)
    assert str(ended) == (
        "tcp://s:1: the workers cannot be started: Nanny failed to start worker process"
    )


async def test_scheduler_that_is_never_reached_ends_the_command(monkeypatch):
    async def unreachable(address, _security):
        raise UserError(f"{address}: no scheduler can be reached")

    monkeypatch.setattr(connection, "check_scheduler", unreachable)
    with pytest.raises(UserError, match="no scheduler can be reached"):
        await serve("tcp://s:1", [None], host=None, security=None, say=print)
