-- The lock of relayout_lock.sql, until the transaction ends.
SELECT pg_catalog.pg_try_advisory_xact_lock(1885827948, %(collection_id)s)
