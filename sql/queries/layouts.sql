-- default_layout --
-- The column's default, which `pgsimhash migrate --layout` can change.
SELECT pg_catalog.substring(pg_catalog.pg_get_expr(d.adbin, d.adrelid), '^''(.*)''::text$')
FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = 'pgsimhash.collections'::regclass::oid AND a.attname = 'layout'

-- act_as_owner --
-- Until the transaction ends; returns the previous role. New objects belong to the schema's
-- owner, with the owner's default privileges for others.
SELECT
    pg_catalog.current_setting('role'),
    pg_catalog.set_config('role', pg_catalog.pg_get_userbyid(n.nspowner)::text, true)
FROM pg_catalog.pg_namespace AS n
WHERE n.nspname = 'pgsimhash'
    AND pg_catalog.pg_get_userbyid(n.nspowner) <> current_user
    AND pg_catalog.pg_has_role(n.nspowner, 'MEMBER')

-- act_as --
SELECT pg_catalog.set_config('role', %(role)s::text, true)

-- layout_deployed --
SELECT FROM pgsimhash.layouts WHERE name = %(layout)s
