"""The revisions of the database schema, which Alembic applies in order."""
