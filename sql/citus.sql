-- `pgsimhash migrate --citus` runs this first: it creates a schema that Citus keeps, with all its
-- tables, on one of its nodes (schema-based sharding).
--
-- What functions in other files do for it, there called a cluster:
-- - With a query, all variables of a function go to the node of the tables. So _near_pairs is a function,
--   and check_collection has an EXECUTE with parameters.
-- - Citus knows no composite variables (_see_pages, _forget_batches), plans no INSERT with unknown values
--   (to_insert in fragments.sql), and none that reads a table beside unnest() (_see_pages).
-- - It forwards SET LOCAL, not set_config() (_lock_collections, _collection, _add_batch). now() is that of
--   the node.
-- - It changes no type whose columns a bound function reads that also calls what returns it (find).
-- - It commits pages on their node first, so after a crash it may have forgotten which ids it drew, and
--   it starts the sequences of workers above 2 ^ 48 (_with_ids).
-- Its catalogue is read by status, to which it alone gives sizes, and by deployed.sql, in one statement.

-- Pinned, independent of the deployer's search_path.
SET LOCAL search_path = pg_catalog, pg_temp;

DO $$
DECLARE
    version constant text := (SELECT e.extversion FROM pg_extension AS e WHERE e.extname = 'citus');
    present constant name := (SELECT n.nspname FROM pg_namespace AS n WHERE n.nspname = 'pgsimhash');
BEGIN
    IF version IS NULL THEN
        RAISE EXCEPTION 'the database % has no extension citus', current_database()
            USING ERRCODE = 'PS035',
            HINT = 'Run CREATE EXTENSION citus in it on all nodes, or deploy without --citus.';
    ELSIF split_part(version, '.', 1)::integer < 12 THEN
        RAISE EXCEPTION 'the extension citus has version %, and 12 or later is needed', version
            USING ERRCODE = 'PS035', HINT = 'Upgrade Citus on all nodes.';
    ELSIF (SELECT l.groupid FROM pg_dist_local_group AS l) <> 0 THEN
        RAISE EXCEPTION 'this node is a worker of the Citus cluster'
            USING ERRCODE = 'PS035', HINT = 'Connect to the coordinator.';
    ELSIF present IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_dist_schema AS s WHERE s.schemaid::regnamespace::name = present
    ) THEN
        RAISE EXCEPTION 'the schema % exists already, without Citus', present
            USING ERRCODE = 'PS035', HINT = 'Give another name (--schema), or drop it first.';
    END IF;
    -- Functions of the schema read its tables on the node that has them, and lock timeouts must
    -- apply there. Some versions of Citus set this on all nodes at once, and refuse it on a worker.
    PERFORM run_command_on_all_nodes(format('ALTER DATABASE %I SET %s', current_database(), s.setting))
    FROM unnest(ARRAY[
        'citus.allow_nested_distributed_execution TO on', 'citus.propagate_set_commands TO local'
    ]) AS s (setting);
    IF EXISTS (
        SELECT
        FROM run_command_on_all_nodes(
            'SELECT string_agg(s.setconfig::text, '','') FROM pg_db_role_setting AS s '
            'JOIN pg_database AS d ON d.oid = s.setdatabase WHERE d.datname = current_database()'
        ) AS r
        WHERE strpos(r.result, 'citus.allow_nested_distributed_execution=on') = 0
            OR strpos(r.result, 'citus.propagate_set_commands=local') = 0
            OR r.result = ''
    ) THEN
        RAISE EXCEPTION 'a node of the Citus cluster does not have the settings that functions need'
            USING ERRCODE = 'PS035', HINT = format(
                'Run this as the owner of the database, on each node: ALTER DATABASE %1$I SET '
                'citus.allow_nested_distributed_execution TO on; ALTER DATABASE %1$I SET '
                'citus.propagate_set_commands TO local.', current_database()
            );
    END IF;
    IF present IS NULL THEN
        SET LOCAL citus.enable_schema_based_sharding TO on;
        CREATE SCHEMA pgsimhash;
        IF NOT EXISTS (
            SELECT FROM pg_dist_schema AS s
            WHERE s.schemaid = 'pgsimhash'::regnamespace
        ) THEN
            RAISE EXCEPTION 'Citus does not shard by schema here'
                USING ERRCODE = 'PS035',
                HINT = 'Read the documentation of citus.enable_schema_based_sharding.';
        END IF;
    END IF;
END
$$;
