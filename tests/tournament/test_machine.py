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
    monkeypatch.setattr(machine, "_ROUNDS", 1)
    counts = set()
    for _ in range(2):
        clock = iter([0.0, 1.0])
        monkeypatch.setattr(machine.time, "thread_time", lambda clock=clock: next(clock))
        counts.add(measure_speed())  # in one second: the number of decisions
    assert len(counts) == 1


def test_noise_is_the_use_of_the_cores_by_others(monkeypatch):
    monkeypatch.setattr(machine, "WINDOW_S", 0.0)
    monitor = MachineMonitor({0, 1})
    readings = iter([(10.0, 3.0, 1.0), (20.0, 18.0, 6.0), (30.0, 20.0, 16.0), (40.0, 60.0, 16.0)])
    monkeypatch.setattr(monitor, "_read", lambda: machine._Reading(*next(readings)))
    monitor.measure()
    assert monitor.measure().noise == 0.5  # of 20 s, the cores worked 15 s, of which 5 s here
    assert (
        monitor.measure().noise == 0.0
    )  # the counters of the system are less exact than those of a process
    assert monitor.measure().noise == 1.0


def test_work_of_this_process_and_its_children_is_its_own():
    before = machine._own_cpu_s()
    burn(0.3)
    subprocess.run([sys.executable, "-c", ENDS], check=True)
    with subprocess.Popen([sys.executable, "-c", LASTS], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        own = machine._own_cpu_s() - before
        child.kill()
    assert own >= 0.8


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
