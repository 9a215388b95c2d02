SELECT pg_catalog.pg_advisory_unlock(1885827948, %(collection_id)s)
