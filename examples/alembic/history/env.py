"""A project's own env.py: nothing here is about pgsimhash."""

import os

from alembic import context
from models import Base
from sqlalchemy import create_engine

if context.is_offline_mode():
    context.configure(dialect_name="postgresql", dialect_opts={"paramstyle": "named"})
    with context.begin_transaction():
        context.run_migrations()
else:
    engine = create_engine(os.environ["DATABASE_URL"])
    with engine.connect() as connection:
        context.configure(
            connection=connection, target_metadata=Base.metadata, include_schemas=True
        )
        with context.begin_transaction():
            context.run_migrations()
    engine.dispose()
