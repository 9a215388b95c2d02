SELECT collection_id, name
FROM pgsimhash.collections
WHERE collection_id = ANY (%(collection_ids)s)
