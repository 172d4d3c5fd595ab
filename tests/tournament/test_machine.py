"""Test how a worker measures its machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from referee.tournament import machine
from referee.tournament.machine import MachineMonitor, cpu_model, measure_speed

BURN = """
import time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
"""
ENDS = f"{BURN}burn(0.3)"
LASTS = f"{BURN}burn(0.3)\nprint(flush=True)\ntime.sleep(60)"
BURNS = f"{BURN}import os, sys\nos.sched_setaffinity(0, {{int(sys.argv[1])}})\nprint(flush=True)\nburn(60)"
MEASURES = """
import sys, time
from referee.tournament.machine import WINDOW_S, MachineMonitor
monitor = MachineMonitor({int(sys.argv[1])})
monitor.measure()
time.sleep(WINDOW_S + 0.1)
print(monitor.measure().noise)
"""


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_speed_is_a_plausible_number_of_decisions():
    assert 5_000 < measure_speed() < 5_000_000


def test_fixed_games_are_the_same_each_time(monkeypatch):
    monkeypatch.setattr(machine, "_RUNS", 1)
    counts = set()
    for _ in range(2):
        clock = iter([0.0, 1.0])
        monkeypatch.setattr(machine.time, "thread_time", lambda clock=clock: next(clock))
        counts.add(measure_speed())  # in one second: the number of decisions
    assert len(counts) == 1


@pytest.fixture
def monitor(monkeypatch):
    """Return a function that makes a monitor of two cores with given readings: the moment, the busy time, and own CPU times by name."""
    monkeypatch.setattr(machine, "measure_speed", lambda: 100_000)

    def monitor(*readings):
        left = list(readings)
        made = iter(machine._Reading(*reading) for reading in readings)
        monkeypatch.setattr(MachineMonitor, "_read", lambda _: left.pop(0) and next(made))
        monkeypatch.setattr(machine.time, "monotonic", lambda: left[0][0] if left else 1e9)
        return MachineMonitor({0, 1})

    return monitor


def test_noise_is_the_use_of_the_cores_by_others(monitor):
    found = monitor(
        (10.0, 3.0, {"a": 1.0}),
        (20.0, 18.0, {"a": 4.0, "new": 2.0}),  # of 20 s, the cores worked 15 s, of which 5 s here
        (30.0, 20.0, {"a": 14.0, "new": 2.0}),  # the counters of the system are less exact
        (40.0, 60.0, {"a": 14.0, "new": 2.0}),
    )
    assert [found.measure().noise for _ in range(3)] == [0.5, 0.0, 1.0]


def test_window_in_which_a_process_has_ended_tells_nothing(monitor):
    found = monitor(
        (10.0, 0.0, {"a": 0.0, "bot": 5.0}),
        (20.0, 10.0, {"a": 0.0, "bot": 10.0}),
        (30.0, 20.0, {"a": 0.0}),  # what the bot has used is unknown
        (40.0, 22.0, {"a": 0.0}),
    )
    assert [found.measure().noise for _ in range(3)] == [0.25, 0.25, 0.1]


def test_pause_between_games_does_not_count(monitor):
    found = monitor((0.0, 0.0, {}), (10.0, 0.0, {}), (310.0, 0.0, {}), (320.0, 10.0, {}))
    found.measure()
    found.begin()
    assert found.measure().noise == 0.5


def test_system_that_does_not_tell_gives_no_noise(monitor):
    found = monitor((0.0, None, {}), (10.0, None, {}), (20.0, 1.0, {}), (30.0, 11.0, {}))
    assert [found.measure().noise for _ in range(3)] == [None, None, 0.5]
    assert machine._busy_s({0, 9999}) is None
    assert machine._busy_s(os.sched_getaffinity(0)) > 0


@pytest.mark.extended("burns CPU time")
def test_work_of_this_process_and_its_children_is_its_own():
    before = sum(machine._own_cpu_s().values())
    burn(0.3)
    subprocess.run([sys.executable, "-c", ENDS], check=True)
    with subprocess.Popen([sys.executable, "-c", LASTS], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        own = sum(machine._own_cpu_s().values()) - before
        child.kill()
    assert own >= 0.8


@pytest.mark.extended("burns CPU time")
def test_work_of_another_program_is_noise():
    core = str(max(os.sched_getaffinity(0)))
    with subprocess.Popen([sys.executable, "-c", BURNS, core], stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        done = subprocess.run(  # in a process that has not started the other program
            [sys.executable, "-c", MEASURES, core], capture_output=True, text=True, check=True
        )
        other.kill()
    assert float(done.stdout) > 0.3


def test_window_that_is_too_short_keeps_the_noise(monkeypatch):
    monitor = MachineMonitor()
    first = monitor.measure()
    assert 0 <= first.noise <= 1
    monkeypatch.setattr(monitor, "_read", lambda: pytest.fail("measured again"))
    assert monitor.measure() == first


def test_machine_is_named():
    found = MachineMonitor().measure()
    assert found.host == os.uname().nodename
    assert found.cpu == cpu_model() != ""
