"""Errors in a run reach the command alone, and not as a group of errors, unless there is a bug."""

from __future__ import annotations

import asyncio
import errno
import os
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace

import pytest
from stand_ins import Cup, StandIns

from referee.clocks import Clocks
from referee.errors import RefereeError, UserError, VoidGame
from referee.sandbox import NO_ISOLATION
from referee.store import HostFigures
from referee.store.league import League
from referee.tournament import conduct, worker, workers
from referee.tournament.assignments import Assignment, WorkerSettings
from referee.tournament.config_reader import load_tournament

SAMPLE_BOTS = Path(__file__).parents[2] / "sample_bots"
NO_DESCRIPTORS = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
NO_SPACE = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "error", [VoidGame("no room"), NO_SPACE], ids=["the referee's", "the machine's"]
)
def test_the_first_known_error_of_a_group_is_raised_alone(error):
    with pytest.raises(type(error)) as caught, conduct._raise_first_error():
        raise ExceptionGroup("tasks", [error, RefereeError("another one")])
    assert caught.value is error


def test_a_group_with_a_bug_is_raised_as_it_is():
    group = ExceptionGroup("tasks", [RefereeError("known"), KeyError("a bug")])
    with pytest.raises(ExceptionGroup) as caught, conduct._raise_first_error():
        raise group
    assert caught.value is group


def test_hosts_that_cannot_be_noted_neither_end_a_run_nor_hide_its_error(tmp_path, monkeypatch):
    tries = []
    tried_again = asyncio.Event()

    def refuse(*_arguments):
        tries.append(1)
        if len(tries) == 2:
            tried_again.set()
        raise UserError("another referee is playing in this league")

    async def fail(*_arguments):
        await asyncio.wait_for(tried_again.wait(), 10)
        raise RefereeError("the scheduler is gone")

    monkeypatch.setattr(conduct, "_NOTE_S", 0.001)
    monkeypatch.setattr(League, "note_hosts", refuse)
    monkeypatch.setattr(StandIns, "list_hosts", lambda _: [HostFigures("far", 2, 0, 0, 5)])
    monkeypatch.setattr(StandIns, "submit", fail)
    bots = ", ".join(f'"{SAMPLE_BOTS / name}"' for name in ("greedy", "random"))
    (tmp_path / "cup.toml").write_text(
        f'name = "cup"\nruleset = "duel"\nseats = 2\nmatches = 1\nbots = [{bots}]\n'
    )
    cup = Cup(tmp_path, load_tournament(tmp_path / "cup.toml"))
    with cup.league, pytest.raises(RefereeError, match="the scheduler is gone"):
        cup.play()


class BrokenExecutor:
    """An executor whose process has died."""

    def submit(self, *_arguments):
        raise BrokenProcessPool

    def shutdown(self, **_options):
        pass


class ExecutorWithoutWatches:
    """An executor whose process has no epoll watches left: the first use of its event loop fails, and breaks the loop."""

    def submit(self, function, *_arguments):
        result = Future()
        if function is worker.play_games:
            result.set_exception(NO_SPACE)
        else:
            result.set_exception(RuntimeError("this event loop is already running."))
        return result

    def shutdown(self, **_options):
        pass


@pytest.fixture
def settings(tmp_path):
    return WorkerSettings(
        cores=frozenset(),
        clocks=Clocks(),
        max_processes=2,
        isolation=NO_ISOLATION,
        folder=tmp_path,
        parent_pid=os.getpid(),
    )


async def test_a_worker_that_cannot_stop_after_a_shortage_is_reported_as_a_shortage(
    settings, monkeypatch
):
    monkeypatch.setattr(workers, "_make_executor", lambda _settings: ExecutorWithoutWatches())
    run = workers.Workers([settings], on_worker_lost=lambda _sentence: None)
    run._processes[0] = SimpleNamespace(is_alive=lambda: False, kill=lambda: None)
    with pytest.raises(RefereeError, match="no room for worker 0: No space left on device"):
        async with aclosing(run):
            await run.submit(0, Assignment(0, ()))


async def test_a_lost_worker_that_cannot_be_replaced_is_reported_as_a_shortage(
    settings, monkeypatch
):
    monkeypatch.setattr(workers, "_make_executor", lambda _settings: BrokenExecutor())
    run = workers.Workers([settings], on_worker_lost=lambda _sentence: None)

    def fail(_settings):
        raise NO_DESCRIPTORS

    monkeypatch.setattr(workers, "_make_executor", fail)
    with pytest.raises(RefereeError, match="no room for worker 0: Too many open files"):
        await run.submit(0, Assignment(0, ()))
