"""Store leagues: bots, tournaments with their schedules and seeds, and every game.

Only this package uses a database. Other packages open a `League`. This module defines values that the methods
of `League` take and return; `records` and `result_columns` define the others. All points in time are in
microseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

from dataclasses import dataclass

from referee.errors import Cause
from referee.records import BotId, GameResult, Machine


@dataclass(frozen=True, slots=True)
class StoredBot:
    """A version of a bot: one content of the bot's folder, under one label.

    A person in a stored game is stored as a bot too. This bot has no folder, and is retired from the start.
    """

    name: str
    version: str
    """Label of the version in this league.

    Usually this is the version in the manifest, for example `1.0`. If the league already has a version `1.0`
    of the bot with another content, the label of the new version is `1.0+2`.
    """
    author: str
    language: str
    folder: str
    """The path of the folder that was submitted; empty for a person."""
    content_hash: str
    """SHA-256 of the content of the folder, in hexadecimal (`bots.snapshot`). All persons have the same hash."""
    added_at_us: int
    """Time of the submission."""
    checked_at_us: int | None = None
    """Time of the last check that the version passed; None if it has passed no check."""
    check_report: str | None = None
    """Report of the check at `checked_at_us`, as JSON; None if `checked_at_us` is None."""
    retired_at_us: int | None = None
    """Time when the version was retired; None if it is active."""

    @property
    def bot(self) -> BotId:
        """The name and version as the id that game records use."""
        return BotId(self.name, self.version)


@dataclass(frozen=True, slots=True)
class NewTournament:
    """A tournament that is about to be stored."""

    name: str
    created_at_us: int
    config: str
    """The configuration without the seed, as canonical JSON (RFC 8785)."""
    seed: bytes
    """32 bytes; secret until the tournament is finished."""
    commitment: str
    """SHA-256 of `terms`, in hexadecimal. It is published before the first game."""
    terms: str
    """A text with the SHA-256 of each thing that the commitment fixes; see `tournament/terms.py`."""


@dataclass(frozen=True, slots=True)
class StoredTournament(NewTournament):
    """A stored tournament."""

    games: int
    """Number of games in the schedule, including extensions."""
    stored: int
    """Number of games that were played and stored."""
    finished_at_us: int | None
    """When the last game ended; None until all games are played. Games of extensions do not count."""
    stopped_after: int | None
    """Number of rounds after which the tournament stopped early; None if it did not stop early."""


@dataclass(frozen=True, slots=True)
class NewExtension:
    """Matches that are about to be added to a stored tournament."""

    created_at_us: int
    matches: int
    """The number that is added to `Stage.matches` of each stage."""
    first_match: int
    """The first match of the extension, by its number in the tournament."""
    seed: bytes
    """32 bytes; secret until the games of the extension are played."""
    commitment: str
    """SHA-256 of `terms`, in hexadecimal. It is published before the first game of the extension."""
    terms: str
    """As in `NewTournament`."""


@dataclass(frozen=True, slots=True)
class StoredExtension(NewExtension):
    """A stored extension."""

    finished_at_us: int | None
    """When the last game of the extension ended; None until all of its games are played."""
    first_game: int | None
    """The first game of the extension, by its index in the schedule. None if the game is missing in a damaged database."""


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """How many games of a round are played. Rounds with the same number in several stages count as one round."""

    round: int
    """Round number inside a stage, from 1."""
    games: int
    """Number of scheduled games."""
    done: int
    """Number of stored games."""
    playing_us: int
    """Sum of the durations of the stored games."""


@dataclass(frozen=True, slots=True)
class StoredGame:
    """A summary of a stored game."""

    game_id: str
    ruleset: str
    termination: str
    """Value of a `Termination`."""
    decisions: int
    """Number of moves in the game."""
    started_at_us: int
    duration_us: int
    machine: Machine | None
    """The machine that played the game; None for a game outside tournaments."""


RECENT_S = 60
"""Longest period, in seconds, over which `StoredMachine.games_per_s` is computed."""


@dataclass(frozen=True, slots=True)
class StoredMachine:
    """A machine that has played games. Host and CPU together identify it."""

    key: int
    """The number of the machine in `ResultColumns.machine`."""
    host: str
    cpu: str
    games: int
    """The number of its games."""
    speed: float
    """The mean speed in its games; see `Machine`."""
    noise: float | None
    """The mean noise in its games with a known noise; see `Machine`. None if there is no such game."""
    games_per_s: float
    """How many of its games ended per second, in a period that is the same for all machines.

    `League.machines` takes the period from the games of one tournament, or of all tournaments. The period ends when the
    last of these games ended. It began `RECENT_S` seconds earlier, or when the first of these games began, if that was later.
    """
    last_us: int
    """When its last game ended."""


@dataclass(frozen=True, slots=True)
class HostFigures:
    """What the workers of one host of a cluster do in a run of a tournament."""

    host: str
    """The address of the host."""
    playing: int
    """Number of workers that have games to play."""
    idle: int
    """Number of workers that can play, but have no games at the moment."""
    lost: int
    """How many times a worker of the host was lost, failed, or had to be prepared again during the run."""
    games: int
    """Number of games that the host has played during the run."""


@dataclass(frozen=True, slots=True)
class StoredHost:
    """The newest stored figures of a host. They come from the last run of a tournament on a cluster."""

    figures: HostFigures
    began_at_us: int
    """When the run began."""
    noted_at_us: int
    """When the driver stored the figures. A running driver does so every few seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameChoice:
    """Which played games to list: those that fit every value that is not None."""

    tournament: str | None = None
    """Name of the tournament."""
    bot: str | None = None
    """A bot that played in the game: a name, for all versions, or `name@version`."""
    other: str | None = None
    """A second bot of the game, written like `bot`. It played in another seat than `bot`, but may be the same bot."""
    ruleset: str | None = None
    """Name of the ruleset."""
    cause: str | None = None
    """Value of a `Cause`; the game has a fault of this cause."""
    termination: str | None = None
    """Value of a `Termination`."""


@dataclass(frozen=True, slots=True)
class ListedGame:
    """A played game in a list of games."""

    result: GameResult
    summary: StoredGame


def escape_nul(text: str) -> str:
    r"""Return `text` with each NUL character replaced by the four characters `\x00`.

    The texts of a fault, and the texts in columns in which users search, are stored in this form, because PostgreSQL
    refuses NUL and many tools cut a text at NUL. Game records are stored as bytes and keep NUL characters.
    """
    return text.replace("\0", r"\x00")


@dataclass(frozen=True, slots=True)
class FaultCount:
    """How many faults of one cause a bot version had."""

    bot: str
    """`name@version`."""
    cause: Cause
    strikes: int
    forfeits: int
    games: int
    """Number of games in which the bot had such a fault."""


@dataclass(frozen=True, slots=True)
class StoredUsage:
    """CPU time and memory of a bot version, over all stored games in which the version was measured."""

    bot: str
    """`name@version`."""
    games: int
    """Number of these games. A game in which the version has two seats counts twice."""
    mean_cpu_us: float
    """Mean CPU time of a game."""
    max_cpu_us: int
    """Largest CPU time of a game."""
    mean_peak_memory_kib: float
    max_peak_memory_kib: int
