-- What an interrupted CREATE INDEX CONCURRENTLY leaves behind, and what is complete.
SELECT c.relname, i.indisvalid
FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
WHERE i.indrelid = pg_catalog.to_regclass(%(table)s::text)::oid
