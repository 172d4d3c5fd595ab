"""The migrations of the database, which Alembic runs in order."""
