"""What was reckoned from many games can be kept, so that it is taken up from there."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the table of checkpoints."""
    op.create_table(
        "checkpoints",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_checkpoints")),
    )
