-- Drops the tables, types and functions whose names match deployed.names.
-- Objects that you created in the schema stay, and so does Alembic's version table. If one of them
-- depends on a dropped object, nothing is dropped.
DO $$
DECLARE
    home constant oid := (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = 'pgsimhash');
    names constant text := '^(' || current_setting('deployed.names') || ')$';
    target text;
    progress boolean;
    refused text;
BEGIN
    -- The objects depend on one another, so this repeats until all are dropped.
    LOOP
        progress := false;
        refused := NULL;
        FOR target IN
            SELECT format('TABLE %s', c.oid::regclass)
            FROM pg_class AS c
            WHERE c.relnamespace = home AND c.relkind = 'r' AND c.relname ~ names
            UNION ALL
            SELECT format('ROUTINE %s', p.oid::regprocedure)
            FROM pg_proc AS p
            WHERE p.pronamespace = home AND p.proname ~ names
            UNION ALL
            SELECT format('TYPE %s', t.oid::regtype)
            FROM pg_type AS t
            JOIN pg_class AS c ON c.oid = t.typrelid AND c.relkind = 'c'
            WHERE t.typnamespace = home AND t.typname ~ names
        LOOP
            BEGIN
                EXECUTE 'DROP ' || target;
                progress := true;
            EXCEPTION WHEN dependent_objects_still_exist THEN
                refused := target;
            END;
        END LOOP;
        EXIT WHEN refused IS NULL;
        IF NOT progress THEN
            -- All tables at once, so that the message names only objects that are not listed.
            SELECT string_agg(c.oid::regclass::text, ', ') INTO target
            FROM pg_class AS c
            WHERE c.relnamespace = home AND c.relkind = 'r' AND c.relname ~ names;
            EXECUTE 'DROP ' || coalesce('TABLE ' || target, refused);
        END IF;
    END LOOP;
END
$$;
