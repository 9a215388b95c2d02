SELECT pgsimhash.has_near_duplicate(
    %(simhash)s::bigint, %(distance)s::integer,
    (SELECT name FROM pgsimhash.collections WHERE collection_id = %(collection_id)s)
)
