"""How a compatible revision replaces functions and changes tables while others use them.

No revision of the package does so yet. The first that does takes this into ``pgsimhash/schema``.
"""

import re
from collections.abc import Iterable

from pgsimhash.db.schema_names import in_schema, read_sql
from pgsimhash.schema.scripts import split_statements

KEEP_GRANTS = r"""
-- Keeps the grants on functions, by their names without numbers, before functions are dropped.
DO $$
BEGIN
    PERFORM set_config(
        'deployed.grants', coalesce(json_object_agg(g.name, g.grants)::text, '{}'), true
    )
    FROM (
        SELECT regexp_replace(p.proname, '_\d+$', '') AS name, max(p.proacl::text) AS grants
        FROM pg_proc AS p
        WHERE p.pronamespace = 'pgsimhash'::regnamespace AND p.proacl IS NOT NULL
        GROUP BY 1
    ) AS g;
END
$$
"""

REPEAT_GRANTS = r"""
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
"""

LOCK = """
-- Locks tables that a revision changes while others use them. Everybody who comes later waits
-- behind a waiting lock, so each attempt is short, and the others go on between two of them. It is
-- shorter than deadlock_timeout, so that no other session fails.
DO $$
DECLARE
    present constant text := current_setting('lock_timeout');
    latest timestamptz;
    target text;
BEGIN
    FOR attempt IN 1..100 LOOP
        latest := clock_timestamp() + interval '900 milliseconds';
        BEGIN
            FOREACH target IN ARRAY ARRAY['${tables}'] LOOP
                PERFORM set_config('lock_timeout', greatest(
                    1, 1000 * extract(epoch FROM latest - clock_timestamp())
                )::integer::text, true);
                EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', target);
            END LOOP;
            PERFORM set_config('lock_timeout', present, true);
            RETURN;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            IF attempt = 100 THEN
                RAISE;
            END IF;
        END;
        PERFORM pg_sleep(1 + random());
    END LOOP;
END
$$
"""


def replace_statements(
    script: str, schema: str, *, recreated: Iterable[str] = (), dropped: str | None = None
) -> list[str]:
    """Return the statements that replace functions in place, for a compatible revision.

    ``script`` creates them, as ``schema_script`` without tables. Sessions go on to use them
    meanwhile. Grants are repeated. ``recreated`` are the public functions whose parameters or
    results differ, and the public types whose attributes do, with the functions that use them.
    Other types must not differ. ``dropped`` is a pattern of the names to drop afterwards.
    """

    def replaced(statement: str) -> str:
        if "\nCREATE TYPE" in f"\n{statement}":
            return f"DO $$ BEGIN {statement}; EXCEPTION WHEN duplicate_object THEN END $$"
        return re.sub(
            r"^CREATE (?=FUNCTION|PROCEDURE)",
            "CREATE OR REPLACE ",
            statement,
            count=1,
            flags=re.MULTILINE,
        )

    return [
        in_schema(KEEP_GRANTS, schema),
        *_dropped("|".join(recreated), schema),
        *map(replaced, split_statements(script)),
        in_schema(REPEAT_GRANTS, schema),
        *_dropped(dropped, schema),
    ]


def lock_statement(schema: str, *tables: str) -> str:
    """Return a statement that locks tables before a compatible revision changes them."""
    names = "', '".join(f"pgsimhash.{table}" for table in tables)
    return in_schema(LOCK.replace("${tables}", names), schema)


def _dropped(names: str | None, schema: str) -> list[str]:
    drop = in_schema(read_sql("drop.sql"), schema)
    return [f"SET LOCAL deployed.names = '{names}'", drop] if names else []
