-- Keeps the grants on functions, by their names without numbers, before functions are dropped.
DO $$
BEGIN
    PERFORM set_config('deployed.grants', coalesce(json_object_agg(g.name, g.grants)::text, '{}'), true)
    FROM (
        SELECT regexp_replace(p.proname, '_\d+$', '') AS name, max(p.proacl::text) AS grants
        FROM pg_proc AS p
        WHERE p.pronamespace = 'pgsimhash'::regnamespace AND p.proacl IS NOT NULL
        GROUP BY 1
    ) AS g;
END
$$;

-- Repeats them for the functions that were created since, also under other numbers.
DO $$
DECLARE
    step text;
BEGIN
    FOR step IN
        WITH created (label, grants) AS (
            SELECT p.oid::regprocedure, g.value::aclitem[]
            FROM pg_proc AS p
            JOIN json_each_text(current_setting('deployed.grants')::json) AS g
                ON g.key = regexp_replace(p.proname, '_\d+$', '')
            WHERE p.pronamespace = 'pgsimhash'::regnamespace
                AND p.proacl IS DISTINCT FROM g.value::aclitem[]
        )
        SELECT format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', c.label) FROM created AS c
        UNION ALL
        SELECT format(
            'GRANT EXECUTE ON ROUTINE %s TO %s%s', c.label,
            CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
            CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END
        )
        FROM created AS c CROSS JOIN LATERAL aclexplode(c.grants) AS a
        WHERE a.grantee NOT IN (SELECT p.proowner FROM pg_proc AS p WHERE p.oid = c.label)
    LOOP
        EXECUTE step;
    END LOOP;
END
$$
