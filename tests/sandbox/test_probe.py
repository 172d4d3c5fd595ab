"""Tests that the probe notices what a program can reach."""

import asyncio
import ctypes
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
from referee.sandbox import Protection, State, probe, probe_programs
from referee.sandbox.probe import _hold_locks, _prepare_folder, _try_forbidden_acts
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


def test_locks_of_a_probe_stay_when_a_probe_that_began_before_it_ends(tmp_path):
    first, shared = tmp_path / "first", tmp_path / "shared"
    for file in (first, shared):
        file.touch()
    with ExitStack() as stack:
        with ExitStack() as other_probe:
            _hold_locks(other_probe, first)
            _hold_locks(stack, shared)
        script = f"from referee.sandbox import probe_programs; probe_programs._NOTICE_LIMIT_S = 0; print(*probe_programs._try_locks({str(shared)!r})[1], sep='\\n')"
        noticed = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.splitlines()
    assert [act for act in noticed if not act.startswith("notice by")] == [
        f"notice {how} on {name}"
        for name in ("a shared file", "/dev/null", "an eventfd")
        for how in ("flock", "fcntl")
    ]


def test_referee_that_writes_late_is_noticed(tmp_path):
    script = """
import os, subprocess, sys
from referee.sandbox import probe_programs

shared = sys.argv[1]
file = os.open(shared, os.O_RDONLY)
with subprocess.Popen(["sh", "-c", 'sleep 1; echo >> "$0"', shared]):
    print(probe_programs._notices_by_signal(file, shared))
    os.close(file)  # the writer waits for the end of the lease
"""
    shared = tmp_path / "shared"
    shared.touch()
    done = subprocess.run(
        [sys.executable, "-c", script, shared], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"


class Kernel:
    """Refuses all system calls but some."""

    def __init__(self, allowed=()):
        self.allowed = allowed

    def syscall(self, number, *_arguments):
        if number in self.allowed:
            return 0  # a call that succeeds does not change the error of the call before it
        ctypes.set_errno(errno.EPERM)
        return -1

    def unshare(self, _flags):
        return -1


@pytest.mark.parametrize("name", ["keyctl", "process_vm_readv"])
def test_a_system_call_that_succeeds_is_not_taken_for_a_refused_one(name, monkeypatch):
    calls = probe_programs._CALLS["x86_64"]
    monkeypatch.setattr(probe_programs.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(probe_programs, "_LIBC", Kernel())
    assert probe_programs._try_calls() == (len(calls) + 1, [])
    monkeypatch.setattr(probe_programs, "_LIBC", Kernel({calls[name]}))
    assert probe_programs._try_calls()[1] == [f"call {name}"]


def test_a_machine_without_a_filter_has_no_protection_of_system_calls(monkeypatch):
    monkeypatch.setattr(probe_programs.platform, "machine", lambda: "riscv64")
    monkeypatch.setattr(probe_programs, "_LIBC", Kernel())
    (reason,) = probe_programs._try_calls()[1]
    assert "no filter" in reason


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
