"""Views for people who query the database themselves: games, seats and faults by name, not by key."""

from alembic import op

revision = "0002"
down_revision = "0001"

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
    """Make the views."""
    _make(
        "played_games",
        "(SELECT count(*) FROM seats WHERE seats.game_id = results.game_id) AS seats",
        "results.termination AS termination",
        "results.decisions AS decisions",
        f"{_STARTED[op.get_bind().dialect.name]} AS started_at",
        f"{_seconds('results.duration_us')} AS duration_s",
    )
    _make(
        "played_seats",
        "seats.seat AS seat",
        _BOT,
        "seats.score AS score",
        'seats.rank AS "rank"',
        "seats.forfeited AS forfeited",
        "seats.rank = 1 AS won",
        f"{_seconds('seats.elapsed_us')} AS elapsed_s",
        joined="JOIN seats ON seats.game_id = results.game_id JOIN bots ON bots.id = seats.bot_id",
    )
    _make(
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


def _make(name: str, *columns: str, joined: str = "") -> None:
    selected = _GAME + ",\n    ".join(columns)
    op.execute(f"CREATE VIEW {name} AS SELECT{selected}\nFROM{_JOINED}{joined}")


def _seconds(column: str) -> str:
    return f"CAST({column} AS DOUBLE PRECISION) / 1000000"
