SELECT pgsimhash.lock_collections(%(collection_ids)s::integer[])
