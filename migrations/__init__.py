"""The Alembic environment; its revisions render the files in sql/."""
