-- Roles with minimal rights.

-- Creates the roles <prefix>_owner, _writer and _reader, by default with the names of the database
-- and the schema as the prefix. The owner role gets the schema, and the others their rights on
-- present and later tables.
CREATE FUNCTION pgsimhash.create_roles(prefix text DEFAULT NULL) RETURNS text[]
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    here constant oid := (
        SELECT relnamespace FROM pg_class WHERE oid = 'pgsimhash.pages'::regclass
    );
    place constant text := here::regnamespace::text;
    -- Roles belong to the server, so each database needs different names.
    owner constant text := coalesce(
        prefix,
        (SELECT format('%s_%s', current_database(), nspname) FROM pg_namespace WHERE oid = here)
    ) || '_owner';
    writer constant text := left(owner, -length('owner')) || 'writer';
    reader constant text := left(owner, -length('owner')) || 'reader';
    step text;
BEGIN
    IF octet_length(writer) > 63 THEN
        RAISE EXCEPTION 'a role cannot be called "%"', writer
            USING ERRCODE = 'PS010',
            HINT = 'Give a prefix of up to 56 bytes.';
    END IF;
    -- Members of an existing role would get its rights, so only roles of an earlier call are accepted.
    SELECT r.rolname INTO step
    FROM pg_roles AS r
    JOIN pg_class AS p ON p.oid = 'pgsimhash.pages'::regclass
    WHERE r.rolname = owner AND r.oid <> (SELECT n.nspowner FROM pg_namespace AS n WHERE n.oid = here)
        OR r.rolname IN (writer, reader) AND NOT EXISTS (
            SELECT FROM aclexplode(p.relacl) AS a
            WHERE a.grantee = r.oid
                AND a.privilege_type = CASE r.rolname WHEN writer THEN 'INSERT' ELSE 'SELECT' END
        )
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'there is a role "%" that was not created for the schema %', step, place
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
        SELECT format('GRANT %I TO %I', owner, current_user)
        WHERE current_user <> owner
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
            -- For the tables of later revisions.
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
