-- Whether a revision can be recorded, whether there are tables, whether array_nulls is on, whether
-- Citus is installed, and the function of the build. The schema may not exist yet, so this is no
-- function; nobody can replace what it calls, because all names are qualified.
SELECT
    pg_catalog.to_regclass('pgsimhash.alembic_version') IS NOT NULL,
    pg_catalog.to_regclass('pgsimhash.pages') IS NOT NULL,
    pg_catalog.current_setting('array_nulls')::boolean,
    pg_catalog.to_regclass('pg_catalog.pg_dist_schema') IS NOT NULL,
    (
        SELECT p.prosrc FROM pg_catalog.pg_proc AS p
        WHERE p.oid OPERATOR(pg_catalog.=) pg_catalog.to_regprocedure('pgsimhash._build()')
    )
