-- The first key is "pgsh" in ASCII: it keeps this package's locks apart from an application's.
SELECT pg_advisory_xact_lock(1885827944, %(collection_id)s), current_setting('transaction_isolation')
