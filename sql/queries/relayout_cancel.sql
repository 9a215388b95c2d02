UPDATE pgsimhash.collections
SET next_layout = NULL
WHERE collection_id = %(collection_id)s
