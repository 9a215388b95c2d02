-- Pinned, so that the schema uses PostgreSQL's own functions and operators, whatever other users
-- created in the schemas of the deployer's search_path.
SET LOCAL search_path = pg_catalog, pg_temp;

-- An owner can replace an object, which other users then run with their own rights. So the schema and
-- its version table must belong to the deployer, to a role granted to the deployer, or to a superuser,
-- and all other code in the schema to their owners. pg_has_role() is true for every superuser, so grants
-- are checked separately.
DO $$
DECLARE
    present constant oid := (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = 'pgsimhash');
    reason text;
    object text;
    owner name;
    recorded boolean := false;
BEGIN
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'the database has the encoding %, which cannot store all texts',
            current_setting('server_encoding')
            USING ERRCODE = 'PS030',
            HINT = 'Use one with UTF-8: CREATE DATABASE name ENCODING ''UTF8'' TEMPLATE template0.';
    END IF;
    IF present IS NULL THEN
        CREATE SCHEMA pgsimhash;
        RETURN;
    END IF;
    FOR reason, object, owner IN
        WITH RECURSIVE trusted (role) AS (
            SELECT r.oid FROM pg_roles AS r WHERE r.rolname = current_user
            UNION
            SELECT m.roleid FROM trusted AS t JOIN pg_auth_members AS m ON m.member = t.role
        )
        SELECT 'foreign_owner', b.object, r.rolname
        FROM pg_namespace AS n
        LEFT JOIN pg_class AS v ON v.oid = to_regclass('pgsimhash.alembic_version')
        CROSS JOIN LATERAL (VALUES
            (n.nspowner, 'schema ' || n.nspname),
            (v.relowner, 'table pgsimhash.alembic_version')
        ) AS b (owner, object)
        JOIN pg_roles AS r ON r.oid = b.owner
        WHERE n.oid = present
            AND NOT r.rolsuper
            AND NOT (pg_has_role(r.oid, 'USAGE') AND r.oid IN (SELECT t.role FROM trusted AS t))
        UNION ALL
        SELECT * FROM (${foreign_objects}) AS f
    LOOP
        IF reason = 'foreign_grant' THEN
            RAISE WARNING 'a grant on % (CREATE, TRIGGER or REFERENCES) lets role "%" run code with '
                'the rights of other users: revoke it', object, owner
                USING ERRCODE = 'PS040';
            CONTINUE;
        END IF;
        RAISE EXCEPTION '% belongs to role "%", and % would run code of that role',
            object, owner, current_user
            USING ERRCODE = 'PS040',
            HINT = 'If that role is to own the schema, deploy as that role (PGOPTIONS=-crole='
                || owner || '), or grant it to this user; if not, drop the object and deploy again.';
    END LOOP;
    IF to_regclass('pgsimhash.alembic_version') IS NOT NULL THEN
        recorded := EXISTS (SELECT FROM pgsimhash.alembic_version);
    END IF;
    IF to_regclass('pgsimhash.pages') IS NOT NULL AND NOT recorded THEN
        RAISE EXCEPTION 'the schema % has tables but no recorded revision, like a copy '
            'without its rows', present::regnamespace
            USING ERRCODE = 'PS041',
            HINT = 'Load the rows of all tables too (pg_dump --data-only --disable-triggers), or '
                'drop the schema and deploy it again.';
    END IF;
END
$$;
