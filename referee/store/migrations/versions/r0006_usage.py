"""What a bot's process took of the machine stands beside its score."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the columns to the seats, and make the view of them anew."""
    op.add_column("seats", sa.Column("cpu_us", sa.BigInteger(), nullable=True))
    op.add_column("seats", sa.Column("peak_memory_kib", sa.BigInteger(), nullable=True))
    op.execute("DROP VIEW played_seats")
    op.execute(
        """
        CREATE VIEW played_seats AS SELECT
            games.name AS game,
            tournaments.name AS tournament,
            matches.stage AS stage,
            matches.round AS round,
            matches.number AS "match",
            results.ruleset AS ruleset,
            seats.seat AS seat,
            bots.name || '@' || bots.version AS bot,
            seats.score AS score,
            seats.rank AS "rank",
            seats.forfeited AS forfeited,
            seats.rank = 1 AS won,
            CAST(seats.elapsed_us AS DOUBLE PRECISION) / 1000000 AS elapsed_s,
            CAST(seats.cpu_us AS DOUBLE PRECISION) / 1000000 AS cpu_s,
            CAST(seats.peak_memory_kib AS DOUBLE PRECISION) / 1024 AS peak_memory_mib
        FROM results
        JOIN games ON games.id = results.game_id
        LEFT JOIN matches ON matches.id = games.match_id
        LEFT JOIN tournaments ON tournaments.id = matches.tournament_id
        JOIN seats ON seats.game_id = results.game_id
        JOIN bots ON bots.id = seats.bot_id
        """
    )
