SELECT pgsimhash.simhash_slice(name, %(number)s::integer, %(slices)s::integer)
FROM pgsimhash.collections
WHERE collection_id = %(collection_id)s
