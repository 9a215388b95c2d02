SELECT to_regclass('pgsimhash.alembic_version') IS NOT NULL
