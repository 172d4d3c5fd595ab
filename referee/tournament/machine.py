"""Measure the machine of a worker: how fast it is, and how much of it others use."""

from __future__ import annotations

import os
import platform
import random
import time
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import psutil

from referee.records import Machine, host_name
from referee.rules.game import Game
from referee.rules.ruleset import RULESETS, full_deck, list_cards

WINDOW_S = 2.0
"""Noise is measured over windows of at least this many seconds, because each measurement takes some milliseconds."""
_PAUSE_S = 0.5
"""If no game is played for more than this many seconds, a new window begins before the next game, so that the pause does not count."""
_RUNS = 5
"""How often the speed is measured; the fastest run counts."""
_GAMES = 20
"""Number of games in a run."""
_PLAYERS = 4
_BUSY = (0, 1, 2, 5, 6, 7)
"""The columns of a core in /proc/stat that count as busy: user, nice, system, irq, softirq, and steal (other virtual machines)."""
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class _Reading(NamedTuple):
    """The CPU time that the cores and this worker had used up to one moment, in seconds."""

    at_s: float
    """The moment, by the monotonic clock."""
    busy_s: float | None
    """The sum of the busy times of the cores; time that the host gave to other virtual machines is busy too. None if the system
    does not report it."""
    own_s: dict[tuple[int, float], float]
    """The CPU time of this process and of each descendant, by process id and start time. It includes the CPU time of children that
    have ended, if the process has waited for them."""


class MachineMonitor:
    """Measures the machine on which this process and its bots play.

    Args:
        cores: the cores of this process and its bots; empty for all cores.
    """

    def __init__(self, cores: AbstractSet[int] = frozenset()) -> None:
        self._cores = frozenset(cores) or frozenset(os.sched_getaffinity(0))
        self._machine = Machine(
            host=host_name(), cpu=cpu_model(), speed=measure_speed(), noise=None
        )
        self._window = self._read()
        """The first reading of the present window."""
        self._active_s = self._window.at_s
        """When the last game ended."""
        self._is_first = True
        """True before the first call of `measure`."""

    @property
    def speed(self) -> int:
        """`Machine.speed`."""
        return self._machine.speed

    def begin(self) -> None:
        """Call this before games, so that a pause before them does not count."""
        if time.monotonic() - self._active_s > _PAUSE_S:
            self._window = self._read()

    def measure(self) -> Machine:
        """Return the machine. Call this after games.

        The noise is measured over a window. A window begins when the previous one ends, or at the first game after a pause.
        If the window is still shorter than `WINDOW_S`, it goes on and the noise stays as it was; only the first window may
        be shorter. The noise also stays as it was if the system does not report the busy time, or if a process of this worker
        ran when the window began and has ended since, because the CPU time of that process is unknown.
        """
        self._active_s = time.monotonic()
        if self._is_first or self._active_s - self._window.at_s >= WINDOW_S:
            self._is_first = False
            before, self._window = self._window, self._read()
            noise = self._noise(before, self._window)
            if noise is not None:
                self._machine = replace(self._machine, noise=noise)
        return self._machine

    def _noise(self, before: _Reading, now: _Reading) -> float | None:
        if before.busy_s is None or now.busy_s is None or before.own_s.keys() - now.own_s.keys():
            return None
        own_s = sum(used - before.own_s.get(key, 0.0) for key, used in now.own_s.items())
        others_s = now.busy_s - before.busy_s - own_s
        share = others_s / max(1e-9, (now.at_s - before.at_s) * len(self._cores))
        return round(min(1.0, max(0.0, share)), 3)

    def _read(self) -> _Reading:
        return _Reading(time.monotonic(), _busy_s(self._cores), _own_cpu_s())


def _busy_s(cores: AbstractSet[int]) -> float | None:
    """Return the busy time of cores; None if the system does not tell it for each of them."""
    busy: dict[str, float] = {}
    with suppress(OSError):
        for line in Path("/proc/stat").read_text().splitlines():
            name, *ticks = line.split()
            if name.startswith("cpu") and len(ticks) > max(_BUSY):
                busy[name] = sum(int(ticks[column]) for column in _BUSY) * _TICK_S
    names = [f"cpu{core}" for core in cores]
    return sum(busy[name] for name in names) if busy.keys() >= set(names) else None


def _own_cpu_s() -> dict[tuple[int, float], float]:
    """See `_Reading.own_s`."""
    own = psutil.Process()
    used = {}
    for process in (own, *own.children(recursive=True)):
        with suppress(psutil.Error):
            times = process.cpu_times()
            used[process.pid, process.create_time()] = (
                times.user + times.system + times.children_user + times.children_system
            )
    return used


def measure_speed() -> int:
    """Return how many decisions this process makes per second of CPU time in a fixed set of games, rounded to hundreds.

    The games are played in several runs. The fastest run counts, because other programs can only make a run slower.
    """
    return round(max(_measure_once() for _ in range(_RUNS)), -2)


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
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
