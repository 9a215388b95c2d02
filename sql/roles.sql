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
        SELECT r.rolname FROM pg_namespace AS n JOIN pg_roles AS r ON r.oid = n.nspowner
        WHERE n.oid = schema_id
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
        (
            SELECT format('%s_%s_owner', current_database(), nspname)
            FROM pg_namespace
            WHERE oid = schema_id
        )
    );
    writer constant text := left(owner, -length('owner')) || 'writer';
    reader constant text := left(owner, -length('owner')) || 'reader';
    step text;
BEGIN
    IF octet_length(writer) > 63 OR prefix = '' THEN
        RAISE EXCEPTION 'a role cannot be called "%"', writer
            USING ERRCODE = 'PS010',
            HINT = 'Give a prefix of 1 to 56 bytes.';
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
        SELECT format('CREATE ROLE %I NOLOGIN', r.role)
        FROM unnest(ARRAY[owner, writer, reader]) AS r (role)
        WHERE to_regrole(quote_ident(r.role)) IS NULL
    LOOP
        EXECUTE step;
    END LOOP;
    -- Only what differs: to change an owner waits for all transactions. Twice, because a right that is
    -- revoked on a table is revoked on its columns too.
    FOR attempt IN 1..2 LOOP
        FOR step IN
            WITH object (kind, label, owned_by, acl, of_writer, of_reader) AS (
                SELECT 'SCHEMA', schema_name, nspowner, nspacl, '{}'::text[], '{USAGE}'::text[]
                FROM pg_namespace WHERE oid = schema_id
                UNION ALL
                SELECT CASE relkind WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END, oid::regclass::text,
                    relowner, relacl, CASE
                        WHEN relkind = 'c' OR relname = 'alembic_version' THEN '{}'
                        WHEN relname = 'collections' THEN '{INSERT}'
                        WHEN relname = 'pages' THEN '{INSERT, DELETE}'
                        ELSE '{INSERT, UPDATE, DELETE}'
                    END::text[], CASE WHEN relkind <> 'c' THEN '{SELECT}'::text[] END
                FROM pg_class WHERE relnamespace = schema_id AND relkind IN ('r', 'p', 'c')
                UNION ALL
                SELECT 'TABLE', attrelid::regclass::text, NULL, attacl,
                    ARRAY[format('UPDATE (%I)', attname)], NULL
                FROM pg_attribute
                WHERE attrelid = 'pgsimhash.pages'::regclass
                    AND attname IN (
                        'duplicate_of', 'distance', 'indexed', 'covered', 'selectors', 'address'
                    )
                    OR attrelid = 'pgsimhash.collections'::regclass
                    AND attname IN ('name', 'default_distance', 'keep_markdown')
                UNION ALL
                SELECT 'SEQUENCE', oid::regclass::text, NULL, relacl, '{USAGE, UPDATE}', NULL
                FROM pg_class WHERE relnamespace = schema_id AND relkind = 'S'
                UNION ALL
                -- PUBLIC may execute them too, unless somebody revoked that.
                SELECT 'ROUTINE', oid::regprocedure::text, proowner, proacl, NULL, '{EXECUTE}'
                FROM pg_proc WHERE pronamespace = schema_id
                UNION ALL
                -- For the objects of later revisions.
                SELECT k.kind, '', NULL, d.defaclacl, k.of_writer::text[], k.of_reader::text[]
                FROM (VALUES
                    ('r', 'TABLES', '{INSERT, UPDATE, DELETE}', '{SELECT}'),
                    ('S', 'SEQUENCES', '{USAGE, UPDATE}', NULL),
                    ('f', 'ROUTINES', NULL, '{EXECUTE}')
                ) AS k (objects, kind, of_writer, of_reader)
                LEFT JOIN pg_default_acl AS d
                    ON d.defaclrole = to_regrole(quote_ident(owner))
                    AND d.defaclnamespace = schema_id
                    AND d.defaclobjtype = k.objects::"char"
            )
            -- To transfer ownership, a role must be a member of the new owner. Later revisions are
            -- deployed by this role too, and only trust owners that are granted to it.
            SELECT DISTINCT format('GRANT %I TO %I', owner, m.role), 1 AS turn
            FROM unnest(ARRAY[current_user, former]) AS m (role)
            WHERE m.role <> owner
            UNION ALL
            SELECT format('GRANT %I TO %I', reader, writer), 1
            UNION ALL
            SELECT format('ALTER %s %s OWNER TO %I', o.kind, o.label, owner),
                CASE o.kind WHEN 'SCHEMA' THEN 2 ELSE 3 END
            FROM object AS o WHERE o.owned_by <> to_regrole(quote_ident(owner))
            UNION ALL
            -- Only the owner may do the rest.
            SELECT format('REVOKE %s ON %s FROM %I', a.privilege_type, o.label, writer), 4
            FROM object AS o
            CROSS JOIN LATERAL aclexplode(o.acl) AS a
            WHERE o.kind = 'TABLE' AND o.owned_by IS NOT NULL
                AND a.grantee = to_regrole(quote_ident(writer))
                AND a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE')
                AND a.privilege_type <> ALL (o.of_writer)
            UNION ALL
            SELECT CASE o.label
                    WHEN '' THEN
                        format(
                            'ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %s ', owner, schema_name
                        )
                    ELSE ''
                END || format('GRANT %s ON %s %s TO %I', w.privilege, o.kind, o.label, w.role), 5
            FROM object AS o
            CROSS JOIN LATERAL (
                SELECT unnest(o.of_writer), writer UNION ALL SELECT unnest(o.of_reader), reader
            ) AS w (privilege, role)
            WHERE NOT EXISTS (
                SELECT FROM aclexplode(o.acl) AS a
                WHERE a.grantee = to_regrole(quote_ident(w.role))
                    AND a.privilege_type = split_part(w.privilege, ' ', 1)
            )
            ORDER BY turn
        LOOP
            EXECUTE step;
        END LOOP;
    END LOOP;
    RETURN ARRAY[owner, writer, reader];
END
$$;
