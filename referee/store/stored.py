"""What goes into the store and comes out: frozen values that know no database."""

from __future__ import annotations

from dataclasses import dataclass

from referee.records import BotId


@dataclass(frozen=True, slots=True)
class StoredBot:
    """A version of a bot: one content of its folder."""

    name: str
    version: str
    """Its label in this league: the manifest's, or `1.0+2` for the second content that says 1.0."""
    author: str
    language: str
    folder: str
    """Where it came from."""
    content_hash: str
    """SHA-256 of the folder's content, in hexadecimal (`bots.snapshot`)."""
    added_at_us: int
    """When it came. Microseconds since 1970-01-01 UTC, as all times here."""
    checked_at_us: int | None = None
    """When it passed the check; None: never checked."""
    check_report: str | None = None
    """What the check said then, as JSON."""
    retired_at_us: int | None = None
    """When it was retired; None: it plays."""

    @property
    def bot(self) -> BotId:
        """Its identity in records."""
        return BotId(self.name, self.version)


@dataclass(frozen=True, slots=True)
class NewTournament:
    """A tournament to be stored."""

    name: str
    created_at_us: int
    """Microseconds since 1970-01-01 UTC."""
    config: str
    """All of its configuration but the seed, as JSON."""
    seed: bytes
    """32 bytes, secret until the tournament is finished."""
    commitment: str
    """SHA-256 of the seed, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class StoredTournament(NewTournament):
    """A stored tournament."""

    games: int
    """In its schedule, with those of its extensions."""
    stored: int
    """Played and stored."""
    finished_at_us: int | None
    """When its last missing game had been played; None: there has always been one missing. Games of
    extensions do not count."""
    stopped_after: int | None
    """After so many rounds its table was settled, and the rest was dropped; None: it was not."""


@dataclass(frozen=True, slots=True)
class NewExtension:
    """Matches to be added to a stored tournament."""

    created_at_us: int
    matches: int
    """More at each table, or in each stage of a balanced choice."""
    first_match: int
    """The number of its first match; it has all until the next extension begins."""
    seed: bytes
    """32 bytes, secret until its games are played."""
    commitment: str
    """SHA-256 of the seed, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class StoredExtension(NewExtension):
    """A stored extension."""

    finished_at_us: int | None
    """When its last missing game had been played; None: there has always been one missing."""


@dataclass(frozen=True, slots=True)
class StoredGame:
    """A stored game, in short."""

    game_id: str
    ruleset: str
    termination: str
    decisions: int
    started_at_us: int
    duration_us: int


def escape_nul(text: str) -> str:
    r"""A text as tables keep it: without NUL, which PostgreSQL refuses, and most tools cut at.

    It is written `\x00`, as control characters in what a bot wrote to standard error are. Records
    keep texts as they are.
    """
    return text.replace("\0", r"\x00")


@dataclass(frozen=True, slots=True)
class StoredUsage:
    """What the processes of a bot took of the machine, over all stored games where that was measured."""

    bot: str
    """`name@version`."""
    games: int
    mean_cpu_us: float
    """A game."""
    max_cpu_us: int
    mean_peak_memory_kib: float
    max_peak_memory_kib: int
