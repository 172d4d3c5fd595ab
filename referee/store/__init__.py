"""Store leagues: bots, tournaments with their schedules and seeds, and every game.

Only this package uses a database. Other packages open a `League`. This module defines the values that a league
takes and returns. All times are microseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

from dataclasses import dataclass

from referee.records import BotId


@dataclass(frozen=True, slots=True)
class StoredBot:
    """A version of a bot: one content of its folder, with a label of its own."""

    name: str
    version: str
    """Label of the version in this league.

    It is the version in the manifest, or `1.0+2` for the second content whose manifest says 1.0.
    """
    author: str
    language: str
    folder: str
    """The folder that was submitted."""
    content_hash: str
    """SHA-256 of the content of the folder, in hexadecimal (`bots.snapshot`)."""
    added_at_us: int
    """Time of the submission."""
    checked_at_us: int | None = None
    """Time of the last passed check; None if there was none."""
    check_report: str | None = None
    """Report of that check, as JSON."""
    retired_at_us: int | None = None
    """Time when the version was retired; None if it is active."""

    @property
    def bot(self) -> BotId:
        """The id that records use."""
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
    """When the tournament was first complete, without its extensions; None until then."""
    stopped_after: int | None
    """Number of rounds after which the tournament stopped early; None if it did not."""


@dataclass(frozen=True, slots=True)
class NewExtension:
    """Matches that are about to be added to a stored tournament."""

    created_at_us: int
    matches: int
    """Number of matches added at each table, or to each stage of a balanced choice."""
    first_match: int
    """Number of its first match. It has all matches up to the first one of the next extension."""
    seed: bytes
    """32 bytes; secret until its games are played."""
    commitment: str
    """SHA-256 of the seed, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class StoredExtension(NewExtension):
    """A stored extension."""

    finished_at_us: int | None
    """When the extension was first complete; None until then."""


@dataclass(frozen=True, slots=True)
class StoredGame:
    """A summary of a stored game."""

    game_id: str
    ruleset: str
    termination: str
    decisions: int
    """Number of moves."""
    started_at_us: int
    duration_us: int


def escape_nul(text: str) -> str:
    r"""Return the text with NUL written as `\x00`, as tables store it; records keep texts unchanged.

    PostgreSQL refuses NUL, and many tools cut a text there.
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
    """CPU time of the game that used most."""
    mean_peak_memory_kib: float
    max_peak_memory_kib: int
