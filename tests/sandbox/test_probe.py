"""Tests that the probe notices what a program can reach."""

import asyncio
import errno
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from programs import LONG_TEXTS, little_memory

from referee.errors import Shortage
from referee.sandbox import Protection, State, probe
from referee.sandbox.probe import _prepare_folder, _try_forbidden_acts
from referee.sandbox.process_group import ProcessGroupLauncher


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may trace a process that is no child")
async def test_probe_sees_that_signals_and_tracers_reach_the_referee():
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _prepare_folder(folder)
        results = await _try_forbidden_acts(ProcessGroupLauncher(), folder, stack)
    assert "signal the referee" in results[Protection.PROCESS_VIEW].reason
    assert "trace the referee" in results[Protection.PTRACE].reason


@pytest.mark.parametrize(
    ("shares", "state"),
    [
        ([0.01], State.ON),
        ([0.4, 0.9, 0.01], State.ON),  # other programs wanted the core
        ([0.5] * probe._COMPETITIONS, State.PARTIAL),
    ],
)
async def test_program_that_once_leaves_its_core_does_so_by_the_scheduler(
    monkeypatch, shares, state
):
    left = iter(shares)
    monkeypatch.setattr(probe, "_compete", lambda _pids: next(left))
    scheduler = SimpleNamespace(schedule=lambda _how: None, reaches_all=True)
    program = SimpleNamespace(scheduler=scheduler, busy_ns=lambda: None)
    result = await probe._try_stopping(program, "no process has this mark")
    assert result.state is state
    assert list(left) == []


def test_marked_processes_are_found_by_the_beginning_of_their_arguments():
    marker = secrets.token_hex(8)
    # `read` waits in the shell itself: a new child process would have the same arguments for a moment
    command = ["sh", "-c", "echo up; read line", marker, *LONG_TEXTS]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    ) as run:
        run.stdout.readline()
        try:
            with little_memory():
                found = [
                    probe._marked_pids(marker),
                    probe._marked_pids(marker[:-1]),
                    probe._marked_pids(marker, whole=True),
                    probe._marked_pids(marker[:-1], whole=True),
                ]
        finally:
            os.killpg(run.pid, signal.SIGKILL)
    assert found == [{run.pid}, {run.pid}, {run.pid}, set()]


def test_bystander_dies_with_the_process_that_probes():
    bystander = [sys.executable, "-I", "-S", str(probe._PROGRAMS), "bystander"]
    parent = f"import subprocess, time; print(subprocess.Popen({bystander!r}).pid, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as run:
        pid = int(run.stdout.readline())
        assert run.stdout.readline() == "ready\n"
        process = psutil.Process(pid)
        run.kill()
        process.wait(60)
    assert not psutil.pid_exists(pid)


async def run_out_of_time(*_arguments):
    await asyncio.sleep(60)


async def run_out_of_descriptors(*_arguments):
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@pytest.mark.parametrize(
    ("acts", "reason"),
    [
        (run_out_of_time, "the tests took longer than 0.01 s"),
        (run_out_of_descriptors, "Too many open files"),
    ],
)
async def test_probe_without_time_or_descriptors_reports_a_shortage(monkeypatch, acts, reason):
    monkeypatch.setattr(probe, "_try_forbidden_acts", acts)
    monkeypatch.setattr(probe, "_PROBE_LIMIT_S", 0.01)
    with pytest.raises(Shortage, match=reason):
        await probe.probe(ProcessGroupLauncher())
