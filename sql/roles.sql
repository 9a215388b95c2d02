-- Roles with minimal rights.

-- Creates the roles <prefix>_owner, _writer and _reader, by default with the prefix of the schema's
-- present roles, or else with the names of the database and the schema. The owner role gets the
-- schema, and the others their rights on present and later objects. The caller and the former owner
-- of the schema become members of the owner role.
CREATE FUNCTION pgsimhash.create_roles(prefix text DEFAULT NULL) RETURNS text[]
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    schema_id constant regnamespace := 'pgsimhash';
    schema_name constant text := schema_id::text;
    former constant text := (
        SELECT pg_get_userbyid(n.nspowner) FROM pg_namespace AS n WHERE n.oid = schema_id
    );
    present constant text := (
        SELECT former
        FROM pg_class AS p
        CROSS JOIN LATERAL aclexplode(p.relacl) AS a
        WHERE p.oid = 'pgsimhash.pages'::regclass AND a.privilege_type = 'INSERT'
            AND former LIKE '%\_owner'
            AND pg_get_userbyid(a.grantee) = left(former, -length('owner')) || 'writer'
        LIMIT 1
    );
    -- Roles belong to the server, so each database needs different names.
    owner constant text := coalesce(
        prefix || '_owner', present,
        format('%s_%s_owner', current_database(), (parse_ident(schema_name))[1])
    );
    writer constant text := left(owner, -length('owner')) || 'writer';
    reader constant text := left(owner, -length('owner')) || 'reader';
    step text;
BEGIN
    IF octet_length(writer) > 63 OR prefix = '' THEN
        RAISE EXCEPTION 'a role cannot be called "%"', writer
            USING ERRCODE = 'PS010', HINT = 'Give a prefix of 1 to 56 bytes.';
    ELSIF owner <> present THEN
        RAISE EXCEPTION 'the schema % has the roles of the prefix "%" already',
            schema_name, left(present, -length('_owner'))
            USING ERRCODE = 'PS010',
            HINT = 'Give that prefix, or none. For other names, rename these roles (ALTER ROLE).';
    END IF;
    -- Members of an existing role would get its rights, so only roles of an earlier call are accepted.
    SELECT r.rolname INTO step
    FROM pg_roles AS r
    JOIN pg_class AS p ON p.oid = 'pgsimhash.pages'::regclass
    WHERE r.rolname = owner AND owner <> former
        OR r.rolname IN (writer, reader) AND NOT EXISTS (
            SELECT FROM aclexplode(p.relacl) AS a
            WHERE a.grantee = r.oid
                AND a.privilege_type = CASE r.rolname WHEN writer THEN 'INSERT' ELSE 'SELECT' END
        )
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'there is a role "%" already, without the rights on the schema %',
            step, schema_name
            USING ERRCODE = 'PS010',
            HINT = 'Give another prefix, or drop the role: its members would get its rights.';
    END IF;
    FOR step IN
        SELECT format('CREATE ROLE %I NOLOGIN', r.role), 1 AS turn
        FROM unnest(ARRAY[owner, writer, reader]) AS r (role)
        WHERE to_regrole(quote_ident(r.role)) IS NULL
        UNION ALL
        -- To transfer ownership, a role must be a member of the new owner. Later revisions are
        -- deployed by this role too, and only trust owners that are granted to it.
        SELECT DISTINCT format('GRANT %I TO %I', owner, m.role), 2
        FROM unnest(ARRAY[current_user, former]) AS m (role)
        WHERE m.role <> owner
        UNION ALL
        -- Only what differs: to change an owner waits for all transactions.
        SELECT format('ALTER %s %s OWNER TO %I', o.kind, o.label, owner), o.turn
        FROM (
            SELECT 'SCHEMA', schema_name, nspowner, 3 FROM pg_namespace WHERE oid = schema_id
            UNION ALL
            SELECT CASE relkind WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END, oid::regclass::text, relowner, 4
            FROM pg_class WHERE relnamespace = schema_id AND relkind IN ('r', 'p', 'c')
            UNION ALL
            SELECT 'ROUTINE', oid::regprocedure::text, proowner, 4
            FROM pg_proc WHERE pronamespace = schema_id
        ) AS o (kind, label, owned_by, turn)
        WHERE pg_get_userbyid(o.owned_by) <> owner
        ORDER BY turn
    LOOP
        EXECUTE step;
    END LOOP;
    -- Only the owner may do the rest, which waits for nobody. A right that is revoked on a table is
    -- revoked on its columns too. PUBLIC may execute functions, unless somebody revoked that. The
    -- defaults are for the objects of later revisions.
    EXECUTE format(
        $grants$
        GRANT %3$I TO %2$I;
        GRANT USAGE ON SCHEMA %4$s TO %3$I;
        GRANT SELECT ON ALL TABLES IN SCHEMA %4$s TO %3$I;
        GRANT EXECUTE ON ALL ROUTINES IN SCHEMA %4$s TO %3$I;
        GRANT USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA %4$s TO %2$I;
        GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %4$s TO %2$I;
        REVOKE INSERT, UPDATE, DELETE ON pgsimhash.alembic_version FROM %2$I;
        REVOKE UPDATE, DELETE ON pgsimhash.collections FROM %2$I;
        REVOKE UPDATE ON pgsimhash.pages FROM %2$I;
        GRANT UPDATE (name, default_distance, keep_markdown) ON pgsimhash.collections TO %2$I;
        GRANT UPDATE (duplicate_of, distance, indexed, covered, selectors, address)
            ON pgsimhash.pages TO %2$I;
        ALTER DEFAULT PRIVILEGES FOR ROLE %1$I IN SCHEMA %4$s GRANT SELECT ON TABLES TO %3$I;
        ALTER DEFAULT PRIVILEGES FOR ROLE %1$I IN SCHEMA %4$s GRANT EXECUTE ON ROUTINES TO %3$I;
        ALTER DEFAULT PRIVILEGES FOR ROLE %1$I IN SCHEMA %4$s
            GRANT INSERT, UPDATE, DELETE ON TABLES TO %2$I;
        ALTER DEFAULT PRIVILEGES FOR ROLE %1$I IN SCHEMA %4$s
            GRANT USAGE, UPDATE ON SEQUENCES TO %2$I;
        $grants$, owner, writer, reader, schema_name
    );
    RETURN ARRAY[owner, writer, reader];
END
$$;
