-- One change of layout at a time for each collection. The first key is "pgsl" in ASCII.
SELECT pg_catalog.pg_try_advisory_lock(1885827948, %(collection_id)s)
