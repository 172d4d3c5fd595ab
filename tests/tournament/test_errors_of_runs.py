"""Errors in a run reach the command alone, and not as a group of errors, unless there is a bug."""

from __future__ import annotations

import errno
import os
from concurrent.futures.process import BrokenProcessPool

import pytest

from referee.clocks import Clocks
from referee.errors import RefereeError, VoidGame
from referee.sandbox import NO_ISOLATION
from referee.tournament import conduct, workers
from referee.tournament.assignments import Assignment, WorkerSettings

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


class BrokenExecutor:
    """An executor whose process has died."""

    def submit(self, *_arguments):
        raise BrokenProcessPool

    def shutdown(self, **_options):
        pass


async def test_a_lost_worker_that_cannot_be_replaced_is_reported_as_a_shortage(
    tmp_path, monkeypatch
):
    settings = WorkerSettings(
        cores=frozenset(),
        clocks=Clocks(),
        max_processes=2,
        isolation=NO_ISOLATION,
        folder=tmp_path,
        parent_pid=os.getpid(),
    )
    monkeypatch.setattr(workers, "_make_executor", lambda _settings: BrokenExecutor())
    run = workers.Workers([settings], on_worker_lost=lambda _sentence: None)

    def fail(_settings):
        raise NO_DESCRIPTORS

    monkeypatch.setattr(workers, "_make_executor", fail)
    with pytest.raises(RefereeError, match="no room for worker 0: Too many open files"):
        await run.submit(0, Assignment(0, ()))
