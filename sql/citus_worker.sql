-- Whether Citus has the schema, and this node is not the coordinator.
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_dist_schema AS s
    JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) s.schemaid
    CROSS JOIN pg_catalog.pg_dist_local_group AS l
    WHERE n.nspname OPERATOR(pg_catalog.=) 'pgsimhash'
        AND l.groupid OPERATOR(pg_catalog.<>) 0
)
