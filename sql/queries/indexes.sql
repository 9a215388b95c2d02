-- What an interrupted CREATE INDEX CONCURRENTLY leaves behind, and what is complete.
SELECT c.relname, i.indisvalid
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE i.indrelid = to_regclass(%(table)s::text)
