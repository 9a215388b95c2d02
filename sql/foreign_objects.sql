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
