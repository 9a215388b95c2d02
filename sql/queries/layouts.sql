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
SELECT indexed FROM pgsimhash.layouts WHERE name = %(layout)s

-- layout_indexed --
UPDATE pgsimhash.layouts SET indexed = true WHERE name = %(layout)s

-- indexes --
-- The indexes, including invalid ones of an interrupted CREATE INDEX CONCURRENTLY.
SELECT c.relname, i.indisvalid
FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
WHERE i.indrelid = pg_catalog.to_regclass(%(table)s::text)::oid

-- lock_layout --
-- A new collection of the layout refers to this row, and so waits.
SELECT FROM pgsimhash.layouts WHERE name = %(layout)s FOR UPDATE

-- collections_made --
-- The collections of a layout that are being built, and their sources.
SELECT c.name, s.name
FROM pgsimhash.rebuilds AS r
JOIN pgsimhash.collections AS c USING (collection_id)
JOIN pgsimhash.collections AS s ON s.collection_id = r.source_id
WHERE c.layout = %(layout)s
ORDER BY c.name
