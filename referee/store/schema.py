"""Define the tables and views of a league's database.

This module changes no database. Only migrations create and change tables and views. A test checks that the migrations
make the tables and views of this module.

In this picture, `a ──< b` means that several rows of `b` can refer to one row of `a`:

    tournaments ──< matches ──< match_bots >── bots
         │             │                        │
         │             └──< games ──< seats >───┘
         │                    │
         │                    ├──< faults
         │                    ├─── records
         │                    │
         └────────────────< results >── machines

When a schedule is stored, each of its games gets a row in `games`. A game with a row in `results` has been played.
A free game is a game outside tournaments, for example one of `referee play --keep`. It has no match, and gets its row
in `games` only after it was played.

`match_bots` gives the k bots of a match the places 0 to k - 1. In the game with seating j, seat s has the bot at
place (j + s) mod k. A row of `faults` does not name the bot: find it in `seats`, by game and seat.

The tables `extensions` and `cluster_hosts` are not in the picture. They refer to `tournaments`. An extension has the
matches from number `first_match` up to the last match before the next extension. The newest extension has all matches
from its `first_match` on.

`matches.deal_id` is the deal of all games of a match. If it is null, each game has a deal of its own, `games.deal_id`.

`results.tournament_id` can be derived from the match of the game. It is stored so that a list of games is found fast.

The rows of `checkpoints` save computing time. Users can delete them without losing results. The views are for people
(`tournaments/README.md`); the referee does not read them.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

from referee.store import escape_nul

REVISION = "0005"
"""Id of the newest migration, which Alembic stores in the table `alembic_version`.

