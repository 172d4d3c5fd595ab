"""Measure the machine of a worker: how fast it is, and how much of it others use."""

from __future__ import annotations

import os
import platform
import random
import socket
import time
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import psutil

from referee.records import Machine
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS, full_deck, list_cards

WINDOW_S = 2.0
"""The least seconds between two measurements of noise, because each takes some milliseconds. The first one may cover less time."""
_ROUNDS = 5
_GAMES = 20
_PLAYERS = 4
_IDLE = ("idle", "iowait", "guest", "guest_nice")
"""The fields of `psutil.cpu_times` that are not added to the busy time: the core is idle, or `user` and `nice` contain the time already."""


class _Reading(NamedTuple):
    """CPU time used until a moment, in seconds."""

    at_s: float
    """The moment, by the monotonic clock."""
    busy_s: float
    """The busy time of the cores, with the time that other virtual machines had them (steal time)."""
    own_s: float
    """The CPU time of this process and its descendants."""


class MachineMonitor:
    """Measures the machine on which this process and its bots play.

    Args:
        cores: the cores of this process and its bots; empty for all cores.
    """

    def __init__(self, cores: AbstractSet[int] = frozenset()) -> None:
        self._cores = frozenset(cores) or frozenset(os.sched_getaffinity(0))
        self._last = self._read()
        self._machine = Machine(
            host=socket.gethostname(), cpu=cpu_model(), speed=measure_speed(), noise=0.0
        )
        self._window_s = 0.0
        """The length of the window of the last measurement: 0 before the first measurement."""

    @property
    def speed(self) -> int:
        """`Machine.speed`."""
        return self._machine.speed

    def measure(self) -> Machine:
        """Return the machine with its noise. Without a new window of `WINDOW_S` seconds, the noise is that of the last window."""
        if self._window_s and time.monotonic() - self._last.at_s < WINDOW_S:
            return self._machine
        now = self._read()
        self._window_s = now.at_s - self._last.at_s
        others_s = (now.busy_s - self._last.busy_s) - (now.own_s - self._last.own_s)
        noise = others_s / (self._window_s * len(self._cores))
        self._last = now
        self._machine = replace(self._machine, noise=round(min(1.0, max(0.0, noise)), 3))
        return self._machine

    def _read(self) -> _Reading:
        times = psutil.cpu_times(percpu=True)
        busy_s = sum(
            sum(core) - sum(getattr(core, name, 0.0) for name in _IDLE)
            for number, core in enumerate(times)
            if number in self._cores
        )
        return _Reading(time.monotonic(), busy_s, _own_cpu_s())


def _own_cpu_s() -> float:
    """Return the CPU time of this process and its descendants, also of those that have ended and were waited for."""
    own = psutil.Process()
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def measure_speed() -> int:
    """Return the decisions per second of CPU time in a fixed set of games: the fastest of some rounds.

    Other programs can only make a round slower. The number is rounded to hundreds.
    """
    return round(max(_measure_once() for _ in range(_ROUNDS)), -2)


def _measure_once() -> int:
    ruleset = RULESETS["classic"]
    cards = list_cards(full_deck(ruleset))
    chance = random.Random(1)  # noqa: S311 - the games must be the same everywhere
    decisions, begin_s = 0, time.thread_time()
    for _ in range(_GAMES):
        game = Game(ruleset, _PLAYERS, tuple(chance.sample(cards, len(cards))))
        while (decision := game.decision) is not None:
            game.apply(decision.legal[int(chance.random() * len(decision.legal))])
            decisions += 1
    return round(decisions / (time.thread_time() - begin_s))


def cpu_model() -> str:
    """Return the model of the CPU, or its architecture if the system does not say more."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
