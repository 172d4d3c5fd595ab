"""Control when the processes of a program get a core: like all other processes, only if a core is idle, or never.

    scheduling   with a cgroup that can do it   otherwise
    IDLE         `cpu.idle`                     as STOPPED, but no search follows
    STOPPED      `cgroup.freeze`                SIGSTOP to the process group and to all other known processes, and `cpu.idle`
                                                if the cgroup has it; soon after that, a search

SIGSTOP reaches a process outside the group only if a search of `Scheduler.refresh` has found it. `cgroup.freeze` (cgroup
version 2) stops all processes, also new ones. The freezer of cgroup version 1 is not used. Its frozen processes survive
SIGKILL, so a killed referee would leave them behind.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum
from pathlib import Path

from referee.sandbox.cgroups import Cgroup

SEARCH_DELAY_S = 0.01
"""Seconds between `STOPPED` and the search for the processes of the tree. Usually the bot's next game begins earlier. Then
the search is cancelled, which saves 0.25 ms for each bot and game."""


class Scheduling(Enum):
    """When the processes of a program get a core."""

    NORMAL = "normal"
    """They share the cores with all other processes."""
    IDLE = "idle"
    """They get a core only if no other process wants it. Without `cpu.idle` they never get one."""
    STOPPED = "stopped"
    """They never get a core."""


class Scheduler:
    """Applies a `Scheduling` to the process tree of one program.

    Args:
        cgroup: the cgroup of the program; None if the program runs without a cgroup.
        find_members: searches for the processes of the tree, and returns their pids.
    """

    def __init__(self, cgroup: Cgroup | None, find_members: Callable[[], Iterable[int]]) -> None:
        idle_file = None if cgroup is None else cgroup.find_file("cpu.idle")
        freeze_file = None if cgroup is None else cgroup.find_file("cgroup.freeze")
        self._idle = None if idle_file is None else _Switch(idle_file)
        self._freeze = None if freeze_file is None else _Switch(freeze_file)
        self._find_members = find_members
        self.group: int | None = None
        """The process group of the program; None before the program runs, and after `close`."""
        self._others: list[int] = []
        """A pidfd for each known process of the tree except the leader of the group. Unlike a pid, it never means another
        process. Processes in the group are included, because they may leave it."""
        self._wanted = Scheduling.NORMAL
        self._override: Scheduling | None = None
        self._current = Scheduling.NORMAL
        self._is_idle = False
        self._is_stopped = False
        self._search: asyncio.TimerHandle | None = None
        """The timer of the search after `STOPPED`; None if no search is planned."""

    @property
    def reaches_all(self) -> bool:
        """Whether the kernel stops all processes of the tree, also those that no search has found."""
        return self._freeze is not None

    def schedule(self, scheduling: Scheduling) -> None:
        """Apply a scheduling. A new program has `NORMAL`.

        A call without a change does nothing. A change takes some microseconds. Without `cgroup.freeze`, a process that
        has left the process group runs on after `STOPPED` if no earlier search has found it. The next search comes after
        `SEARCH_DELAY_S`.
        """
        self._wanted = scheduling
        self._apply(self._override or scheduling)

    def override(self, scheduling: Scheduling | None) -> None:
        """Force this scheduling, and ignore `schedule`. With None, return to the last scheduling given to `schedule`.

        With `STOPPED`, search for the processes of the tree at once, without the delay.
        """
        self._override = scheduling
        self._apply(scheduling or self._wanted)
        if scheduling is Scheduling.STOPPED:
            self.refresh()

    def _apply(self, scheduling: Scheduling) -> None:
        if scheduling is self._current or self.group is None:
            return
        self._current = scheduling
        idle = scheduling is Scheduling.IDLE and self._idle is not None
        stopped = scheduling is not Scheduling.NORMAL and not idle
        if stopped and not self._is_stopped:
            self._stop(stopped=True)
        self._cancel_search()
        if scheduling is Scheduling.STOPPED and not self.reaches_all:
            self._search = asyncio.get_running_loop().call_later(SEARCH_DELAY_S, self.refresh)
        if stopped and not self.reaches_all:
            idle = True  # `cpu.idle` also applies to the processes that SIGSTOP does not reach
        if self._idle is not None and idle is not self._is_idle:
            self._is_idle = idle
            self._idle.set(on=idle)
        if self._is_stopped and not stopped:
            self._stop(stopped=False)

    def refresh(self) -> None:
        """Search for the processes of the tree, and stop new ones too if the program is stopped.

        Call this now and then; a search for each request would be too expensive. With `cgroup.freeze` it does nothing.
        """
        self._cancel_search()
        if self._freeze is None and self.group is not None:
            self._find_others()
            if self._is_stopped:
                self._send(signal.SIGSTOP)

    def close(self) -> None:
        """Thaw the cgroup, end `cpu.idle`, and close all files. Call this after the kill, before the cgroup is removed."""
        self.group = None  # from now on, another process group may have this number
        self._cancel_search()
        for switch in (self._freeze, self._idle):
            if switch is not None:
                switch.close()
        self._forget_others()

    def _cancel_search(self) -> None:
        if self._search is not None:
            self._search.cancel()
            self._search = None

    def _stop(self, *, stopped: bool) -> None:
        self._is_stopped = stopped
        if self._freeze is not None:
            self._freeze.set(on=stopped)
        else:
            self._send(signal.SIGSTOP if stopped else signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        assert self.group is not None  # noqa: S101 - the callers check it
        for other in self._others:
            with suppress(OSError):
                signal.pidfd_send_signal(other, number)
        with suppress(OSError):
            os.killpg(self.group, number)

    def _find_others(self) -> None:
        self._forget_others()
        opened: dict[int, int] = {}
        for pid in self._find_members():
            if pid != self.group:
                with suppress(OSError):
                    opened[pid] = os.pidfd_open(pid)
        if opened:
            # Search again: if a process of the tree ended before `pidfd_open`, its pid may already have been reused. Then the
            # pidfd means a process outside of the tree.
            members = set(self._find_members())
            for pid, descriptor in opened.items():
                if pid in members:
                    self._others.append(descriptor)
                else:
                    os.close(descriptor)

    def _forget_others(self) -> None:
        for descriptor in self._others:
            os.close(descriptor)
        self._others = []


class _Switch:
    """A file of a cgroup that contains 0 or 1. It stays open, because a write then takes 3 µs and not 15."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._descriptor = -1

    def set(self, *, on: bool) -> None:
        """Write 1 or 0. Do nothing if the cgroup is gone."""
        with suppress(OSError):
            if self._descriptor < 0:
                self._descriptor = os.open(self._file, os.O_WRONLY)
            os.pwrite(self._descriptor, b"1" if on else b"0", 0)

    def close(self) -> None:
        """Write 0 and close the file."""
        if self._descriptor >= 0:
            self.set(on=False)
            os.close(self._descriptor)
            self._descriptor = -1
