-- What can run code of a role that is neither a superuser nor a member of an owner of the schema or
-- of its version table; and grants with which such a role could create it. Foreign keys count: before
-- PostgreSQL 18, a cascade runs deferred triggers as the user who deletes. This is no function, which
-- such a role could own; nobody can replace what it calls, because all names are qualified.
SELECT o.reason, pg_catalog.pg_describe_object(o.catalog, o.object, 0) AS object,
    coalesce(r.rolname, 'public') AS role
FROM pg_catalog.pg_namespace AS n
CROSS JOIN LATERAL (
    SELECT 'foreign_owner', p.tableoid::pg_catalog.regclass, p.oid, p.proowner
    FROM pg_catalog.pg_proc AS p WHERE p.pronamespace OPERATOR(pg_catalog.=) n.oid
    UNION ALL
    SELECT 'foreign_grant', n.tableoid::pg_catalog.regclass, n.oid, a.grantee
    FROM pg_catalog.aclexplode(n.nspacl) AS a
    WHERE a.privilege_type OPERATOR(pg_catalog.=) 'CREATE'
    UNION ALL
    SELECT t.*
    FROM pg_catalog.pg_class AS c
    CROSS JOIN LATERAL (
        SELECT 'foreign_owner', c.tableoid::pg_catalog.regclass, c.oid, c.relowner
        WHERE c.relkind OPERATOR(pg_catalog.<>) 'i'
        UNION ALL
        SELECT DISTINCT 'foreign_grant', c.tableoid::pg_catalog.regclass, c.oid, a.grantee
        FROM (
            SELECT c.relacl
            UNION ALL
            SELECT b.attacl FROM pg_catalog.pg_attribute AS b
            WHERE b.attrelid OPERATOR(pg_catalog.=) c.oid
        ) AS l (acl)
        CROSS JOIN LATERAL pg_catalog.aclexplode(l.acl) AS a
        WHERE a.privilege_type OPERATOR(pg_catalog.=) ANY (ARRAY['TRIGGER', 'REFERENCES'])
        UNION ALL
        SELECT 'foreign_key', k.tableoid::pg_catalog.regclass, k.oid, t.relowner
        FROM pg_catalog.pg_constraint AS k
        JOIN pg_catalog.pg_class AS t ON t.oid OPERATOR(pg_catalog.=) k.conrelid
        WHERE k.confrelid OPERATOR(pg_catalog.=) c.oid
        UNION ALL
        -- A trigger runs its function and those of its condition.
        SELECT 'foreign_trigger', d.classid::pg_catalog.regclass, d.objid, p.proowner
        FROM pg_catalog.pg_trigger AS g
        JOIN pg_catalog.pg_depend AS d
            ON d.classid OPERATOR(pg_catalog.=) g.tableoid
            AND d.objid OPERATOR(pg_catalog.=) g.oid
        JOIN pg_catalog.pg_proc AS p
            ON d.refclassid OPERATOR(pg_catalog.=) p.tableoid
            AND p.oid OPERATOR(pg_catalog.=) d.refobjid
        WHERE g.tgrelid OPERATOR(pg_catalog.=) c.oid
        UNION ALL
        SELECT 'foreign_rule', w.tableoid::pg_catalog.regclass, w.oid, 0
        FROM pg_catalog.pg_rewrite AS w
        WHERE w.ev_class OPERATOR(pg_catalog.=) c.oid
            AND w.rulename OPERATOR(pg_catalog.<>) '_RETURN'
    ) AS t
    WHERE c.relnamespace OPERATOR(pg_catalog.=) n.oid
) AS o (reason, catalog, object, role)
LEFT JOIN pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) o.role
LEFT JOIN pg_catalog.pg_class AS v
    ON v.relnamespace OPERATOR(pg_catalog.=) n.oid
    AND v.relname OPERATOR(pg_catalog.=) 'alembic_version'
WHERE n.nspname OPERATOR(pg_catalog.=) 'pgsimhash'
    AND r.rolsuper IS NOT TRUE
    AND pg_catalog.pg_has_role(r.oid, n.nspowner, 'MEMBER') IS NOT TRUE
    AND pg_catalog.pg_has_role(r.oid, v.relowner, 'MEMBER') IS NOT TRUE
ORDER BY 1, 2, 3
