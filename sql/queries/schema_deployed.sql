SELECT pg_catalog.to_regclass('pgsimhash.alembic_version') IS NOT NULL
