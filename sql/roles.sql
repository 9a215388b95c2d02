-- Roles with minimal rights.

-- Creates the roles <prefix>_owner, _writer and _reader, by default with the prefix of the schema's
-- present roles, or else with the names of the database and the schema. The owner role gets the
-- schema, and the others their rights on present and later objects. The caller and the former owner
-- of the schema become members of the owner role.
CREATE FUNCTION pgsimhash.create_roles(prefix text DEFAULT NULL) RETURNS text[]
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    here constant oid := (
        SELECT relnamespace FROM pg_class WHERE oid = 'pgsimhash.pages'::regclass
    );
    place constant text := here::regnamespace::text;
    former constant text := (
        SELECT r.rolname FROM pg_namespace AS n JOIN pg_roles AS r ON r.oid = n.nspowner
        WHERE n.oid = here
    );
    present constant text := (
        SELECT former
        FROM pg_class AS p
        CROSS JOIN LATERAL aclexplode(p.relacl) AS a
        JOIN pg_roles AS r ON r.oid = a.grantee
        WHERE p.oid = 'pgsimhash.pages'::regclass AND a.privilege_type = 'INSERT'
            AND former LIKE '%\_owner' AND r.rolname = left(former, -length('owner')) || 'writer'
        LIMIT 1
    );
    -- Roles belong to the server, so each database needs different names.
    owner constant text := coalesce(
        prefix || '_owner', present,
        (SELECT format('%s_%s_owner', current_database(), nspname) FROM pg_namespace WHERE oid = here)
    );
    writer constant text := left(owner, -length('owner')) || 'writer';
    reader constant text := left(owner, -length('owner')) || 'reader';
    step text;
BEGIN
    IF octet_length(writer) > 63 THEN
        RAISE EXCEPTION 'a role cannot be called "%"', writer
            USING ERRCODE = 'PS010',
            HINT = 'Give a prefix of up to 56 bytes.';
    ELSIF owner <> present THEN
        RAISE EXCEPTION 'the schema % has the roles of the prefix "%" already',
            place, left(present, -length('_owner'))
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
        RAISE EXCEPTION 'there is a role "%" already, without the rights on the schema %', step, place
            USING ERRCODE = 'PS010',
            HINT = 'Give another prefix, or drop the role: its members would get its rights.';
    END IF;
    FOR step IN
        SELECT format('CREATE ROLE %I NOLOGIN', r.role)
        FROM unnest(ARRAY[owner, writer, reader]) AS r (role)
        WHERE to_regrole(quote_ident(r.role)) IS NULL
    LOOP
        EXECUTE step;
    END LOOP;
    FOR step IN
        -- To transfer ownership, a role must be a member of the new owner. Later revisions are deployed
        -- by this role too, and only trust owners that are granted to it.
        SELECT DISTINCT format('GRANT %I TO %I', owner, m.role)
        FROM unnest(ARRAY[current_user, former]) AS m (role)
        WHERE m.role <> owner
        UNION ALL
        SELECT format('GRANT %I TO %I', reader, writer)
        UNION ALL
        SELECT format('ALTER %s OWNER TO %I', o.object, owner)
        FROM (
            SELECT format('SCHEMA %s', place)
            UNION ALL
            SELECT format('%s %s', CASE relkind WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END, oid::regclass)
            FROM pg_class WHERE relnamespace = here AND relkind IN ('r', 'p', 'c')
            UNION ALL
            SELECT format('ROUTINE %s', oid::regprocedure) FROM pg_proc WHERE pronamespace = here
        ) AS o (object)
        UNION ALL
        SELECT format(p.privileges, place, writer, reader, owner)
        FROM unnest(ARRAY[
            'GRANT USAGE ON SCHEMA %1$s TO %3$I',
            'GRANT SELECT ON ALL TABLES IN SCHEMA %1$s TO %3$I',
            'GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %1$s TO %2$I',
            'GRANT USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA %1$s TO %2$I',
            -- PUBLIC may execute them too, unless somebody revoked that.
            'GRANT EXECUTE ON ALL ROUTINES IN SCHEMA %1$s TO %3$I',
            -- For the objects of later revisions.
            'ALTER DEFAULT PRIVILEGES FOR ROLE %4$I IN SCHEMA %1$s GRANT EXECUTE ON ROUTINES TO %3$I',
            'ALTER DEFAULT PRIVILEGES FOR ROLE %4$I IN SCHEMA %1$s GRANT SELECT ON TABLES TO %3$I',
            'ALTER DEFAULT PRIVILEGES FOR ROLE %4$I IN SCHEMA %1$s '
                'GRANT INSERT, UPDATE, DELETE ON TABLES TO %2$I',
            'ALTER DEFAULT PRIVILEGES FOR ROLE %4$I IN SCHEMA %1$s '
                'GRANT USAGE, UPDATE ON SEQUENCES TO %2$I',
            -- Only the owner may do the rest. Revoking a right on a table revokes it on columns too.
            'REVOKE INSERT, UPDATE, DELETE ON %1$s.alembic_version FROM %2$I',
            'REVOKE UPDATE ON %1$s.pages FROM %2$I',
            'GRANT UPDATE (duplicate_of, distance, indexed) ON %1$s.pages TO %2$I',
            'REVOKE UPDATE, DELETE ON %1$s.collections FROM %2$I',
            'GRANT UPDATE (name, default_distance, keep_markdown) ON %1$s.collections TO %2$I'
        ]) AS p (privileges)
    LOOP
        EXECUTE step;
    END LOOP;
    RETURN ARRAY[owner, writer, reader];
END
$$;
