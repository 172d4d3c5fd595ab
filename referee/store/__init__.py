"""Store leagues: bots, tournaments with their schedules and seeds, and every game.

Only this package uses a database. Other packages open a `League`. This module defines the values that
the methods of `League` take and return. All times are microseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

from dataclasses import dataclass

from referee.records import BotId


@dataclass(frozen=True, slots=True)
class StoredBot:
    """A version of a bot: one content of the bot's folder, with a version label."""

    name: str
    version: str
    """Label of the version in this league.

    It is the version in the manifest, for example 1.0. If another content has this label, it becomes `1.0+2`.
    """
    author: str
    language: str
    folder: str
    """The path of the folder that was submitted."""
    content_hash: str
    """SHA-256 of the content of the folder, in hexadecimal (`bots.snapshot`)."""
    added_at_us: int
    """Time of the submission."""
    checked_at_us: int | None = None
    """Time of the last passed check; None if there was none."""
    check_report: str | None = None
    """Report of the last passed check, as JSON."""
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
    """The configuration without the seed, as JSON."""
    seed: bytes
    """32 bytes; secret until the tournament is finished."""
    commitment: str
    """SHA-256 of the seed, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class StoredTournament(NewTournament):
    """A stored tournament."""

    games: int
    """Number of games in the schedule, including extensions."""
    stored: int
    """Number of games that were played and stored."""
    finished_at_us: int | None
    """When the last game outside extensions ended; None until all games outside extensions are played."""
    stopped_after: int | None
    """Number of rounds after which the tournament stopped early; None if it did not."""


@dataclass(frozen=True, slots=True)
class NewExtension:
    """Matches that are about to be added to a stored tournament."""

    created_at_us: int
    matches: int
    """Number of matches added at each table of each stage. If `Stage.balanced`, number added to the stage."""
    first_match: int
    """Number of the extension's first match. The extension ends before `first_match` of the next extension."""
    seed: bytes
    """32 bytes; secret until the games of the extension are played."""
    commitment: str
    """SHA-256 of the seed, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class StoredExtension(NewExtension):
    """A stored extension."""

    finished_at_us: int | None
    """When the last game of the extension ended; None until all of its games are played."""


@dataclass(frozen=True, slots=True)
class StoredGame:
    """A summary of a stored game."""

    game_id: str
    ruleset: str
    termination: str
    """Value of a `Termination`."""
    decisions: int
    """Number of moves."""
    started_at_us: int
    duration_us: int


def escape_nul(text: str) -> str:
    r"""Return `text` with each NUL character replaced by the four characters `\x00`.

    Text columns store this form, because PostgreSQL refuses NUL and many tools cut a text at NUL. Game
    records are stored as bytes, so they keep the text unchanged.
    """
    return text.replace("\0", r"\x00")


@dataclass(frozen=True, slots=True)
class StoredUsage:
    """CPU time and memory of a bot's processes, over all stored games in which they were measured."""

    bot: str
    """`name@version`."""
    games: int
    """Number of games with a measurement."""
    mean_cpu_us: float
    """Mean CPU time of a game."""
    max_cpu_us: int
    """CPU time of the game in which the bot used the most."""
    mean_peak_memory_kib: float
    max_peak_memory_kib: int
