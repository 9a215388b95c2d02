-- schema_deployed --
-- Whether a revision can be recorded, whether there are tables, and whether NULL in an array is one.
SELECT
    pg_catalog.to_regclass('pgsimhash.alembic_version') IS NOT NULL,
    pg_catalog.to_regclass('pgsimhash.pages') IS NOT NULL,
    pg_catalog.current_setting('array_nulls')::boolean

-- schema_revision --
SELECT version_num FROM pgsimhash.alembic_version

-- set_search_path --
-- Until the transaction ends; returns the one before.
SELECT
    pg_catalog.current_setting('search_path'),
    pg_catalog.set_config('search_path', %(search_path)s::text, true)

-- create_roles --
SELECT pgsimhash.create_roles(%(prefix)s::text)
