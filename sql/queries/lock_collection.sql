-- The first key is "pgsh" in ASCII: it keeps this package's locks apart from an application's.
-- All writers lock in the same order, so that none waits for one that waits for it.
SELECT pg_advisory_xact_lock(1885827944, c.collection_id), current_setting('transaction_isolation')
FROM (SELECT * FROM unnest(%(collection_ids)s::integer[]) AS u (collection_id) ORDER BY 1) AS c
