-- default_layout --
-- The column's default, which `pgsimhash migrate --layout` can change.
SELECT l.name
FROM pgsimhash.layouts AS l
JOIN pg_catalog.pg_attrdef AS d
    ON d.adrelid = 'pgsimhash.collections'::regclass::oid
    AND pg_catalog.pg_get_expr(d.adbin, d.adrelid) = pg_catalog.quote_literal(l.name) || '::text'

-- layout_deployed --
SELECT indexed FROM pgsimhash.layouts WHERE name = %(layout)s

-- layout_indexed --
UPDATE pgsimhash.layouts SET indexed = true WHERE name = %(layout)s

-- indexes --
-- What an interrupted CREATE INDEX CONCURRENTLY leaves behind, and what is complete.
SELECT c.relname, i.indisvalid
FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
WHERE i.indrelid = pg_catalog.to_regclass(%(table)s::text)::oid

-- lock_layout --
-- A collection that sets out for the layout refers to this row, and so waits.
SELECT FROM pgsimhash.layouts WHERE name = %(layout)s FOR UPDATE

-- moving_collections --
-- The collections that are on their way to a layout, and the ones that they have.
SELECT name, layout FROM pgsimhash.collections WHERE next_layout = %(layout)s ORDER BY name

-- relayout_lock --
-- One change of layout at a time for each collection. The first key is "pgsl" in ASCII.
SELECT pg_catalog.pg_try_advisory_lock(1885827948, %(collection_id)s)

-- relayout_begin --
-- From here on the triggers mirror what is written.
UPDATE pgsimhash.collections
SET next_layout = %(layout)s
WHERE collection_id = %(collection_id)s

-- copy_slice --
-- FOR SHARE: a row that someone is changing or deleting is waited for, and what becomes of one that
-- is copied happens in both tables.
INSERT INTO {next} (collection_id, simhash, bare)
SELECT collection_id, simhash, bare
FROM {present}
WHERE prefix_1 >= %(first)s AND prefix_1 < %(beyond)s
ORDER BY prefix_1, simhash
FOR SHARE
ON CONFLICT DO NOTHING

-- relayout_switch --
UPDATE pgsimhash.collections
SET layout = next_layout, next_layout = NULL, default_distance = %(distance)s
WHERE collection_id = %(collection_id)s AND next_layout = %(layout)s

-- delete_slice --
DELETE FROM {present} WHERE prefix_1 >= %(first)s AND prefix_1 < %(beyond)s

-- relayout_cancel --
UPDATE pgsimhash.collections
SET next_layout = NULL
WHERE collection_id = %(collection_id)s

-- relayout_unlock --
SELECT pg_catalog.pg_advisory_unlock(1885827948, %(collection_id)s)

-- relayout_hold --
-- The lock of relayout_lock, until the transaction ends.
SELECT pg_catalog.pg_try_advisory_xact_lock(1885827948, %(collection_id)s)
