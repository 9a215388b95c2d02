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

-- foreign_objects --
-- What can run code of a role that is neither a superuser nor a member of an owner of the schema or of
-- its version table; and grants with which such a role could create it.
SELECT o.reason, pg_catalog.pg_describe_object(o.catalog, o.object, 0) AS object,
    coalesce(r.rolname, 'public') AS role
FROM pg_catalog.pg_namespace AS n
CROSS JOIN LATERAL (
    SELECT 'foreign_owner', 'pg_proc'::regclass, p.oid, p.proowner
    FROM pg_catalog.pg_proc AS p WHERE p.pronamespace = n.oid
    UNION ALL
    SELECT 'foreign_grant', 'pg_namespace'::regclass, n.oid, a.grantee
    FROM pg_catalog.aclexplode(n.nspacl) AS a WHERE a.privilege_type = 'CREATE'
    UNION ALL
    SELECT t.*
    FROM pg_catalog.pg_class AS c
    CROSS JOIN LATERAL (
        SELECT 'foreign_owner', 'pg_class'::regclass, c.oid, c.relowner WHERE c.relkind <> 'i'
        UNION ALL
        SELECT 'foreign_grant', 'pg_class'::regclass, c.oid, a.grantee
        FROM pg_catalog.aclexplode(c.relacl) AS a WHERE a.privilege_type = 'TRIGGER'
        UNION ALL
        -- A trigger runs its function and those of its condition.
        SELECT 'foreign_trigger', d.classid::regclass, d.objid, p.proowner
        FROM pg_catalog.pg_trigger AS g
        JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_trigger'::regclass AND d.objid = g.oid
        JOIN pg_catalog.pg_proc AS p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
        WHERE g.tgrelid = c.oid
        UNION ALL
        SELECT 'foreign_rule', 'pg_rewrite'::regclass, w.oid, 0
        FROM pg_catalog.pg_rewrite AS w WHERE w.ev_class = c.oid AND w.rulename <> '_RETURN'
    ) AS t
    WHERE c.relnamespace = n.oid
) AS o (reason, catalog, object, role)
LEFT JOIN pg_catalog.pg_roles AS r ON r.oid = o.role
LEFT JOIN pg_catalog.pg_class AS v ON v.relnamespace = n.oid AND v.relname = 'alembic_version'
WHERE n.nspname = 'pgsimhash'
    AND r.rolsuper IS NOT TRUE
    AND pg_catalog.pg_has_role(r.oid, n.nspowner, 'MEMBER') IS NOT TRUE
    AND pg_catalog.pg_has_role(r.oid, v.relowner, 'MEMBER') IS NOT TRUE
ORDER BY 1, 2, 3