A database after this migration has `alembic_version` and the tables and views of this module, but no others.
"""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class _SearchedText(TypeDecorator[str]):
    """A text in a column in which users search.

    NUL characters are escaped when a text is stored or searched for, because PostgreSQL refuses NUL. So a search for a
    text with NUL does not fail, but finds nothing.
    """

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - part of the interface
        return None if value is None else escape_nul(value)


bots = Table(
    "bots",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", _SearchedText(32), nullable=False),
    Column("version", _SearchedText(40), nullable=False),
    Column("author", Text, nullable=False),
    Column("language", Text, nullable=False),
    Column("folder", Text, nullable=False),
    Column("content_hash", String(64), nullable=False),
    Column("added_at_us", BigInteger, nullable=False),
    Column("checked_at_us", BigInteger, nullable=True),
    Column("check_report", Text, nullable=True),
    Column("retired_at_us", BigInteger, nullable=True),
    UniqueConstraint("name", "version"),
    Index("ix_bots_content", "name", "content_hash", unique=True),
)

tournaments = Table(
    "tournaments",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", _SearchedText(64), nullable=False, unique=True),
    Column("created_at_us", BigInteger, nullable=False),
    Column("config", Text, nullable=False),
    Column("seed", LargeBinary, nullable=False),
    Column("commitment", String(64), nullable=False),
    Column("terms", Text, nullable=False),
    Column("finished_at_us", BigInteger, nullable=True),
    Column("stopped_after", Integer, nullable=True),
)

extensions = Table(
    "extensions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("tournament_id", ForeignKey("tournaments.id"), nullable=False, index=True),
    Column("created_at_us", BigInteger, nullable=False),
    Column("matches", Integer, nullable=False),
    Column("first_match", Integer, nullable=False),
    Column("seed", LargeBinary, nullable=False),
    Column("commitment", String(64), nullable=False),
    Column("terms", Text, nullable=False),
    Column("finished_at_us", BigInteger, nullable=True),
)

matches = Table(
    "matches",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("tournament_id", ForeignKey("tournaments.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("stage", SmallInteger, nullable=False),
    Column("round", Integer, nullable=False),
    Column("deal_id", Text, nullable=True),
    Index("ix_matches_number", "tournament_id", "number"),
)

match_bots = Table(
    "match_bots",
    metadata,
    Column("match_id", ForeignKey("matches.id"), primary_key=True),
    Column("place", SmallInteger, primary_key=True),
    Column("bot_id", ForeignKey("bots.id"), nullable=False),
    sqlite_with_rowid=False,
)

games = Table(
    "games",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", _SearchedText(80), nullable=False, unique=True),
    Column("match_id", ForeignKey("matches.id"), nullable=True),
    Column("position", Integer, nullable=False),
    Column("seating", SmallInteger, nullable=False),
    Column("lane", SmallInteger, nullable=False),
    Column("deal_id", Text, nullable=True),
    Index("ix_games_match_id", "match_id"),
)

machines = Table(
    "machines",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("host", Text, nullable=False),
    Column("cpu", Text, nullable=False),
    UniqueConstraint("host", "cpu"),
)

cluster_hosts = Table(
    "cluster_hosts",
    metadata,
    Column("tournament_id", ForeignKey("tournaments.id"), primary_key=True),
    Column("host", String(255), primary_key=True),
    Column("playing", Integer, nullable=False),
    Column("idle", Integer, nullable=False),
    Column("lost", Integer, nullable=False),
    Column("games", Integer, nullable=False),
    Column("began_at_us", BigInteger, nullable=False),
    Column("noted_at_us", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

results = Table(
    "results",
    metadata,
    Column("game_id", ForeignKey("games.id"), primary_key=True),
    Column("tournament_id", ForeignKey("tournaments.id"), nullable=True),
    Column("ruleset", _SearchedText(32), nullable=False),
    Column("termination", _SearchedText(16), nullable=False),
    Column("decisions", Integer, nullable=False),
    Column("started_at_us", BigInteger, nullable=False),
    Column("duration_us", BigInteger, nullable=False),
    Column("machine_id", ForeignKey("machines.id"), nullable=True),
    Column("speed", Integer, nullable=True),
    Column("noise", Double, nullable=True),
    # SQLite selects a page of `League.find_games` from this index without reading the table, unless the choice names a
    # bot or a cause.
    Index("ix_results_newest", "started_at_us", "tournament_id", "ruleset", "termination"),
)

records = Table(
    "records",
    metadata,
    Column("game_id", ForeignKey("games.id"), primary_key=True),
    Column("record", LargeBinary, nullable=False),
)

seats = Table(
    "seats",
    metadata,
    Column("game_id", ForeignKey("games.id"), primary_key=True),
    Column("seat", SmallInteger, primary_key=True),
    Column("bot_id", ForeignKey("bots.id"), nullable=False),
    Column("score", SmallInteger, nullable=False),
    Column("rank", SmallInteger, nullable=False),
    Column("forfeited", Boolean, nullable=False),
    Column("elapsed_us", BigInteger, nullable=False),
    Column("cpu_us", BigInteger, nullable=True),
    Column("peak_memory_kib", BigInteger, nullable=True),
    Index("ix_seats_bot_id", "bot_id", "game_id"),
    sqlite_with_rowid=False,
)

faults = Table(
    "faults",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("game_id", ForeignKey("games.id"), nullable=False, index=True),
    Column("seat", SmallInteger, nullable=False),
    Column("cause", _SearchedText(32), nullable=False),
    Column("forfeit", Boolean, nullable=False),
    Column("move", Integer, nullable=False),
    Column("detail", Text, nullable=False),
    Column("exit_code", Integer, nullable=True),
    Column("signal", String(16), nullable=True),
    Column("elapsed_us", BigInteger, nullable=False),
    Column("stderr_tail", Text, nullable=False),
    Index("ix_faults_cause", "cause", "game_id"),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("content", LargeBinary, nullable=False),
)

_OF_GAME = ("game", "tournament", "stage", "round", "match", "ruleset")
VIEWS = {
    "played_games": (
        *_OF_GAME,
        "seats",
        "termination",
        "decisions",
        "started_at",
        "duration_s",
        "host",
        "cpu",
        "speed",
        "noise",
    ),
    "played_seats": (
        *_OF_GAME,
        "seat",
        "bot",
        "score",
        "rank",
        "forfeited",
        "won",
        "elapsed_s",
        "cpu_s",
        "peak_memory_mib",
    ),
    "charged_faults": (
        *_OF_GAME,
        "seat",
        "bot",
        "cause",
        "forfeit",
        "move",
        "detail",
        "exit_code",
        "signal",
        "elapsed_s",
        "stderr_tail",
    ),
}
"""The names of the columns of each view, from left to right."""
