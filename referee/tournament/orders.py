"""What goes between the driver of a tournament and its workers: plain values that can be pickled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from referee.bots.isolation import Isolation
from referee.bots.manifest import BotSpec
from referee.clocks import Clocks
from referee.match import Fixture


@dataclass(frozen=True, slots=True, kw_only=True)
class GameOrder:
    """A game to be played."""

    fixture: Fixture
    bots: tuple[BotSpec, ...]
    """Seat 0 first."""
    opaque_id: str
    """The game's id as the bots see it."""
    seeds: tuple[int, ...]
    """For each seat's own random numbers."""
    names: tuple[str, ...]
    """Shown to the bots; empty unless the tournament shows names."""
    suspended: frozenset[str]
    """Names of bots that are not started any more."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Games of one lane, to be played by the worker that has it.

    Several are in flight together where every bot of theirs can hold several.
    """

    lane: int
    orders: tuple[GameOrder, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """What a worker process is told at its start."""

    cores: frozenset[int]
    """The CPU cores it and its bots are pinned to; empty for none."""
    clocks: Clocks
    max_processes: int
    """How many bot processes it keeps alive; the least recently used idle one is closed."""
    isolation: Isolation
    """What bots run under, as it was settled before."""
    folder: Path
    """Its own, where sockets and scratch folders go; short, since socket paths are limited."""
    parent_pid: int
    """The driver, without which the worker must not live."""
