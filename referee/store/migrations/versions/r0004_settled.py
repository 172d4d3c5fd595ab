"""Tournaments can end before all that was planned is played: when their table is settled."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make a place for the round after which that was."""
    op.add_column("tournaments", sa.Column("stopped_after", sa.Integer(), nullable=True))
