-- Drops the tables, types and functions whose names match deployed.names, not Alembic's version table
-- and objects of yours. If one of those depends on a dropped object, nothing is dropped.
DO $$
DECLARE
    home constant oid := 'pgsimhash'::regnamespace;
    names constant text := '^(' || current_setting('deployed.names') || ')$';
    step text;
BEGIN
    -- Functions use the tables, and a column of a table uses host_of.
    FOR step IN
        SELECT format('DROP %s %s', o.kind, string_agg(o.label, ', '))
        FROM (
            SELECT CASE p.proname WHEN 'host_of' THEN 3 ELSE 1 END, 'ROUTINE',
                p.oid::regprocedure::text
            FROM pg_proc AS p
            WHERE p.pronamespace = home AND p.proname ~ names
            UNION ALL
            SELECT CASE c.relkind WHEN 'r' THEN 2 ELSE 4 END,
                CASE c.relkind WHEN 'r' THEN 'TABLE' ELSE 'TYPE' END, c.oid::regclass::text
            FROM pg_class AS c
            WHERE c.relnamespace = home AND c.relname ~ names
                AND (c.relkind = 'c' OR c.relkind = 'r' AND c.relname !~ '^_')
        ) AS o (turn, kind, label)
        GROUP BY o.turn, o.kind
        ORDER BY o.turn
    LOOP
        EXECUTE step;
    END LOOP;
END
$$;
