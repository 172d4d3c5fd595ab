"""Create the tables and views of a league.

As long as no version has a tag, a newer schema changes this migration and gives it a new number. Later, never
change a migration of a tagged version: a newer schema gets a migration of its own.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = None


_STARTED = {
    "sqlite": "strftime('%Y-%m-%d %H:%M:%S', results.started_at_us / 1000000, 'unixepoch')",
    "postgresql": (
        "to_char(to_timestamp(results.started_at_us / 1000000) AT TIME ZONE 'UTC',"
        " 'YYYY-MM-DD HH24:MI:SS')"
    ),
}
_GAME = """
    games.name AS game,
    tournaments.name AS tournament,
    matches.stage AS stage,
    matches.round AS round,
    matches.number AS "match",
    results.ruleset AS ruleset,
    """
_JOINED = """
    results
    JOIN games ON games.id = results.game_id
    LEFT JOIN matches ON matches.id = games.match_id
    LEFT JOIN tournaments ON tournaments.id = matches.tournament_id
    """
_BOT = "bots.name || '@' || bots.version AS bot"


def upgrade() -> None:
    """Create all tables, then the views."""
    _create_bots_and_tournaments()
    _create_schedules()
    _create_played_games()
    _create_checkpoints()
    _create_views()


def _create_bots_and_tournaments() -> None:
    op.create_table(
        "bots",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("version", sa.String(length=40), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.String(length=64), nullable=False),
        sa.Column("added_at_us", sa.BigInteger(), nullable=False),
        sa.Column("checked_at_us", sa.BigInteger(), nullable=True),
        sa.Column("check_report", sa.Text(), nullable=True),
        sa.Column("retired_at_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bots")),
        sa.UniqueConstraint("name", "version", name=op.f("uq_bots_name")),
    )
    op.create_index("ix_bots_content", "bots", ["name", "content_hash"], unique=True)
    op.create_table(
        "tournaments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("created_at_us", sa.BigInteger(), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("seed", sa.LargeBinary(), nullable=False),
        sa.Column("commitment", sa.String(length=64), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.Column("finished_at_us", sa.BigInteger(), nullable=True),
        sa.Column("stopped_after", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tournaments")),
        sa.UniqueConstraint("name", name=op.f("uq_tournaments_name")),
    )
    op.create_table(
        "extensions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("tournament_id", sa.Integer(), nullable=False),
        sa.Column("created_at_us", sa.BigInteger(), nullable=False),
        sa.Column("matches", sa.Integer(), nullable=False),
        sa.Column("first_match", sa.Integer(), nullable=False),
        sa.Column("seed", sa.LargeBinary(), nullable=False),
        sa.Column("commitment", sa.String(length=64), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.Column("finished_at_us", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tournament_id"],
            ["tournaments.id"],
            name=op.f("fk_extensions_tournament_id_tournaments"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_extensions")),
    )
    op.create_index(
        op.f("ix_extensions_tournament_id"), "extensions", ["tournament_id"], unique=False
    )


def _create_schedules() -> None:
    op.create_table(
        "matches",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("tournament_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("stage", sa.SmallInteger(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("deal_id", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tournament_id"], ["tournaments.id"], name=op.f("fk_matches_tournament_id_tournaments")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_matches")),
    )
    op.create_index("ix_matches_number", "matches", ["tournament_id", "number"], unique=False)
    op.create_table(
        "match_bots",
        sa.Column("match_id", sa.Integer(), nullable=False),
        sa.Column("place", sa.SmallInteger(), nullable=False),
        sa.Column("bot_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["bot_id"], ["bots.id"], name=op.f("fk_match_bots_bot_id_bots")),
        sa.ForeignKeyConstraint(
            ["match_id"], ["matches.id"], name=op.f("fk_match_bots_match_id_matches")
        ),
        sa.PrimaryKeyConstraint("match_id", "place", name=op.f("pk_match_bots")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "games",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("match_id", sa.Integer(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("seating", sa.SmallInteger(), nullable=False),
        sa.Column("lane", sa.SmallInteger(), nullable=False),
        sa.Column("deal_id", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["match_id"], ["matches.id"], name=op.f("fk_games_match_id_matches")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_games")),
        sa.UniqueConstraint("name", name=op.f("uq_games_name")),
    )
    op.create_index("ix_games_match_id", "games", ["match_id"], unique=False)


def _create_played_games() -> None:
    op.create_table(
        "machines",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("cpu", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_machines")),
        sa.UniqueConstraint("host", "cpu", name=op.f("uq_machines_host")),
    )
    op.create_table(
        "cluster_hosts",
        sa.Column("tournament_id", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("playing", sa.Integer(), nullable=False),
        sa.Column("idle", sa.Integer(), nullable=False),
        sa.Column("lost", sa.Integer(), nullable=False),
        sa.Column("games", sa.Integer(), nullable=False),
        sa.Column("began_at_us", sa.BigInteger(), nullable=False),
        sa.Column("noted_at_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tournament_id"],
            ["tournaments.id"],
            name=op.f("fk_cluster_hosts_tournament_id_tournaments"),
        ),
        sa.PrimaryKeyConstraint("tournament_id", "host", name=op.f("pk_cluster_hosts")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "results",
        sa.Column("game_id", sa.Integer(), nullable=False),
        sa.Column("tournament_id", sa.Integer(), nullable=True),
        sa.Column("ruleset", sa.String(length=32), nullable=False),
        sa.Column("termination", sa.String(length=16), nullable=False),
        sa.Column("decisions", sa.Integer(), nullable=False),
        sa.Column("started_at_us", sa.BigInteger(), nullable=False),
        sa.Column("duration_us", sa.BigInteger(), nullable=False),
        sa.Column("machine_id", sa.Integer(), nullable=True),
        sa.Column("speed", sa.Integer(), nullable=True),
        sa.Column("noise", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["game_id"], ["games.id"], name=op.f("fk_results_game_id_games")),
        sa.ForeignKeyConstraint(
            ["machine_id"], ["machines.id"], name=op.f("fk_results_machine_id_machines")
        ),
        sa.ForeignKeyConstraint(
            ["tournament_id"], ["tournaments.id"], name=op.f("fk_results_tournament_id_tournaments")
        ),
        sa.PrimaryKeyConstraint("game_id", name=op.f("pk_results")),
    )
    op.create_index(
        "ix_results_newest", "results", ["started_at_us", "tournament_id", "ruleset", "termination"]
    )
    op.create_table(
        "records",
        sa.Column("game_id", sa.Integer(), nullable=False),
        sa.Column("record", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["game_id"], ["games.id"], name=op.f("fk_records_game_id_games")),
        sa.PrimaryKeyConstraint("game_id", name=op.f("pk_records")),
    )
    op.create_table(
        "seats",
        sa.Column("game_id", sa.Integer(), nullable=False),
        sa.Column("seat", sa.SmallInteger(), nullable=False),
        sa.Column("bot_id", sa.Integer(), nullable=False),
        sa.Column("score", sa.SmallInteger(), nullable=False),
        sa.Column("rank", sa.SmallInteger(), nullable=False),
        sa.Column("forfeited", sa.Boolean(), nullable=False),
        sa.Column("elapsed_us", sa.BigInteger(), nullable=False),
        sa.Column("cpu_us", sa.BigInteger(), nullable=True),
        sa.Column("peak_memory_kib", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["bot_id"], ["bots.id"], name=op.f("fk_seats_bot_id_bots")),
        sa.ForeignKeyConstraint(["game_id"], ["games.id"], name=op.f("fk_seats_game_id_games")),
        sa.PrimaryKeyConstraint("game_id", "seat", name=op.f("pk_seats")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_seats_bot_id", "seats", ["bot_id", "game_id"])
    op.create_table(
        "faults",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("game_id", sa.Integer(), nullable=False),
        sa.Column("seat", sa.SmallInteger(), nullable=False),
        sa.Column("cause", sa.String(length=32), nullable=False),
        sa.Column("forfeit", sa.Boolean(), nullable=False),
        sa.Column("move", sa.Integer(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("signal", sa.String(length=16), nullable=True),
        sa.Column("elapsed_us", sa.BigInteger(), nullable=False),
        sa.Column("stderr_tail", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["game_id"], ["games.id"], name=op.f("fk_faults_game_id_games")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_faults")),
    )
    op.create_index(op.f("ix_faults_game_id"), "faults", ["game_id"], unique=False)
    op.create_index("ix_faults_cause", "faults", ["cause", "game_id"])


def _create_checkpoints() -> None:
    op.create_table(
        "checkpoints",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_checkpoints")),
    )


def _create_views() -> None:
    """Create the views, which are for people."""
    _create_view(
        "played_games",
        "(SELECT count(*) FROM seats WHERE seats.game_id = results.game_id) AS seats",
        "results.termination AS termination",
        "results.decisions AS decisions",
        f"{_STARTED[op.get_bind().dialect.name]} AS started_at",
        f"{_seconds('results.duration_us')} AS duration_s",
        "machines.host AS host",
        "machines.cpu AS cpu",
        "results.speed AS speed",
        "results.noise AS noise",
        joined="LEFT JOIN machines ON machines.id = results.machine_id",
    )
    _create_view(
        "played_seats",
        "seats.seat AS seat",
        _BOT,
        "seats.score AS score",
        'seats.rank AS "rank"',
        "seats.forfeited AS forfeited",
        "seats.rank = 1 AS won",
        f"{_seconds('seats.elapsed_us')} AS elapsed_s",
        f"{_seconds('seats.cpu_us')} AS cpu_s",
        "CAST(seats.peak_memory_kib AS DOUBLE PRECISION) / 1024 AS peak_memory_mib",
        joined="JOIN seats ON seats.game_id = results.game_id JOIN bots ON bots.id = seats.bot_id",
    )
    _create_view(
        "charged_faults",
        "faults.seat AS seat",
        _BOT,
        "faults.cause AS cause",
        "faults.forfeit AS forfeit",
        "faults.move AS move",
        "faults.detail AS detail",
        "faults.exit_code AS exit_code",
        "faults.signal AS signal",
        f"{_seconds('faults.elapsed_us')} AS elapsed_s",
        "faults.stderr_tail AS stderr_tail",
        joined="JOIN faults ON faults.game_id = results.game_id"
        " JOIN seats ON seats.game_id = faults.game_id AND seats.seat = faults.seat"
        " JOIN bots ON bots.id = seats.bot_id",
    )


def _create_view(name: str, *columns: str, joined: str = "") -> None:
    selected = _GAME + ",\n    ".join(columns)
    op.execute(f"CREATE VIEW {name} AS SELECT{selected}\nFROM{_JOINED}{joined}")


def _seconds(column: str) -> str:
    return f"CAST({column} AS DOUBLE PRECISION) / 1000000"
