-- schema_deployed --
-- Whether a revision can be recorded, whether there are tables, whether array_nulls is on, and
-- whether Citus is installed.
SELECT
    pg_catalog.to_regclass('pgsimhash.alembic_version') IS NOT NULL,
    pg_catalog.to_regclass('pgsimhash.pages') IS NOT NULL,
    pg_catalog.current_setting('array_nulls')::boolean,
    pg_catalog.to_regclass('pg_catalog.pg_dist_schema') IS NOT NULL

-- is_worker --
-- Whether Citus has the schema, and this node is not the coordinator.
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_dist_schema AS s
    JOIN pg_catalog.pg_namespace AS n ON n.oid = s.schemaid
    CROSS JOIN pg_catalog.pg_dist_local_group AS l
    WHERE n.nspname = 'pgsimhash' AND l.groupid <> 0
)

-- schema_revision --
SELECT version_num FROM pgsimhash.alembic_version

-- pin_search_path --
-- For the transaction or the session; it saves the caller's. Nothing here can be hijacked, although it is
-- parsed under the caller's search_path. Citus sends times to its nodes as text in the DateStyle of the
-- session, and the nodes read it in their own.
SELECT
    pg_catalog.set_config(
        'pgsimhash_caller.search_path', pg_catalog.current_setting('search_path'), %(local)s
    ),
    pg_catalog.set_config(
        'pgsimhash_caller.date_style', pg_catalog.current_setting('datestyle'), %(local)s
    ),
    pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', %(local)s),
    pg_catalog.set_config('datestyle', 'ISO', %(local)s)

-- unpin_search_path --
SELECT
    pg_catalog.set_config(
        'search_path', pg_catalog.current_setting('pgsimhash_caller.search_path'), true
    ),
    pg_catalog.set_config(
        'datestyle', pg_catalog.current_setting('pgsimhash_caller.date_style'), true
    )

-- create_roles --
SELECT pgsimhash.create_roles(%(prefix)s::text)
